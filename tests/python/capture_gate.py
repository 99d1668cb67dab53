"""Rows of the capture gate (op_database, jax_primitives), and what is counted of them: a table for people, JSON, counts for a golden file."""
import collections
import dataclasses
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "harness/python"), str(ROOT / "backends/python")]

from ulpscope.refusals import Reason  # noqa: E402

# A refusal for one of these is ulpscope's own to mend: the program itself gives no reason for it.
SAID = ("agrees", "agrees at the largest", "none")
FAULTS = (Reason.OWN_FAULT, Reason.UNFAITHFUL, Reason.HARNESS, Reason.VERIFY, Reason.EXPORT, Reason.UNSTABLE, Reason.VALUE_FORM)


@dataclasses.dataclass
class Row:
    op: str
    dtype: str
    direction: str  # "forward", "backward"
    sample: int
    outcome: str = ""  # "captured", "refused", "fault", "no program"
    reason: str = ""  # of a refusal: the name of its Reason
    text: str = ""
    words: tuple = ()  # the ops of its steps
    references: dict = dataclasses.field(default_factory=dict)  # value -> "agrees", "none" or how it parts from the computation in float64

    def ended(self, outcome, text=""):
        self.outcome, self.text = outcome, text
        return self

    def refused(self, error, untrue):
        """`untrue`: '' or what the program shows against the reason."""
        self.reason, text = error.reason.name, " ".join(str(error).split())
        if error.reason in FAULTS:
            return self.ended("fault", text)
        return self.ended("fault", f"{untrue}: {text}") if untrue else self.ended("refused", text)

    def name(self):
        return f"{self.op} {self.dtype} {self.direction} {self.sample}"


def faults(rows):
    return [f"{row.name()}: {row.text}" for row in rows if row.outcome == "fault"]


def wrong_references(rows):
    return [f"{row.name()}: {value}: {text}" for row in rows for value, text in row.references.items() if text not in SAID]


def counts(rows):
    """The counts of rows that a golden file holds."""
    captured = [row for row in rows if row.outcome == "captured"]
    steps = collections.Counter(word for row in captured for word in row.words)
    opaque = collections.Counter({word: count for word, count in steps.items() if word.startswith("aten::")})
    values = collections.Counter(text if text in SAID else "wrong" for row in rows for text in row.references.values())
    return {
        "ops": len({row.op for row in rows}),
        "ops captured": len({row.op for row in captured}),
        "programs": len(rows),
        "captured": {each: sum(row.direction == each for row in captured) for each in ("forward", "backward")},
        "refused": dict(sorted(collections.Counter(row.reason for row in rows if row.outcome == "refused").items())),
        "faults": len(faults(rows)),
        "no program": dict(sorted(collections.Counter(row.text for row in rows if row.outcome == "no program").items())),
        "steps": sum(steps.values()),
        "opaque steps": sum(opaque.values()),
        "opaque ops": len(opaque),
        "ops of words alone": len({row.op for row in captured if not any(word.startswith("aten::") for word in row.words)}),
        "references": {each: values[each] for each in (*SAID, "wrong")},
        "ops compared": len({row.op for row in rows if {"agrees", "agrees at the largest"} & set(row.references.values())}),
    }


def table(rows):
    """The counts as text, with the refusals by reason and the ops that stay opaque."""
    found = counts(rows)
    lines = [f"{found['programs']:6}  programs of {found['ops']} ops",
             f"{sum(found['captured'].values()):6}  captured bit by bit ({found['captured']['forward']} forward, "
             f"{found['captured']['backward']} with gradients), of {found['ops captured']} ops"]
    for reason, count in sorted(found["refused"].items(), key=lambda each: -each[1]):
        ops = sorted({row.op for row in rows if row.outcome == "refused" and row.reason == reason})
        lines.append(f"{count:6}  refused: {Reason[reason].value}: {_some(ops)}")
    lines += [f"{count:6}  no program: {text}" for text, count in found["no program"].items()]
    lines.append(f"{found['faults']:6}  faults")
    agrees = found["references"]
    lines.append(f"{agrees['agrees']:6}  references agree with float64 in every element and {agrees['agrees at the largest']} at the largest, "
                 f"of {found['ops compared']} ops; {agrees['wrong']} do not, "
                 f"{agrees['none']} values have no reference")
    opaque = collections.Counter(word for row in rows if row.outcome == "captured" for word in row.words if word.startswith("aten::"))
    share = 100 * found["opaque steps"] / max(found["steps"], 1)
    lines.append(f"{found['opaque steps']:6}  of {found['steps']} steps are opaque ({share:.0f} %), of {len(opaque)} ops: "
                 + _some([f"{word.removeprefix('aten::')} {count}" for word, count in opaque.most_common()], 12))
    return "\n".join(lines)


def _some(names, most=8):
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def write(path, rows):
    """The counts and every row, as JSON."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"counts": counts(rows), "rows": [dataclasses.asdict(row) for row in rows]}, file, indent=1)
        file.write("\n")


@dataclasses.dataclass
class Options:
    every: bool  # every op, not the sample
    update: bool  # the golden counts are written, not compared
    json: str  # a file for counts and rows; '' for none
    left: list  # what unittest is given


def options(argv, environment):
    left = [each for each in argv if each not in ("--all", "--update")]
    file = ""
    if "--json" in left:
        place = left.index("--json")
        file = left[place + 1]
        del left[place:place + 2]
    return Options("--all" in argv or bool(environment.get("ULPSCOPE_NIGHTLY")), "--update" in argv, file, left)


def judge(test, kind, rows, refused, compared, chosen):
    """Prints the table and fails `test` where a fault is left, a reference is wrong, none was compared, or a sample has other counts than its
    golden file. `refused`: lines of the harness about captured cases."""
    print(table(rows))
    if chosen.json:
        write(chosen.json, rows)
    test.assertEqual(faults(rows), [])
    test.assertEqual(refused, [])
    test.assertEqual(wrong_references(rows), [])
    test.assertGreater(compared, 0)
    if chosen.every:
        return
    golden = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.is_file() else {}
    found = {key: value for key, value in counts(rows).items() if key in FIXED}
    if chosen.update:
        GOLDEN.write_text(json.dumps({**golden, kind: found}, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        return
    test.assertEqual(found, golden.get(kind), f"{GOLDEN}: `--update` writes the counts anew")


GOLDEN = ROOT / "tests/golden/capture_gate.json"
# Counts that are the same on every machine. Whether a decomposition has a kernel's bits, and with it the rest, is the processor's.
FIXED = ("ops", "ops captured", "programs", "captured", "refused", "faults", "no program")
