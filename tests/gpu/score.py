"""Scores the verdicts of a run of the kernels: which are wrong?

usage: score.py RUN [--kept FOLDER] [--json FILE] [--jobs N]

RUN is a run folder. With --kept (what the adapter's knob keep=FOLDER left) results are looked at by themselves as well, as
tests/adversary does: a verdict that overlooks a narrow kernel is wrong only where its results are visibly not those of honest sums.
Without, every such verdict counts, and is to be looked at. Exits 1 on a wrong CONFORMS, a wrong VIOLATES, a true model that was
excluded or a false label; 2 when nothing was checked.
"""

import argparse
import collections
import json
import multiprocessing
import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE)]
sys.path += [str(ROOT / "tests/adversary"), str(ROOT / "backends/python"), str(ROOT / "tests/support")]
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import cases
import report as report_file
import table

VERDICTS = ("CONFORMS", "UNDETERMINED", "UNMODELLED", "VIOLATES")
FACETS = ("in", "prod", "acc", "mid", "out")
ROWS = table.load()
CELLS = {cell.name: cell for cell in cases.chosen()}
UNSEEN = "not looked at"


def parse(model):
    """facet -> word."""
    return dict(part.partition("=")[::2] for part in re.split(r";(?=in=|prod=|acc=|mid=|out=|cuts=)", model))


def truth_of(row, output):
    return {"out": f"{output}_rne", **row.words} if row.words and row.kind != "wrong" else {}


def agrees(facet, word, pattern, cell):
    """Whether a word is one of the true ones. The word of each operand has to be, unless the pattern names operands one by one."""
    if facet != "in" or ":" not in word:
        return re.fullmatch(pattern, word) is not None
    said = dict(each.split(":") for each in word.split(","))
    if ":" in pattern:
        true = dict(each.split(":") for each in pattern.split(","))
        return all(re.fullmatch(true_word, said.get(name, "as_is")) for name, true_word in true.items())
    return all(re.fullmatch(pattern, said.get(name, "as_is")) for name in cases.tensors(cell) if name in ("x", "w"))


def contradicted(row, cell, models):
    """[(facet, reported words, true words)] where no model has a true word, facet by facet."""
    found = []
    for facet, pattern in truth_of(row, cell.output).items():
        words = {parse(model).get(facet, "as_is" if facet == "in" else "none") for model in models}
        if words and not any(agrees(facet, word, pattern, cell) for word in words):
            found.append((facet, " | ".join(sorted(words)), pattern))
    return found


WIDE = rf"float32|float32_rz|float64|exact|compensated|split_k\(float32,\w+\)|{table.UNIT}"
SAMPLES = ("float32", "float64", "compensated", "blockfma(16,25,rz)")  # of WIDE


def is_soft(facet, words, pattern):
    """Whether both the report and the truth are sums of float32's width: that no result shows for certain."""
    said = all(re.fullmatch(WIDE, word) for word in words.split(" | "))
    return facet == "acc" and said and any(re.fullmatch(pattern, word) for word in SAMPLES)


def excluded(row, cell, proved):
    """Whether none of the models that are left is the true one, where its words are all known: "yes", of kernels whose words may mean
    something else "unsure"."""
    truth = truth_of(row, cell.output)
    if not proved or not all(facet in truth for facet in FACETS):
        return ""
    for model in proved:
        words = parse(model)
        if all(agrees(facet, words.get(facet, "as_is"), pattern, cell) for facet, pattern in truth.items()):
            return ""
    return "yes" if row.kind == "honest" and "blockfma" not in truth["acc"] else "unsure"


def honest_results(op, call, attrs):
    """(honest results, the exact value as a head and a tail), by tests/adversary where that knows the op."""
    import numpy as np
    import ops
    from products import HONEST, accumulate, exact_sum, finish
    from rounding import rounding
    from dataclasses import replace
    if op == "addmm":
        addend, a, b = (np.asarray(x).astype(np.float64) for x in call.operands)
        single = rounding("float32")
        results = [finish(single(single(single(attrs["alpha"]) * single(accumulate(a, b, recipe))) + addend), recipe, call.dtype)
                   for recipe in HONEST if recipe.acc in ("float32", "exact")]
        head, tail = exact_sum(a, b)
        return results, (attrs["alpha"] * head + addend, attrs["alpha"] * tail)
    if attrs.get("approximate") == "tanh":
        results = [ops.chain("gelu", replace(flow, form="tanh"), call) for flow in ops.honest_flows("gelu")]
        exact = ops.CHAINS["gelu"](call, ops.Flow(step="float64", acc="exact", form="tanh"))
        return results, (exact, np.zeros_like(exact))
    return ops.honest_results(op, call)


def looked_at(job):
    """[(case, class and errors)] of the results of one product of the same data."""
    import classes
    import numpy as np
    from kernel import Call
    from ulpscope_adapter.tensor import read_safetensors
    kept, digests, names, outputs = job
    cell = CELLS[names[0]]
    operands = tuple(read_safetensors(kept / f"{digest}.safetensors")["value"].numpy() for _, digest in digests)
    attrs = cases.attributes(cell)
    with np.errstate(all="ignore"):
        honest, exact = honest_results(cell.op, Call(operands=operands, dtype=cell.output, attrs=attrs), attrs)
        return [(name, classes.compare(read_safetensors(outputs[name])["y"].numpy(), honest, *exact)) for name in names]


def look(run, kept, names, jobs):
    """case -> its class, by the numbers."""
    outputs = {}
    for line in (run / "journal.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)["record"]
        if record["type"] == "result" and record.get("tensors"):
            outputs[record["case"].rpartition("/")[2]] = run / record["tensors"]["file"]
    groups = collections.defaultdict(list)
    for name in names:
        file, cell = kept / f"{name}.txt", CELLS[name]
        if file.exists() and name in outputs:
            digests = tuple(tuple(line.split()) for line in file.read_text(encoding="utf-8").splitlines())
            order = list(cases.tensors(cell))
            digests = tuple(sorted(digests, key=lambda pair, order=order: order.index(pair[0])))
            groups[cell.op, digests, cell.output, cell.attrs].append(name)
    work = [(kept, key[1], mine, {name: outputs[name] for name in mine}) for key, mine in groups.items()]
    work.sort(key=lambda job: -max(CELLS[name].k for name in job[2]))
    facts = {}
    with multiprocessing.Pool(jobs) as pool:
        for done in pool.imap_unordered(looked_at, work):
            facts.update(done)
    return facts


def rows_of(run, kept, jobs):
    """(rows, [(case, why there is no verdict)])."""
    report = report_file.load(run)
    rows, troubles = [], []
    for result in report["results"]:
        name = result["id"].rpartition("/")[2]
        cell, value = CELLS.get(name), result["values"].get("y", {})
        if cell is None or value.get("contract") not in VERDICTS:
            troubles.append((name, f"{result['status']} {result.get('reason', '')}"[:200]))
            continue
        row, proved = ROWS[cell.kernel], value.get("models_proved", [])
        if "models_proved_count" in value:
            proved = report_file.proved(run, result["id"], result["backend"], "y")
        said = value["classification"] in ("identified", "indistinguishable")
        rows.append({"cell": name, "kernel": cell.kernel, "kind": row.kind, "about": cell.about(), "status": result["status"],
                     "verdict": value["contract"], "classification": value["classification"], "label": value.get("label", ""),
                     "models": value.get("models", []), "false": contradicted(row, cell, value.get("models", [])) if said else [],
                     "excluded": excluded(row, cell, proved) if said else "", "class": UNSEEN, "rms": 0.0, "max": 0.0})
    if kept:
        facts = look(run, kept, [row["cell"] for row in rows], jobs)
        for row in rows:
            row.update(facts.get(row["cell"], {}))
    return rows, troubles


def findings(rows):
    """gate -> the rows that fall through it; those whose title ends with "(no gate)" are to be looked at."""
    found = {title: [] for title in ("wrong CONFORMS", "wrong VIOLATES", "truth excluded", "false label")}
    notes = collections.defaultdict(list)
    for row in rows:
        shows = row["class"] in ("visible", UNSEEN)
        verdict = "NONDET" if row["status"] == "NONDET" else row["verdict"]
        if row["kind"] in ("narrow", "wrong"):
            if verdict == "CONFORMS":
                unseen = notes["CONFORMS of a narrow kernel whose results are as honest ones (no gate)"]
                (found["wrong CONFORMS"] if shows else unseen).append(row)
            if verdict == "UNMODELLED":
                notes["narrow or wrong UNMODELLED (no gate)"].append(row)
        elif verdict == "VIOLATES":
            (found["wrong VIOLATES"] if row["kind"] == "honest" else notes[f"{row['kind']} VIOLATES (no gate)"]).append(row)
        if row["kind"] == "honest" and verdict == "UNMODELLED":
            notes["honest UNMODELLED (no gate)"].append(row)
        if row["kind"] == "honest" and row["class"] == "visible":
            notes["honest by the table, but its results are visibly off: is the table right? (no gate)"].append(row)
        if verdict == "NONDET" and ROWS[row["kernel"]].deterministic:
            notes["differs from run to run, which the table does not say (no gate)"].append(row)
        if row["excluded"] == "yes":
            found["truth excluded"].append(row)
        elif row["excluded"]:
            notes["truth excluded, if its words are understood (no gate)"].append(row)
        if row["false"] and row["kind"] != "open":
            # If the results err as conforming sums do, nothing shows the word to be false.
            plain = shows and not all(is_soft(*each) for each in row["false"])
            (found["false label"] if plain else notes["label that is not the truth, where it cannot be seen (no gate)"]).append(row)
    return found, notes


def _counts(rows, key, names):
    print(" " * 14 + "".join(f"{verdict:>14}" for verdict in (*VERDICTS, "NONDET", "all")))
    for name in names:
        mine = [row for row in rows if row[key] == name]
        if mine:
            seen = collections.Counter("NONDET" if row["status"] == "NONDET" else row["verdict"] for row in mine)
            print(f"{name:14}" + "".join(f"{seen[verdict]:14}" for verdict in (*VERDICTS, "NONDET")) + f"{len(mine):14}")


def show(rows, troubles):
    for name, row in ROWS.items():
        mine = [each for each in rows if each["kernel"] == name]
        if not mine:
            continue
        print(f"{name:24} {row.kind:8} {row.why}" + (f" [{row.falls} falls]" if row.falls else ""))
        for each in mine:
            numbers = "" if each["class"] == UNSEEN else f" {each['class']}, rms x{each['rms']:.3g}, max x{each['max']:.3g}"
            label = each["models"][0] if len(each["models"]) == 1 else f"{len(each['models'])} models" if each["models"] else ""
            print(f"    {each['cell'].partition('__')[2]:24} {each['verdict']:13} {each['classification']:18} {label}{numbers}")
    print()
    _counts(rows, "kind", ("honest", "formula", "open", "narrow", "wrong"))
    _counts(rows, "class", ("same bits", "within twice", "visible", UNSEEN))
    found, notes = findings(rows)
    for title, bad in (*found.items(), *notes.items()):
        print(f"\n{title}: {len(bad)}")
        for row in bad:
            numbers = "" if row["class"] == UNSEEN else f"{row['class']} rms x{row['rms']:.3g} max x{row['max']:.3g}; "
            said = "; ".join(f"{facet} said {words}, true {true}" for facet, words, true in row["false"])
            rest = said if "label" in title else row["label"] or ROWS[row["kernel"]].why
            print(f"  {row['cell']:44} {row['verdict']:12} {numbers}{rest}")
    for name, why in troubles:
        print(f"NO VERDICT {name}: {why}")
    print(f"\n{len(rows)} cases of {len({row['kernel'] for row in rows})} kernels checked, {len(troubles)} without a verdict")
    return sum(map(len, found.values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--kept", type=pathlib.Path, help="what keep=FOLDER left: look at the results by themselves, too")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows there")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    rows, troubles = rows_of(options.run, options.kept, options.jobs)
    if options.json:
        options.json.write_text("\n".join(json.dumps(row) for row in rows) + "\n", encoding="utf-8")
    bad = show(rows, troubles)
    if not rows:
        sys.exit(2)
    print(f"{len(rows) - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
