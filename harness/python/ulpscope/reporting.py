"""The Report of a run, findings first, with the Ledger of each difference and the Budget of each error."""

import html
import pathlib
import re
import textwrap
from dataclasses import dataclass, field

from ulpscope.case import Case

# Statuses that need attention (verdicts); the rest conforms or was not requested.
_BAD = ("FAIL", "XPASS", "CRASH", "TIMEOUT", "PROTOCOL", "OOM", "TAINTED", "NONDET", "HARNESS", "UNMODELLED", "INCONCLUSIVE")


class Ledger:
    """The difference of one observed value between two groups of backends, booked step by step. `str` is a table.

    value, backends   the value that differs, and the two groups of backends (two lists of names)
    elements, of      how many elements differ, of how many
    rms, atol, rtol   of the difference; the tolerances, each without the other, that would just have passed
    entries           dicts: step, share of the difference (they add up to 1), elements that it changes, rms, max_abs, explained, causes;
                      at: module, file and line of the step, if the case has them
    causes            dicts, the entries by cause: share, steps, explained, sentence of the heaviest, places (texts)
    explained         the share that has a cause; order_only: the part of it in which only the order of summation or last bits differ
    remedies          dicts: settings that were run on this program: backend, setting, source, elements that differ with it; `str`
                      shows those with which fewer do
    nearness          None, or a dict: which backend is `nearer` to the exact result ('' for neither), and the `errors` of both
    """

    def __init__(self, data):
        self.nearness = None
        for key, each in data.items():
            setattr(self, key, each)

    def __str__(self):
        one, other = (group[0] for group in self.backends)
        lines = [f"{self.value}: {one} against {other}, {self.elements} of {self.of} elements differ, rms {self.rms:.2g}"]
        for cause in self.causes:
            more = f" The same in {cause['steps'] - 1} more steps." if cause["steps"] > 1 else ""
            text = cause["sentence"] + more if cause["explained"] else f"not explained. {cause['sentence']}".strip() + more
            lines += textwrap.wrap(text, 108, initial_indent=f"  {100 * cause['share']:6.1f} %  ", subsequent_indent=" " * 12)
            if cause["steps"] > 1 or self.left_out:
                lines += [" " * 12 + place for place in cause["places"]]
        if self.nearness:
            errors = ", ".join(f"{each['backend']} rms {each['rms']:.2g}" for each in self.nearness["errors"])
            lines.append(f"  nearer to exact: {self.nearness['nearer'] or 'neither'} ({errors})")
        lines += [f"  with {each['setting']} {each['backend']} differs in {each['elements']} of {self.of} elements"
                  for each in self.remedies if each["elements"] < self.elements]
        return "\n".join(lines)

    __repr__ = __str__


class Budget:
    """The error of one observed value against the exact program, booked step by step. `str` is a table.

    value, backends   the value, and the backends (which stored the same bits of it and of all steps)
    rms               root mean square of the error over `elements`, those with an exact result that were looked at
    entries           dicts: step, share of the error (they add up to 1), rms, elements that it changes; at: module, file and line of the
                      step, if the case has them; with: steps that share the entry, since `step` reads their results
                      unrounded. A step that gives the exact result of its own operands has none
    at_stored_values  not every step was observed: entries are of the values that the backend's program stores anyway
    left_out          why nothing is booked, or ''
    in_float32        None, or a dict: the step of a 16-bit output with the largest entry, the error before and after with that output in
                      float32, and whether that lowers it
    """

    def __init__(self, data):
        self.in_float32 = None
        for key, each in data.items():
            setattr(self, key, each)

    def __str__(self):
        lines = [f"error of {self.value} on {', '.join(self.backends)}: " + (self.left_out or f"rms {self.rms:.2g}")]
        for entry in sorted(self.entries, key=lambda entry: -abs(entry["share"])):
            at = entry.get("at", {"module": "", "file": ""})
            place = " ".join(filter(None, (at["module"], f"{at['file']}:{at['line']}" if at["file"] else "")))
            step = " and ".join(filter(None, (", ".join(entry.get("with", [])), entry["step"]))) or (f"{self.together} steps with smaller errors" if self.together else "what no stored value accounts for")
            lines.append(f"  {100 * entry['share']:6.1f} %  {step}{', ' * bool(place)}{place}")
        if self.in_float32 and self.in_float32["lowers"]:
            lines.append("  {step} in float32: rms {after:.2g} in the place of {before:.2g}".format(**self.in_float32))
        return "\n".join(lines)

    __repr__ = __str__


@dataclass(repr=False)
class Report:
    """The report of a run. `str(report)` reads as the console does, findings first; a notebook draws it.

    findings  sentences: where backends differ, what violates a contract, what raised, how the function itself compares
    matrix    {value: {backend: class in words}} of the observed values
    results   the results of report.json, one for each backend
    run_dir   the run folder, for `ulpscope explain ID@BACKEND --run DIR`: out= of check(), or a temporary one, which goes with this report
    """

    findings: list
    matrix: dict
    results: list
    run_dir: pathlib.Path
    console: str
    exit_code: int
    case: Case | None = None
    own: dict = field(default_factory=dict)  # backend -> {value: '' or how it differs from the function's own result here}
    changed: dict = field(default_factory=dict)  # backend -> values that have other bits where nothing inside is observed
    notes: list = field(default_factory=list)  # how the run was made, where that is not as the program is
    data: dict = field(default_factory=dict)  # report.json
    tables: str = ""  # the console without its list of findings
    folder: object = field(default=None, compare=False)  # what a temporary run_dir lives as long as

    @property
    def ok(self):
        """True if nothing violates a contract, crashed or could not be judged. Differences between backends are no
        failure."""
        return self.exit_code == 0

    def steps(self, backend):
        """[(value, op, class in words)] of every step judged by itself on `backend`."""
        return [(step["value"], step["op"], step["classification"]["label"]) for found in self.results if found["backend"] == backend
                for step in found.get("steps", [])]

    @property
    def ledger(self):
        """The entries of each difference: a Ledger for each observed value and each two groups of backends that differ
        in it."""
        return [Ledger(each) for each in self.data.get("ledgers", [])]

    @property
    def budgets(self):
        """Which rounding costs how much accuracy: a Budget for each observed value and each set of backends that stored
        the same steps."""
        return [Budget(each) for each in self.data.get("budgets", [])]

    def shrink(self, backends=None, *, kind=None, value=None, minutes=10, out=None):
        """ulpscope.shrink() of this report's case: the smallest program on which two of its backends still differ in
        the same way.

        `backends`: the two, if there are more; by default those of the first divergence (of that kind, at that
        value).
        """
        from ulpscope import shrinking
        if self.case is None:
            raise ValueError("the report is of a case file: ulpscope.shrink(PATH, backends=...) takes it")
        parted = [each for each in self.data.get("divergences", []) if len(each["backends"]) == 2
                  and (kind or each["kind"]) == each["kind"] and value in (None, each["value"], *each["also"])]
        if backends is None and not parted:
            raise shrinking.NothingToShrink("no two backends of this report part so")
        return shrinking.shrink(self.case, backends=backends or [group[0] for group in parted[0]["backends"]], kind=kind, value=value,
                                minutes=minutes, out=out)

    def __str__(self):
        lines = textwrap.wrap(self.data.get("summary", ""), 121)
        for number, sentence in enumerate(self.findings, 1):
            lines += textwrap.wrap(sentence, 116, initial_indent=f"{number:3}  ", subsequent_indent="     ")
        if not self.findings:
            names = list(dict.fromkeys(each["backend"] for each in self.results))
            lines += [f"no findings: {', '.join(names)} {'computes' if len(names) == 1 else 'compute'} in one precision"]
        for note in self.notes:
            lines += textwrap.wrap(note, 116, initial_indent="  *  ", subsequent_indent="     ")
        return "\n".join(lines) + "\n\n" + (self.tables if self.findings and self.tables else self.console)

    __repr__ = __str__  # what a failed `assert report.ok` shows

    def _repr_html_(self):
        backends = list(dict.fromkeys(each["backend"] for each in self.results))
        head = "".join(f"<th>{html.escape(each)}</th>" for each in ["", *backends])
        rows = ""
        for value, row in self.matrix.items():
            cells = "".join(f"<td>{_html(row.get(each, ''))}</td>" for each in backends)
            rows += f"<tr><td>{html.escape(value)}</td>{cells}</tr>"
        items = "".join(f"<li>{_html(each)}</li>" for each in self.findings) or "<li>no findings</li>"
        return f"<ol>{items}</ol><table><tr>{head}</tr>{rows}</table>"


def findings_of(data):
    """The sentences of a report.json: what differs, what is lost, what violates a contract or raised."""
    found = [f"{each['kind']}: {each['sentence']}{_also(each)}{_at(each)}" for each in data["findings"] if not each["moves_nothing"]]
    if idle := sum(each["moves_nothing"] for each in data["findings"]):
        found.append(f"{idle} more of steps that move no bit of an observed value (report.data['findings'] has them)")
    found += [f"not finite: {each['sentence']}" for each in data["not_finite"] if not each["diverges"]]
    for result in data["results"]:
        if result["status"] in _BAD:
            found.append(f"{result['status']} on {result['backend']}: {result['reason'] or result['outcome']['text']}")
        elif result["status"] == "SKIP":
            found.append(f"skipped on {result['backend']}: {result['reason']}")
        elif result["status"] == "NOT_RUN":
            found.append(f"not judged on {result['backend']}: {result['reason']}")
        elif result["outcome"]["kind"] == "raised":
            found.append(f"{result['backend']} raises {result['outcome']['class']}: {result['outcome']['text']}")
    return list(dict.fromkeys(found))


def _html(line):
    """A line with the names in it, between two backticks, as code. A backtick in a message of others, which is quoted, may be alone."""
    parts = re.split(r'(?<!`)`([^`"]+)`(?!`)', line)
    return "".join(f"<code>{html.escape(part)}</code>" if i % 2 else html.escape(part) for i, part in enumerate(parts))


def _also(finding):
    """The other values in which the same backends differ in the same way: the sentence is about the first."""
    names = [f"`{name}`" for name in finding["also"]]
    if not names:
        return ""
    return " The same in " + (f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]) + "."


def _at(finding, most=3):
    """The lines of captured source of its steps: ' At model.layers.0.mlp, model.py:77.', or ''."""
    places = finding.get("places", [])
    if len(places) > most:
        left = len(places) - most + 1
        places = [*places[:most - 1], f"and {left} more lines"]
    return f" At {'; '.join(places)}." if places else ""
