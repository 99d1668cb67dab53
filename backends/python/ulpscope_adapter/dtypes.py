"""The element types: one list for every adapter, written by the harness into dtypes.json.

Frameworks name their own by our long names, so that an adapter looks them up by attribute.
"""

import json
import pathlib

# Long name -> {"safetensors": name in a header, "bytes", "kind": floating, integer or bool}.
DTYPES = json.loads(pathlib.Path(__file__).with_name("dtypes.json").read_text(encoding="utf-8"))


def dtypes_of(module):
    """Long name -> what `module` calls so, for the types that it has."""
    return {name: getattr(module, name) for name in DTYPES if hasattr(module, name)}


def float8_names(spell):
    """spell("e4m3fn") -> "float8_e4m3fn" ..., for the printed forms of a framework."""
    return {spell(name.removeprefix("float8_")): name for name in DTYPES if name.startswith("float8_")}
