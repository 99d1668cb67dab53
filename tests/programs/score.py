"""Scores ulpscope's findings on programs whose arithmetic is known: is the true use named, is a conforming one accused?

usage: score.py [--count N] [--seed S] [--first I] [--only FAMILY,...] [--batch N] [--group N] [--jobs N] [--batch-minutes M] [--minutes M] [--steps N]
                [--keep FOLDER] [--json FILE] [--show N]

Runs N programs (generate.py) on every backend of the emulator (plans.BACKENDS, or those of --only) and compares report.json with
the truth, computed anew from the inputs. Exits 1 where a gate falls, 2 where nothing was looked at. --steps leaves out programs with
more steps. --keep keeps cases, inputs, truth and reports there. ULPSCOPE_BIN: the program, else build/release/bin/ulpscope.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import emulator
import generate
import plans
from accusations import GATES, judge, today
from tools import HERE, ROOT
from programs import check_account  # tests/support, which tools puts on the path
from ulpscope_adapter.tensor import read_safetensors

ULPSCOPE = os.environ.get("ULPSCOPE_BIN", str(ROOT / "build/release/bin/ulpscope"))
UNIQUE_AT_LEAST = 0.9


def run_batch(programs, backends, folder, options):
    """The report of one run of the harness, or None with its output."""
    (folder / "keep").mkdir(parents=True)
    (folder / "programs.yaml").write_text(generate.yaml(programs))
    command = [ULPSCOPE, "run", folder / "programs.yaml", "--adapter", HERE / "adapter.py", "--no-trace", "-q", "-j", options.jobs,
               "-b", ",".join(f"{name}:keep={folder / 'keep'}" for name in backends), "--seed", options.seed, "-o", folder / "run"]
    limit = min(options.until - time.monotonic(), 60 * options.batch_minutes)
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=limit, cwd=folder,
                              env={**os.environ, "ULPSCOPE_PYTHON": sys.executable})
    except subprocess.TimeoutExpired:
        return None, "out of time"
    report = folder / "run/report.json"
    if not report.exists():
        return None, f"exit code {done.returncode}: {done.stderr[-400:].strip()}"
    try:
        read, pairs = check_account(folder / "run")
    except AssertionError as error:
        return None, str(error)[-400:]
    print(f"  account: {read} values read; {pairs} pairs of groups differ in bits; 0 uncovered", file=sys.stderr, flush=True)
    return json.loads(report.read_text()), ""


def score_batch(programs, backends, folder, report):
    """Rows of (program, backend): findings, and today's findings on the program as a whole."""
    results = {(plans.program_of(r["id"]), r["backend"].partition(":")[0]): r for r in report["results"] if "~" not in r["id"]}
    rows = []
    for program in programs:
        kept = folder / "keep" / f"{program.name}.safetensors"
        if not kept.exists():
            rows.append({"program": program.name, "backend": "", "trouble": "no backend was given its inputs"})
            continue
        inputs = {name: tensor.numpy() for name, tensor in read_safetensors(kept).items()}
        for backend in backends:
            result = results.get((program.name, backend))
            truth = generate.truth_rows(program, backend, inputs)
            row = {"program": program.name, "backend": backend, "steps": len(program.steps), "truth": truth}
            if result is None:
                rows.append({**row, "trouble": "no result"})
                continue
            row["findings"] = [vars(each) for each in judge(truth, result, opening_shows(program, backend, inputs))]
            row["said_of_steps"] = bool(result.get("steps"))
            row["honest"] = plans.plan(backend, program.name, program.steps, program.dtypes()).honest
            row["today"] = today(truth, result) if row["honest"] else []
            row["classifications"] = [value["classification"] for value in result.get("values", {}).values()]
            rows.append(row)
    return rows


def opening_shows(program, backend, inputs):
    """Whether what the program observes has other bits in the opened run."""
    plan = plans.plan(backend, program.name, program.steps, program.dtypes())
    if not plan.opened_differs:
        return False
    asked, opened = (emulator.run(program.steps, inputs, each) for each in (plan, plan.opened()))
    return any(not emulator.same_bits(asked[name], opened[name]) for name in program.observe)


def false_divergences(report, rows):
    """Sentences that find a difference of precision between honest backends that have none."""
    honest = {(row["program"], row["backend"]): row for row in rows if row.get("honest")}
    found = []
    for each in report["divergences"]:
        names = [name.partition(":")[0] for group in each["backends"] for name in group]
        kin = sum(any(name in group for name in names) for group in plans.ALIKE) <= 1
        product = "product" in each["sentence"]
        kin = kin and not (product and rounds_products(each, honest))
        faultless = all((plans.program_of(each["case"]), name) in honest for name in names) and set(names) <= set(plans.HONEST)
        if each["kind"] == "precision" and faultless and (kin or not product and "wide_sums" not in names):
            found.append(f"{each['case']}: {each['sentence']}")
    return found


def rounds_products(divergence, honest):
    """Whether it is true that one side rounds the products of the value and the other does not: a sum whose lanes take one product each
    rounds it, as a tree does, and one that adds each product to the ones before it does not."""
    program, value = plans.program_of(divergence["case"]), divergence.get("value")

    def may_round(name):
        steps = honest.get((program, name.partition(":")[0]), {}).get("truth", {}).get("steps", [])
        return any("float32" in row["products"] for row in steps if row["value"] == value)

    speaker = next((group for group in divergence["backends"] if divergence["sentence"].startswith(tuple(group))), [])
    others = [name for group in divergence["backends"] if group is not speaker for name in group]
    told = " rounds " in divergence["sentence"].partition(";")[0] or " round " in divergence["sentence"].partition(";")[0]
    return bool(told and speaker and all(map(may_round, speaker)) and not any(map(may_round, others)))


def summary(rows, sentences):
    """The numbers of a score."""
    counts, families = collections.Counter(), collections.defaultdict(collections.Counter)
    for row in rows:
        for each in row.get("findings", []):
            kind = each["place"].partition(" ")[0]
            state = ("planted" if each["planted"] else "honest") + ("" if each["visible"] else " invisible")
            counts[(kind, state, each["what"])] += 1
            if each["what"] in GATES:
                families[row["backend"]][each["what"]] += 1
    uses = {key: n for key, n in counts.items() if key[0] == "use"}
    visible = sum(n for (_, state, _), n in uses.items() if "invisible" not in state)
    unique = sum(n for (_, state, what), n in uses.items() if "invisible" not in state and what in ("unique", "named equivalent"))
    planted = {what: sum(n for (_, state, w), n in uses.items() if state == "planted" and w == what)
               for what in ("unique", "named equivalent", "loose", "truth excluded", "false accusation", "unmodelled", "not told")}
    scored = [row for row in rows if "findings" in row]
    honest = [row for row in scored if row["honest"]]
    return {
        "results": len(scored), "programs": len({row["program"] for row in scored}), "troubles": [row for row in rows if "trouble" in row],
        "with_steps": sum(row["said_of_steps"] for row in scored),
        "steps": sum(n for (kind, _, what), n in counts.items() if kind == "step" and what in ("modelled", "unmodelled")),
        "uses": sum(uses.values()), "visible_uses": visible, "unique_uses": unique, "planted_visible_uses": planted,
        "gates": {gate: sum(n for (_, _, what), n in counts.items() if what == gate) for gate in GATES},
        "false_divergences": sentences, "by_backend": {name: dict(each) for name, each in sorted(families.items())},
        "counts": {" / ".join(key): n for key, n in sorted(counts.items())},
        "today": {"honest": len(honest), "accused": sum(bool(row["today"]) for row in honest),
                  "unmodelled": sum("unmodelled" in row["classifications"] for row in honest)}
    }


def show(rows, total, options):
    print(f"{total['programs']} programs, {total['results']} results, {total['steps']} steps and {total['uses']} uses looked at "
          f"({total['visible_uses']} of them show)")
    print("\nplace / truth / said".ljust(60) + "count")
    for key, n in total["counts"].items():
        print(f"  {key:56} {n:7}")
    seen = total["planted_visible_uses"]
    asked = sum(seen.values())
    held = asked - seen["truth excluded"] - seen["false accusation"] - seen["unmodelled"] - seen["not told"]
    print(f"\nplanted uses that show: the true one is in the named set {held} of {asked}"
          f" ({seen['unmodelled']} unmodelled, {seen['not told']} not told)")
    if total["visible_uses"]:
        print(f"uses named uniquely: {total['unique_uses']} of {total['visible_uses']} that show "
              f"({total['unique_uses'] / total['visible_uses']:.3f}, at least {UNIQUE_AT_LEAST})")
    print(f"differences of precision told of honest backends alone: {len(total['false_divergences'])}")
    print(f"values as wholes (without steps): {total['today']['accused']} of {total['today']['honest']} honest results are accused, "
          f"{total['today']['unmodelled']} unmodelled")
    for gate in GATES:
        bad = [(row, each) for row in rows for each in row.get("findings", []) if each["what"] == gate]
        print(f"\n{gate}: {len(bad)}" + (f" ({GATES[gate]})" if bad else ""))
        for row, each in bad[:options.show]:
            print(f"  {row['program']:10} {row['backend']:14} {each['place']:16} {each['detail']}")
    for sentence in total["false_divergences"][:options.show]:
        print(f"  FALSE DIVERGENCE {sentence}")
    for row in total["troubles"][:options.show]:
        print(f"  NO VERDICT {row['program']} {row['backend']}: {row['trouble']}")


def exit_code(total):
    """0, 1 where a gate falls, 2 where nothing was looked at."""
    if not total["results"] or not total["with_steps"] or not total["uses"] or total["troubles"]:
        return 2
    seen = total["planted_visible_uses"]
    lost = any(total["gates"].values()) or total["false_divergences"] or seen["unmodelled"] + seen["not told"] > 0
    rare = total["visible_uses"] and total["unique_uses"] < UNIQUE_AT_LEAST * total["visible_uses"]
    return 1 if lost or rare else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=40, help="programs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--steps", type=int, default=generate.MOST, help="leave out programs with more steps")
    parser.add_argument("--only", help="backends of the emulator, joined by commas")
    parser.add_argument("--batch", type=int, default=4, help="programs of one run of the harness")
    parser.add_argument("--group", type=int, default=5, help="faulty backends of one run of the harness")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--batch-minutes", type=float, default=10, help="no verdict for a batch that takes longer")
    parser.add_argument("--minutes", type=float, default=600, help="stop after so many; what was left out is said")
    parser.add_argument("--keep", help="a new folder for cases, inputs, truth and run folders")
    parser.add_argument("--json", help="write the rows and the summary there")
    parser.add_argument("--show", type=int, default=20, help="examples of each gate")
    options = parser.parse_args()
    options.until = time.monotonic() + 60 * options.minutes
    backends = options.only.split(",") if options.only else list(plans.BACKENDS)
    if unknown := set(backends) - set(plans.BACKENDS):
        parser.error(f"no backend is called {', '.join(sorted(unknown))}")
    # Honest backends are compared with each other; every other one differs from all of them.
    honest, faults = [name for name in backends if name in plans.HONEST], [name for name in backends if name in plans.FAULTS]
    groups = [group for group in (honest, *(faults[i:i + options.group] for i in range(0, len(faults), options.group))) if group]
    made, index = [], options.first
    while len(made) < options.count:
        one = generate.program(options.seed, index)
        made += [one] if len(one.steps) <= options.steps else []
        index += 1
    rows, sentences = [], []
    with tempfile.TemporaryDirectory(prefix="programs-") as scratch:
        base = pathlib.Path(options.keep or scratch).resolve()
        for start in range(0, len(made), options.batch):
            batch, folder, began = made[start:start + options.batch], base / f"batch{start // options.batch}", time.monotonic()
            for number, group in enumerate(groups):
                report, why = run_batch(batch, group, folder / f"group{number}", options)
                if report is None:
                    rows += [{"program": each.name, "backend": ",".join(group), "trouble": why} for each in batch]
                    continue
                more = score_batch(batch, group, folder / f"group{number}", report)
                rows += more
                sentences += false_divergences(report, more)
                (folder / f"group{number}/truth.json").write_text(json.dumps([row["truth"] for row in more if "truth" in row], indent=1))
            if time.monotonic() > options.until:
                break
            print(f"{start + len(batch)} of {len(made)} programs: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    total = summary(rows, sentences)
    show(rows, total, options)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"summary": total, "rows": rows}))
    code = exit_code(total)
    if code == 2:
        print("nothing was scored: " + ("the report tells nothing of steps" if total["results"] and not total["with_steps"] else "see above"))
    sys.exit(code)


if __name__ == "__main__":
    main()
