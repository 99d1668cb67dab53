"""The words that the harness and its adapters share, as `ulpscope schema --words` writes them into words.json."""

import json
import pathlib

WORDS = json.loads(pathlib.Path(__file__).with_name("words.json").read_text(encoding="utf-8"))
OPS = WORDS["ops"]  # op -> {"operands": [fewest, most], "kind": ..., "out": bool, "attributes": [...]}


def ops(*kinds):
    """The names of the ops of these kinds: value, view, product, effect, scope."""
    return [name for name, row in OPS.items() if row["kind"] in kinds]


def attributes(op, without=()):
    """The attributes of `op` but for those that a framework has not."""
    return tuple(key for key in OPS[op]["attributes"] if key not in without)
