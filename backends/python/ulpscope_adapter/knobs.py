"""The table of knobs (harness/words/knobs.cc): what a backend offers, and why it does not take what it does not."""

import os
import sys

from ulpscope_adapter.request import Unsupported
from ulpscope_adapter.words import WORDS

_ROWS = WORDS["knobs"]


def _devices(row, backend):
    """The devices on which a backend takes the knob, "" being every one."""
    takers = [taker.partition("@") for taker in row["backends"]]
    return [device for name, _, device in takers if name in (backend, "*")]


def offered(backend, device):
    """knob -> values, the default first, of what a backend takes on a device ("cuda:1" is a "cuda")."""
    kind = device.partition(":")[0]
    return {
        knob: row["values"]
        for knob, row in _ROWS.items() if {"", kind} & set(_devices(row, backend))
    }


def reasons(backend, device):
    """knob -> why it is not taken, of all that this backend does not take on this device."""
    taken = offered(backend, device)
    return {
        knob: f"{backend} on {device} does not take it ({row['about']}; of {', '.join(row['backends'])})"
        for knob, row in _ROWS.items() if knob not in taken
    }


def own_environment(asked):
    """{"env": [NAME]} of the .venv-NAME that this interpreter reports to belong to; {} if none was requested."""
    if asked is None:
        return {}
    folder = os.path.basename(sys.prefix)
    if folder != ".venv-" + asked:
        raise Unsupported(f"knob env={asked}: this interpreter belongs to {folder}")
    return {"env": [folder.removeprefix(".venv-")]}
