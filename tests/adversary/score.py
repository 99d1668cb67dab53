"""Scores the verdicts on kernels of known arithmetic: which are wrong?

usage: score.py [--whole] [--cells N] [--longest K] [--only REGEX] [--salt TEXT] [--jobs N] [--minutes N] [--prove] [--plant]
                [--json FILE]

Without --whole about 600 cells, in a minute or so; with it 10,000. --only '^h_' scores the held-out kernels, '^a_' a second
such set, '^n_' a third, '^q_' a fourth, '^r_' a fifth, '^f_' a sixth, '^g_' a seventh, '^k_' an eighth, '^l_' a ninth, '^d_' a
tenth, '^e_' an eleventh, '^m_' a twelfth, '^o_' a thirteenth, '^j_' a fourteenth, '^t_' a fifteenth; all are left out
otherwise.
Exits 1 on a wrong CONFORMS, a wrong VIOLATES, a true model that was excluded or a label that is false, 2 when nothing was checked
or cells came to no verdict.
--plant falsifies one verdict of each sort on its way to the score, which must then fail. ULPSCOPE_BIN: the program, else
build/release/bin/ulpscope.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "backends/python"), str(ROOT / "tests/support")]
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import cells as cell_list
import classes
import kernels as tables
import labels
import numpy as np
import ops
import report as report_file
from kernel import Call
from ulpscope_adapter.tensor import read_safetensors

ULPSCOPE = os.environ.get("ULPSCOPE_BIN", str(ROOT / "build/release/bin/ulpscope"))
VERDICTS = ("CONFORMS", "UNDETERMINED", "UNMODELLED", "VIOLATES")
CLASSES = ("honest", "accepted", classes.SAME, classes.TWICE, classes.VISIBLE)
GATES = ("wrong CONFORMS", "wrong VIOLATES", "truth excluded", "false label")
KERNELS = tables.load()


def run_batch(job):
    """The rows of one batch of cells: the harness is run on them, then every result is looked at by itself."""
    number, batch, prove, until = job
    if time.time() > until:
        return [], 0.0
    with tempfile.TemporaryDirectory(prefix="adversary-") as folder:
        folder = pathlib.Path(folder)
        (folder / "cases").mkdir()
        (folder / "kept").mkdir()
        for index, text in enumerate(cell_list.files(batch, prove)):
            (folder / f"cases/c{index}.yaml").write_text(text)
        command = [
            ULPSCOPE, "run", folder / "cases", "--adapter", HERE / "adapter.py", "-b", f"adversary:keep={folder / 'kept'}", "--no-trace",
            "-q", "-j", "1", "--seed", number, "--timeout", "120", "-o", folder / "run"
        ]
        begin = time.monotonic()
        ended = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, check=False,
                               env={**os.environ, "ULPSCOPE_PYTHON": sys.executable})
        took = time.monotonic() - begin
        if not (folder / "run/report.json").exists():
            return [{"cell": each.name, "kernel": each.kernel, "about": each.about(),
                     "trouble": ended.stderr[-300:].strip()} for each in batch], took
        report = report_file.load(folder / "run")
        for result in report["results"]:
            for name, value in result["values"].items():
                if "models_proved_count" in value:
                    value["models_proved"] = report_file.proved(folder / "run", result["id"], result["backend"], name)
        results = {result["id"].rpartition("/")[2]: result for result in report["results"]}
        outputs = _outputs(folder / "run")
        return [_row(each, results.get(each.name), outputs, folder / "kept", number) for each in batch], took


def _outputs(run):
    """Case name -> the file of its results."""
    names = {}
    for line in (run / "journal.jsonl").read_text().splitlines():
        record = json.loads(line)["record"]
        if record["type"] == "result" and record.get("tensors"):
            names[record["case"].rpartition("/")[2]] = run / record["tensors"]["file"]
    return names


def _row(cell, result, outputs, kept, seed):
    kernel = KERNELS[cell.kernel]
    row = {"cell": cell.name, "kernel": cell.kernel, "kind": kernel.kind, "about": cell.about(), "seed": seed}
    value_name = cell_list.observed(cell)
    value = (result or {}).get("values", {}).get(value_name)
    file = kept / f"{cell.name}.safetensors"
    if not value or value["contract"] not in VERDICTS or not file.exists() or cell.name not in outputs:
        return {**row, "trouble": f"{(result or {}).get('status', 'no result')} {(result or {}).get('reason', '')}"[:300]}
    tensors = read_safetensors(file)
    operands = tuple(tensors[name].numpy() for name in cell_list.operands(cell))
    call = Call(operands=operands, dtype=cell.output, attrs=cell_list.attributes(cell))
    y = read_safetensors(outputs[cell.name])[value_name].numpy()
    honest, exact = ops.honest_results(cell.op, call)
    facts = classes.compare(y, honest, *exact)
    same = facts["class"]
    allowed = kernel.accepted or _is_near(kernel, y, exact)
    facts["class"] = "honest" if kernel.kind == "honest" else "accepted" if allowed and same == classes.VISIBLE else same
    truth = kernel.truth(cell.inputs, cell.output)
    row.update(facts, verdict=value["contract"], status=result["status"], classification=value["classification"],
               models=value.get("models", []), proved=value.get("models_proved", []), truth=truth,
               says=value.get("says", []), floors=value.get("floors", {}), label=value.get("label", ""),
               states_error=value.get("states_error", False))
    row["excluded"] = _excluded(row, kernel, call, y)
    said = value["classification"] in ("identified", "indistinguishable")
    row["false"] = labels.false_words(kernel, truth, row["models"], call, y, same == classes.VISIBLE,
                                     row["floors"]) if said else []
    # Without an order of its own, a label is refuted by numbers alone: what errs as sums of the stated operands do shows nothing else.
    row["unseen"] = row["false"] if row["false"] and any(labels.errs_like(model, kernel, call, y) for model in row["models"]) else []
    if row["unseen"]:
        row["false"] = []
    return row


def _is_near(kernel, y, exact):
    """Another formula in float32 steps, no further off than a function may be: a contract constrains roundings, not accuracy."""
    return kernel.formula and np.asarray(y).dtype == np.float32 and classes.ulps(y, *exact) <= (64 if kernel.op == "gelu" else 8)


def _excluded(row, kernel, call, y):
    """"yes" where the true model was excluded ("unsure": if its words mean what they are taken for), "merged" where a proved model
    gives these very bits."""
    if kernel.recipe is None or not labels.known(row["truth"]) or not row["proved"]:
        return ""
    if row["classification"] not in ("identified", "indistinguishable") or not labels.excluded(row["truth"], row["proved"],
                                                                                               kernel.op, kernel.recipe,
                                                                                               row["floors"]):
        return ""
    if any(labels.gives_model(model, kernel, call, y) for model in row["proved"]):
        return "merged"
    return "yes" if labels.certain(row["truth"], kernel.op) else "unsure"


def findings(rows):
    """gate -> the rows that fall through it."""
    found = {gate: [] for gate in GATES}
    for row in rows:
        if row["class"] == classes.VISIBLE and _verdict(row) == "CONFORMS" and not _told(row):
            found["wrong CONFORMS"].append(row)
        if row["class"] in ("honest", "accepted") and row["verdict"] == "VIOLATES" and not _block(row):
            found["wrong VIOLATES"].append(row)
        if row["excluded"] == "yes":
            found["truth excluded"].append(row)
        if row["false"]:
            found["false label"].append(row)
    return found


def _told(row):
    """A contract speaks of roundings: what conforms and errs by more than these is within its words where the verdict states that, or states
    how far from the exact value a function is (harness/docs/contracts.md)."""
    return row["states_error"]


def _block(row):
    """Block units lie within the contract, but how the hardware aligns subnormals is not written down."""
    return row["class"] == "accepted" and KERNELS[row["kernel"]].recipe is None


def plant(rows):
    """One false verdict of each sort."""
    visible = next(row for row in rows if row["class"] == classes.VISIBLE)
    honest = [row for row in rows if row["class"] == "honest"]
    visible["verdict"], visible["states_error"], honest[0]["verdict"] = "CONFORMS", False, "VIOLATES"
    honest[1]["excluded"], honest[2]["false"] = "yes", [("acc", "bfloat16", "float32")]


def table(rows, key, names):
    """Counts of verdicts, one line for each of `names`."""
    lines = [" " * 14 + "".join(f"{verdict:>14}" for verdict in (*VERDICTS, "NONDET", "all"))]
    for name in names:
        mine = [row for row in rows if row[key] == name]
        counts = [sum(_verdict(row) == verdict for row in mine) for verdict in (*VERDICTS, "NONDET")]
        lines.append(f"{name:14}" + "".join(f"{count:14}" for count in (*counts, len(mine))))
    return "\n".join(lines)


def _verdict(row):
    return "NONDET" if row["status"] == "NONDET" else row["verdict"]


def show(rows, troubles, jobs, began):
    print(table(rows, "class", CLASSES))
    print()
    print(table(rows, "kind", ("honest", "narrow", "wrong")))
    found = findings(rows)
    found["CONFORMS that tells errors of more than float32's (no gate)"] = [
        row for row in rows if row["class"] == classes.VISIBLE and _verdict(row) == "CONFORMS" and _told(row)]
    found["honest UNMODELLED (no gate)"] = [row for row in rows if row["class"] == "honest" and row["verdict"] == "UNMODELLED"]
    found["block unit VIOLATES (no gate)"] = [row for row in rows if _block(row) and row["verdict"] == "VIOLATES"]
    found["truth excluded, if its words are understood (no gate)"] = [row for row in rows if row["excluded"] == "unsure"]
    for gate, bad in found.items():
        print(f"\n{gate}: {len(bad)}")
        for row in bad:
            print(f"  {row['cell']:32} {row['about']:44} {_detail(gate, row)}")
    merged = sum(row["excluded"] == "merged" for row in rows)
    unseen = [row for row in rows if row["unseen"]]
    print(f"\nlabel that is not the truth, where the results err as such sums do: {len(unseen)} (no gate)")
    for row in unseen:
        print(f"  {row['cell']:32} {row['about']:44} {_detail('false label', {**row, 'false': row['unseen']})}")
    print(f"\ntrue model not named, but one that gives the same bits: {merged} (no gate)")
    for row in troubles[:20]:
        print(f"NO VERDICT {row['cell']} {row['about']}: {row['trouble']}")
    print(f"{len(rows)} cells of {len({row['kernel'] for row in rows})} kernels checked, {len(troubles)} without a verdict, in "
          f"{time.monotonic() - began:.0f} s ({jobs} jobs)")
    return sum(len(found[gate]) for gate in GATES)


def _detail(gate, row):
    why = KERNELS[row["kernel"]].why
    if gate == "false label":
        unique = "the only one, " if row["classification"] == "identified" else ""
        return unique + "; ".join(f"{facet} said {said}, true {true}" for facet, said, true in row["false"])
    if gate.startswith("truth excluded"):
        return f"true {tables.spelled(row['truth'])}, {len(row['proved'])} proved, e.g. {row['proved'][0]}"
    if "CONFORMS" in gate:
        return f"rms x{row['rms']:.3g}, max x{row['max']:.3g} of honest: {why}"
    return f"{why}; {row['classification']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--whole", action="store_true", help="10,000 cells in place of 600")
    parser.add_argument("--cells", type=int, help="how many cells")
    parser.add_argument("--longest", type=int, help="the longest sum (64; 16,384 with --whole)")
    parser.add_argument("--only", default="^(?![hanqrfgkldemojt]_)",
                        help="kernels whose names match; ^h_, ^a_, ^n_, ^q_, ^r_, ^f_, ^g_, ^k_, ^l_, ^d_, ^e_, ^m_, ^o_, ^j_, ^t_: those "
                        "held out, and the sets that came after (default: all others)")
    parser.add_argument("--salt", default="", help="other cells of the same kind")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=30, help="cells of one run of the harness")
    parser.add_argument("--prove", action="store_true", help="contracts ask for proof")
    parser.add_argument("--plant", action="store_true", help="falsify verdicts: the score must fail")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no batch after so many; what was left out is said")
    parser.add_argument("--json", help="write the rows there")
    options = parser.parse_args()
    began = time.monotonic()
    chosen = [kernel for kernel in KERNELS.values() if re.search(options.only, kernel.name)]
    wanted = cell_list.choose(chosen, options.cells or (10_000 if options.whole else 600), options.salt,
                              options.longest or (16384 if options.whole else 64)) if chosen else []
    until = time.time() + 60 * options.minutes
    batches = [(index, wanted[start:start + options.batch], options.prove, until)
               for index, start in enumerate(range(0, len(wanted), options.batch))]
    rows = []
    with multiprocessing.Pool(options.jobs) as pool:
        for done, (more, took) in enumerate(pool.imap_unordered(run_batch, batches), 1):
            rows += more
            if not more:
                continue
            print(f"batch {done}/{len(batches)}: {len(more)} cells, the harness took {took:.0f} s", file=sys.stderr, flush=True)
            if options.json:
                # Whole or as it was: nothing that was scored is lost with a run that is stopped.
                written = pathlib.Path(options.json + ".new")
                written.write_text("\n".join(json.dumps(row, default=float) for row in rows))
                written.replace(options.json)
    troubles, rows = [row for row in rows if "trouble" in row], [row for row in rows if "trouble" not in row]
    rows.sort(key=lambda row: row["cell"])
    if options.plant and rows:
        plant(rows)
    bad = show(rows, troubles, options.jobs, began)
    if len(rows) + len(troubles) < len(wanted):
        print(f"{len(wanted) - len(rows) - len(troubles)} of {len(wanted)} cells were left out (--minutes {options.minutes:g})")
    if not rows or troubles:
        sys.exit(2)
    print(f"{len(rows) - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
