"""Each backend of the registry against its own adapter: what is claimed is what is offered, knob by knob."""

import json
import os
import shutil

from worker import PYTHON, ROOT, XLA_PYTHON, Adapter, main

BIN = os.environ.get("ULPSCOPE_BIN_DIR", os.path.join(ROOT, "build", "release", "bin"))
PLACES = (("{bin}", BIN), ("{root}", ROOT), ("{python}", PYTHON), ("{venv:torch-xla}", XLA_PYTHON))


def command(row):
    words = list(row["adapter"])
    for place, path in PLACES:
        words = [word.replace(place, path) for word in words]
    return words


def test_an_adapter_offers_every_knob_that_the_registry_claims_and_no_other():
    with open(os.path.join(ROOT, "backends", "registry.jsonl")) as file:
        rows = [json.loads(line) for line in file]
    compared = 0
    for row in rows:
        if "absent" in row or not all(shutil.which(word) or os.path.exists(word) for word in command(row)[:1]):
            print(f"     ({row['backend']} is not here)")
            continue
        device = row.get("device", "cpu")
        with Adapter(command(row), row["backend"], device=device, stay_on_error=True) as worker:
            if worker.hello["error"]:
                print(f"     ({row['backend']}: {worker.hello['error']})")
                continue
            knobs = [knob.partition("@") for knob in row["knobs"]]
            claimed = {name for name, _, where in knobs if where in ("", device)}
            assert set(worker.hello["knobs"]) == claimed, (row["backend"], set(worker.hello["knobs"]) ^ claimed)
            compared += 1
    assert compared >= 3, compared


if __name__ == "__main__":
    main(globals())
