"""The table of knobs (harness/words/knobs.cc): knobs.json beside this file is `ulpscope list knobs --json`."""

import functools
import json
import os


@functools.lru_cache(maxsize=None)
def _rows():
    with open(os.path.join(os.path.dirname(__file__), "knobs.json"), encoding="utf-8") as file:
        return json.load(file)


def _devices(row, backend):
    """The devices on which a backend takes the knob, "" being every one."""
    takers = [taker.partition("@") for taker in row["backends"].split(",")]
    return [device for name, _, device in takers if name in (backend, "*")]


def offered(backend, device):
    """knob -> values, the default first, of what a backend takes on a device ("cuda:1" is a "cuda")."""
    kind = device.partition(":")[0]
    return {
        row["knob"]: row["values"].split(",")
        for row in _rows() if {"", kind} & set(_devices(row, backend))
    }


def reasons(backend, device):
    """knob -> why it is not taken, of all that this backend does not take on this device."""
    taken = offered(backend, device)
    return {
        row["knob"]: f"{backend} on {device} does not take it ({row['about']}; of {row['backends'].replace(',', ', ')})"
        for row in _rows() if row["knob"] not in taken
    }
