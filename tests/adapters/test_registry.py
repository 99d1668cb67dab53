"""Each backend of the registry against its own adapter: the knobs that the table gives it are the ones that it offers."""

import json
import os
import shutil

from worker import PYTHON, ROOT, XLA_PYTHON, Adapter, main

from ulpscope_adapter.knobs import offered  # worker.py says where it lies

BIN = os.environ.get("ULPSCOPE_BIN_DIR", os.path.join(ROOT, "build", "release", "bin"))
PLACES = (("{bin}", BIN), ("{root}", ROOT), ("{python}", PYTHON), ("{venv:torch-xla}", XLA_PYTHON))


def command(row):
    words = list(row["adapter"])
    for place, path in PLACES:
        words = [word.replace(place, path) for word in words]
    return words


def test_an_adapter_offers_every_knob_that_it_is_said_to_take_and_no_other():
    with open(os.path.join(ROOT, "backends", "registry.jsonl")) as file:
        rows = [json.loads(line) for line in file]
    compared = 0
    for row in rows:
        if row.get("hidden"):
            continue  # a test's subject has knobs that no case sets
        if "absent" in row or not all(shutil.which(word) or os.path.exists(word) for word in command(row)[:1]):
            print(f"     ({row['backend']} is not here)")
            continue
        device = row.get("device", "cpu")
        with Adapter(command(row), row["backend"], device=device, stay_on_error=True) as worker:
            if worker.hello["error"]:
                print(f"     ({row['backend']}: {worker.hello['error']})")
                continue
            taken = set(offered(row["backend"], device))
            unsaid = {"backend_name"} if row["backend"] == "torch-custom" else set()  # chooses what runs
            assert set(worker.hello["knobs"]) - unsaid == taken, (row["backend"], set(worker.hello["knobs"]) ^ taken)
            assert all(worker.hello["knobs"].values()), (row["backend"], worker.hello["knobs"])
            compared += 1
    assert compared >= 3, compared


if __name__ == "__main__":
    main(globals())
