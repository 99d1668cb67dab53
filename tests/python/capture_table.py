#!/usr/bin/env python3
"""Measures what capture and check() make of the blocks of blocks64.py: `capture_table.py --out FOLDER [NAME ...]` prints one row each.

A row: seconds from the function to the findings, on which backends the case has the function's bits, steps judged, steps that no model
explains, findings; the run folders stay under --out, with every finding in FOLDER/NAME/findings.txt. Exits 1 if a case does not lint, an
unfaithful backend is not reported, or a block takes longer than --most seconds.
"""
import argparse
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "harness/python"), str(ROOT / "backends/python"), str(ROOT / "tests/support"), str(pathlib.Path(__file__).parent)]

import blocks64  # noqa: E402
import ulpscope  # noqa: E402
from programs import call  # noqa: E402
from ulpscope import faithful, places  # noqa: E402

BACKENDS = ("torch-eager", "torch-aot-eager", "torch-inductor")


def faithfulness(case, f, args):
    """backend -> '' or the difference, as capture(verify=...) reports it."""
    said = {}
    for backend in BACKENDS:
        try:
            faithful.check(case, f, args, backends=[backend])
            said[backend] = ""
        except Exception as error:  # the function itself may refuse (out= of another dtype), which is for the row to say
            said[backend] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return said


def row(name, f, args, options, out):
    began = time.monotonic()
    case = ulpscope.capture(f, args, name=name, verify=(), **options)
    captured = time.monotonic()
    folder = out / name
    folder.mkdir(parents=True)
    linted = call(places.binary(), "lint", case.save(folder / f"{name}.yaml"))
    said = faithfulness(case, f, args)
    compared = time.monotonic()
    report = ulpscope.check(case, backends=list(BACKENDS), out=folder / "run")
    done = time.monotonic()
    classes = [label for backend in BACKENDS for *_, label in report.steps(backend)]
    unmodelled = [f"{backend} {value}" for backend in BACKENDS for value, _, label in report.steps(backend) if "unmodelled" in label]
    unmodelled += [f"{backend} {value}" for value, cells in report.matrix.items() for backend, label in cells.items() if "unmodelled" in label]
    text = [*report.findings, "", *report.notes, "", *(f"{each}: {why}" for each, why in said.items() if why), *unmodelled, "", report.console]
    (folder / "findings.txt").write_text("\n".join(text), encoding="utf-8")
    return {"name": name, "lint": linted.returncode == 0, "seconds": done - began, "capture": captured - began, "compare": compared - captured,
            "run": done - compared, "unfaithful": {each: why for each, why in said.items() if why}, "steps": len(classes),
            "unmodelled": len(unmodelled), "findings": len(report.findings)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--most", type=float, default=60)
    parser.add_argument("names", nargs="*")
    chosen = parser.parse_args()
    blocks = blocks64.made()
    rows = []
    print(f"{'block':18}{'s':>6}{'capture':>9}{'compare':>9}{'run':>6}  {'lint':6}{'steps':>6}{'unmodelled':>12}{'findings':>10}  not the same bits")
    for name in chosen.names or blocks:
        found = row(name, *blocks[name], chosen.out)
        rows.append(found)
        print(f"{name:18}{found['seconds']:6.1f}{found['capture']:9.1f}{found['compare']:9.1f}{found['run']:6.1f}  {str(found['lint']):6}"
              f"{found['steps']:6}{found['unmodelled']:12}{found['findings']:10}  {found['unfaithful'] or 'none'}", flush=True)
    bad = [each["name"] for each in rows if not each["lint"] or each["seconds"] > chosen.most]
    print(f"{len(rows) - len(bad)} passed, {len(bad)} failed" + (": " + ", ".join(bad) if bad else ""))
    return 1 if bad or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
