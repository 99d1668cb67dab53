"""The report of check_ops(): a row for each distinct call, what violates, and what is outside of the vocabulary."""

import pathlib
import textwrap
from collections import Counter
from dataclasses import dataclass, field

import torch

from ulpscope.refusals import Reason

_SHORTER = (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i"))


@dataclass
class OpCalls:
    """Calls of one op whose operands have the same dtypes, shapes and strides, and whose other arguments are the same.

    op        as the dispatcher calls it: "aten::mm", "aten::sum.dim_IntList", "library::op"
    operands  its tensors as text ("bf16[8,16]", with strides where they are not row-major), `arguments` everything else
    calls     how many there are; `places` {(module, file, line): calls}
    place     of the judged call, the one furthest from the same op in float64: 'module file.py:12'
    inside    the custom op whose Python makes these calls; '' for none
    status    "conforms": computed in float32 or better and rounded once; "violates"; "open": the bits decide neither,
              `label` is the likely class; "view": it computes nothing; "not judged": `reason`, if it is one of the closed
              list, and `text` state why
    label     the precision that the recorded bits show, `max_ulp` the largest error against the exact result, in units in the last place
    rms       the root mean square error against the op in float64, relative to that of the result; None if float64 is
              no evidence
    again     {backend: '' if it gives the recorded bits, else its result}
    """

    op: str
    operands: list
    arguments: list
    calls: int
    places: dict
    call: object = None  # recording.Call
    place: str = ""
    inside: str = ""
    meant: bool = False  # it is judged by the definition in `known`
    status: str = "not judged"
    reason: object = None
    text: str = ""
    label: str = ""
    max_ulp: float | None = None
    rms: float | None = None
    again: dict = field(default_factory=dict)
    bits: dict = field(default_factory=dict)  # value -> the digest of the recorded bits
    beside: dict = field(default_factory=dict)  # backend -> its result in report.json
    run_dir: pathlib.Path | None = None
    id: str = ""
    elements: int = 0
    checked: int = 0

    @classmethod
    def of(cls, group):
        """The row of a recording.Group."""
        call = group.kept
        place = call.place() if call else _place(next(iter(group.places)))
        return cls(op=group.op, operands=[_tensor(each) for each in _leaves(group.key[2:]) if each[0] == "tensor"],
                   arguments=[each[1] for each in _leaves(group.key[2:]) if each[0] != "tensor"], calls=group.calls,
                   places=dict(group.places), call=call, place=place, inside=group.key[1], rms=call.rms if call else None)

    def judged(self, case, result):
        """Takes the judge's findings about the recorded values."""
        values = [result["values"][each] for each in case.observe if each in result["values"]]
        if not values:
            self.text = result["reason"] or result["outcome"].get("text", "")
            return
        self.bits = {name: each["bits"] for name, each in result["values"].items()}
        contracts = {each["contract"] for each in values}
        if case.contract is None and any(each.get("cuts") for each in values):
            contracts = set(map(_without_contract, values))
        self.status = "violates" if "VIOLATES" in contracts else "open" if "UNDETERMINED" in contracts else "conforms"
        self.max_ulp = max((each["max_ulp"] for each in values if isinstance(each.get("max_ulp"), (int, float))), default=None)
        if self.status == "open" and self.max_ulp == 0:  # the exact result: no rounding shows, whatever was demanded
            self.status = "conforms"
        self.label = "; ".join(dict.fromkeys(as_text(each) for each in values))
        self.elements, self.checked = (sum(each[key] for each in values) for key in ("elements", "checked"))
        self.text = result["reason"]

    def __str__(self):
        error = "" if self.max_ulp is None else f"{self.max_ulp:.3g} ulp"
        error += "" if self.rms is None or not error else f", rms {self.rms:.1e}"
        what = self.label or (self.text if self.reason in (None, Reason.HARNESS, Reason.OWN_FAULT) else self.reason.value)
        where = f"{self.place}{f' (inside of {self.inside})' if self.inside else ''}"
        return f"{self.calls:6}  {self.op.removeprefix('aten::'):24} {' '.join(self.operands):40} {self.status:10} {error:24} {what}  {where}"


def _without_contract(value):
    """The verdict that a contract would have, from the class alone: by steps inside that were certainly rounded, and by
    narrow sums."""
    facets, cuts = value.get("facets", {}), value.get("cuts", {})
    narrow = [words for words in (facets.get("acc", []), facets.get("mid", []), *cuts.values()) if words and not any(map(_is_wide, words))]
    if narrow:
        return "VIOLATES"
    return "UNDETERMINED" if value.get("rests_on_likelihood") or not value.get("fits", True) else "CONFORMS"


def _is_wide(word):
    return word in ("none", "exact", "compensated") or word.startswith(("float32", "float64", "blockfma"))


def as_text(value):
    """The class of a value of report.json in words."""
    return value.get("label") or value["classification"]


def _leaves(described):
    """The ends of what recording.described() nests."""
    if isinstance(described, tuple) and described and isinstance(described[0], str) and not isinstance(described[-1], tuple):
        yield described
        return
    for each in described if isinstance(described, tuple) else ():
        yield from _leaves(each)


def _tensor(found):
    _, dtype, shape, strides, *_ = found
    name = str(dtype).removeprefix("torch.")
    for word, short in _SHORTER:
        name = name.replace(word, short)
    text = f"{name}[{','.join(map(str, shape))}]"
    row_major = torch.empty(shape, device="meta").stride()
    other = any(one != two for one, two, extent in zip(strides, row_major, shape) if extent > 1)
    return text + (f"({','.join(map(str, strides))})" if other else "")


def _place(found):
    module, file, line = found
    return f"{module} {pathlib.Path(file).name}:{line}".strip() if file else module


@dataclass(repr=False)
class OpsReport:
    """The result of check_ops(). `str(report)` is the table: first rows that violate, then the other judged rows, then
    the rest.

    rows           an OpCalls for each distinct call, in the order of the run
    notes          what a reader has to know about the run
    same_as_plain  whether `f` gives the same bits without being recorded; None where it was not run again
    run_dir        the folder of the runs, for `ulpscope explain ID@as-run --run DIR`
    seconds        by the clock
    """

    name: str
    rows: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    same_as_plain: bool | None = None
    run_dir: pathlib.Path | None = None
    seconds: float = 0.0
    folder: object = field(default=None, compare=False)

    @property
    def ok(self):
        """Nothing that was judged violates."""
        return not self.violations

    @property
    def violations(self):
        """The rows that were shown to round inside, or to compute in less than float32; the most frequent first."""
        return sorted((each for each in self.rows if each.status == "violates"), key=lambda each: -each.calls)

    @property
    def judged(self):
        """The rows whose precision was judged."""
        return [each for each in self.rows if each.status in ("conforms", "open", "violates")]

    @property
    def outside(self):
        """{Reason: calls} of calls that no case can express, the most frequent first."""
        found = Counter()
        for each in self.rows:
            if each.reason is not None:
                found[each.reason] += each.calls
        return dict(found.most_common())

    def share(self, rows):
        """The share of all calls that compute something which these rows have."""
        whole = sum(each.calls for each in self.rows if each.status != "view")
        return sum(each.calls for each in rows) / whole if whole else 0.0

    def _again(self):
        """Sentences that compare the backends' results with the recorded bits."""
        for backend in dict.fromkeys(key for each in self.rows for key in each.again):
            rows = [each for each in self.rows if backend in each.again]
            other = [each for each in rows if each.again[backend]]
            yield f"{backend} gives the recorded bits in {len(rows) - len(other)} of {len(rows)} distinct calls that it ran again"
            for each in other[:8]:
                yield f"{backend}: {each.op} {' '.join(each.operands)}, {each.place}: {each.again[backend]}"

    def __str__(self):
        views = sum(each.calls for each in self.rows if each.status == "view")
        counted = sum(each.calls for each in self.rows) - views
        judged, violations = self.judged, self.violations
        lines = [f"{self.name}: {counted} calls that compute and {views} that only show memory otherwise; "
                 f"{self.share(judged):.0%} of the calls judged ({len(judged)} distinct), {self.seconds:.0f} s"]
        for each in violations:
            lines += textwrap.wrap(f"{each.op} {' '.join(each.operands)}, {each.place}: {each.text or each.label} ({each.calls} calls)", 116,
                                   initial_indent="  !  ", subsequent_indent="     ")
        lines += [] if violations else ["no op is shown to compute in less than float32, or to round before its store"]
        for text in (*self.notes, *self._again()):
            lines += textwrap.wrap(text, 116, initial_indent="  *  ", subsequent_indent="     ")
        if self.outside:
            lines.append("outside of the vocabulary:")
            for reason, calls in self.outside.items():
                ops = sorted({each.op.removeprefix("aten::") for each in self.rows if each.reason is reason})
                lines += textwrap.wrap(f"{calls} calls, {calls / max(counted, 1):.1%}: {reason.value} ({', '.join(ops)})", 116,
                                       initial_indent="     ", subsequent_indent="     ")
        order = {"violates": 0, "open": 1, "conforms": 1, "not judged": 2}
        rows = sorted((each for each in self.rows if each.status != "view"), key=lambda each: order[each.status])
        return "\n".join([*lines, "", " calls  op                       operands", *(str(each).rstrip() for each in rows)])

    __repr__ = __str__
