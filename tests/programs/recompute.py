"""Computes each step of recorded programs again, from the operands that each backend had, and reports which descriptions hold.

usage: recompute.py RUN_FOLDER --inputs FOLDER [--case TEXT] [--backend TEXT] [--all]

RUN_FOLDER: of `ulpscope run`, with the runs in which every value is observed (ID~opened). FOLDER: programs and inputs as keep.py kept
them, for the same seed. One line for each step: the simplest descriptions that hold in every element, and how many elements all
as stored holds in. --all shows every description that holds.
"""

import argparse
import json
import pathlib
import sys

import tools  # noqa: F401  (the path of the SDK)
from described import VIEWS, Description, Program
from ulpscope_adapter.request import Step
from ulpscope_adapter.tensor import read_safetensors


def arrays(path):
    return {name: tensor.numpy() for name, tensor in read_safetensors(path).items()}


def results(folder):
    """(case, backend) -> the file of its tensors, opened runs as cases of their own."""
    folder, found = pathlib.Path(folder), {}
    for line in (folder / "journal.jsonl").read_text().splitlines():
        record = json.loads(line)["record"]
        if record.get("type") == "result" and record.get("tensors"):
            found[(record["case"], record["backend"])] = folder / record["tensors"]["file"]
    return found


def kept(folder, case):
    """(steps, inputs) of a case as keep.py kept them."""
    path = str(pathlib.Path(folder) / case.replace("/", "--"))
    program = json.loads(pathlib.Path(path + ".json").read_text())
    steps = [Step(op=row["op"], of=tuple(row["of"]), name=row["name"], attrs=row["attrs"]) for row in program["steps"]]
    return steps, arrays(path + ".safetensors")


class Recomputed:
    """One case on one backend. kept_bits: whether the instrumented run gave the same bits for the values of the case."""

    def __init__(self, files, inputs_folder, case, backend):
        steps, inputs = kept(inputs_folder, case)
        asked = arrays(files[(case, backend)])
        opened = arrays(files[(f"{case}~opened", backend)]) if (f"{case}~opened", backend) in files else asked
        self.kept_bits = {name: array.tobytes() == opened[name].tobytes() for name, array in asked.items()}
        self.program = Program(steps, inputs, opened)
        self.found = self.program.describe()

    def lines(self, everything=False):
        for name, held in self.found.items():
            step = self.program.steps[name]
            plain = self.program.plain[name][1]
            least = held[0][0].weight() if held else None
            shown = [f"{description} {count}" for description, count in held if everything or description.weight() == least]
            of = ", ".join(str(x) for x in step.of)
            yield f"{name} = {self.program.dtype(step)} {step.op}({of})", " | ".join(shown) or "NOTHING HOLDS", str(plain)

    def holds(self, value, **words):
        """The Count of one description; words: reads, rounded, form of described.Description."""
        return self.program.hold(self.program.steps[value], Description(**words))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("--inputs", required=True)
    parser.add_argument("--case", default="")
    parser.add_argument("--backend", default="")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    files, looked = results(options.run), 0
    for case, backend in files:
        if "~" in case or options.case not in case or options.backend not in backend:
            continue
        one = Recomputed(files, options.inputs, case, backend)
        lost = [name for name, same in one.kept_bits.items() if not same]
        print(f"{case} @ {backend}" + (f"   OPENING CHANGED {', '.join(lost)}" if lost else ""))
        for head, said, plain in one.lines(options.all):
            looked += 1
            print(f"  {head:44} {said}" + ("" if said.startswith("all as stored") else f"   [all as stored: {plain}]"))
    print(f"{looked} steps looked at")
    sys.exit(0 if looked else 2)


__all__ = ["Recomputed", "VIEWS", "arrays", "kept", "results"]

if __name__ == "__main__":
    main()
