"""assert_precision(): does this kernel accumulate as it should? A proof, or a named reason."""

import inspect
import pathlib
import re

from ulpscope import case as cases
from ulpscope import adapters, checking, kernels, places

places.find_sdk()
from ulpscope_adapter import words  # noqa: E402

# What a format asks for is that one or better: the language's words for it.
_AT_LEAST = {"float32": "at_least_float32", "float64": ["float64", "compensated", "exact"]}


class NotProved(AssertionError):
    """Neither kept nor violated could be proved. `status` and `reason` are the report's."""

    def __init__(self, text, status, reason, report):
        super().__init__(text)
        self.status, self.reason, self.report = status, reason, report


class PrecisionError(AssertionError):
    """The kernel violates what was asked. `witness` is the element that proves it, `report` the Report."""

    def __init__(self, text, witness, report):
        super().__init__(text)
        self.witness, self.report = witness, report


def assert_precision(kernel, args, *, acc=None, mid=None, prod=None, operands="default", out=None, op="matmul", attrs=None, data="auto",
                     seed=0, keep=None):
    """Proves that `kernel(*args, **attrs)` computes `op` in the precision asked, or raises.

    args      arrays of torch, NumPy or jax: the kernel is called with arrays of the same library (torch tensors: on the same device), on
              these and on inputs that the harness adds because they tell (the same shapes and dtypes)
    acc       the accumulator: "float32" and "float64" mean that or better; any word of `ulpscope list models`, or a list of them
    operands  of products, how they are read: with acc= "as_is" if nothing else is said, since a float32 sum of what was rounded to
              bfloat16 or tf32 is no float32 product; None leaves it open
    mid, prod, out    the other facets (a rounding before the store, products, the store); not asked: not judged
    op, attrs what the kernel is to compute, a word of `ulpscope list ops`, and its attributes
    keep      a folder for the run; without it the run of a failure stays in a temporary folder that the message names

    Returns the Report of a proof. Raises PrecisionError (an AssertionError) with the sentence, the witness and how to look closer;
    NotProved, which is one too, where the bits prove neither.
    """
    __tracebackhide__ = True  # in pytest a refusal is told, not where it was raised
    if operands == "default":
        operands = "as_is" if acc is not None and op in words.ops("product") else None
    if all(each is None for each in (acc, mid, prod, operands, out)):
        raise ValueError("nothing is asked: give acc=, mid=, prod=, operands= or out=")
    arrays = kernels.library_of(args[0])
    kernel(*args, **(attrs or {}))  # an error of the kernel's own is raised as its own
    case = _case(kernel, args, op, attrs or {}, data)
    asked = {"acc": _AT_LEAST.get(acc, acc) if isinstance(acc, str) else acc, "mid": mid, "prod": prod, "out": out}
    demand = {key: value for key, value in asked.items() if value is not None}
    if operands is not None:
        demand["in"] = operands
    case.contract = {"status": "specified", "prove": True, "accept": {case.observe[0]: demand}}
    made = kernels.backend(_name_of(kernel), {op: kernel}, arrays, adapters.device_of(args))
    import tempfile
    folder = pathlib.Path(keep or tempfile.mkdtemp(prefix="ulpscope-run-"))
    folder.mkdir(parents=True, exist_ok=True)
    path = case.save(folder / f"{case.name}.yaml")
    report = checking.run(path, [made], out=folder / "run", seed=seed)
    report.case = case
    _judge(report, made.name, args, keep is None)
    return report


def _case(kernel, args, op, attrs, data):
    try:
        labels = [name for name in inspect.signature(kernel).parameters][:len(args)]
    except (TypeError, ValueError):
        labels = []
    if len(labels) < len(args) or len(set(labels)) < len(labels) or "args" in labels:
        labels = [f"operand_{i + 1}" for i in range(len(args))]
    inputs = [cases.Input(label, kernels.as_torch(each).detach()) for label, each in zip(labels, args)]
    cases.fit(inputs, data)
    result = "result" if "result" not in labels else "product"
    return cases.Case(name=_name_of(kernel), about=f"Does {_name_of(kernel)} compute {op} in the precision asked?", inputs=inputs,
                      steps=[cases.Step(op, tuple(labels), result, attrs)], observe=[result])


def _name_of(kernel):
    name = re.sub(r"\W+", "-", getattr(kernel, "__name__", type(kernel).__name__), flags=re.ASCII).strip("-_").replace("_", "-").lower()
    return name if name and name[0].isalpha() else "kernel"


def _judge(report, backend, args, temporary):
    __tracebackhide__ = True
    result = report.results[0]
    value = report.case.observe[0]
    look = f"ulpscope explain {result['id']}@{backend} --run {report.run_dir}"
    entry = result["values"].get(value, {})
    asked = report.case.contract["accept"][value]
    hidden = [facet for facet in entry.get("as_exact", {}) if facet in asked]
    if result["status"] == "PASS" and hidden:
        # The contract is met, and would be by any kernel: that proves nothing of this one.
        reason = f"of one term to a sum, or two, {' and '.join(hidden)} shows nowhere: the store rounds as any of them does"
        raise NotProved(f"{backend}: INCONCLUSIVE, not proved: {reason}\n  look     {look}", "INCONCLUSIVE", reason, report)
    if result["status"] == "PASS" and entry.get("contract") == "CONFORMS":
        if temporary:
            import shutil
            shutil.rmtree(report.run_dir.parent, ignore_errors=True)
        return
    if result["status"] == "FAIL" and entry.get("contract") == "VIOLATES":
        witness = _witness(result["reason"], entry, report, args)
        text = f"{backend}: {result['reason']}\n"
        if witness:
            text += f"  witness  {witness['text']}\n"
        raise PrecisionError(f"{text}  look     {look}\n  case     {report.run_dir.parent / report.case.name}.yaml", witness, report)
    reason = result["reason"] or result["outcome"]["text"] or f"the contract is {entry.get('contract', 'NOT_JUDGED')}"
    raise NotProved(f"{backend}: {result['status']}, not proved: {reason}\n  look     {look}", result["status"], reason,
                    report)


def _witness(reason, entry, report, args):
    """The element whose bits exclude what was asked: a dict with its index, values, operands, and the model that it excludes."""
    found = _exclusion(reason, entry, report)
    if found is None:
        return None
    case, index = report.case, tuple(found["element"])
    value = case.observe[0]
    further = re.match(r"on the further input (\w+)", found["why"])
    model = report.data["models"][found["model"]]
    witness = {"element": index, "observed": found.get("observed"), "exact": found.get("reference"), "low": found.get("low"),
               "high": found.get("high"), "input": further[1] if further else "", "model": model, "operands": None}
    where = f" on the added input '{further[1]}'" if further else ""
    text = f"{value}{list(index)} is {witness['observed']}{where}; exact {witness['exact']}"
    if witness["low"] is not None:
        accumulator = re.search(r"acc=([^;]*)", model)[1]
        low, high = witness["low"], witness["high"]
        text += f"; {accumulator} gives {low}" if low == high else f"; {accumulator} gives between {low} and {high} in any order"
    if case.steps[0].op in ("matmul", "mm") and not further and not any(each.synthetic for each in case.inputs) and len(index) == 2:
        witness["operands"] = (args[0][index[0]], args[1][:, index[1]])
        first, second = (each.name for each in case.inputs)
        text += f" ({first}[{index[0]}] times {second}[:, {index[1]}])"
    return {**witness, "text": text}


def _exclusion(reason, entry, report):
    """Of the exclusions on record, the one of the plain model that was asked for; else the one that the report's reason tells."""
    asked = report.case.contract["accept"][report.case.observe[0]].get("acc")
    plain = {"at_least_float32": "float32"}.get(asked, asked) if isinstance(asked, str) else asked[0] if asked else None
    kept = [each for each in (report.data["exclusions"][index] for index in entry["excluded"]) if each.get("observed") is not None]
    for each in kept:
        model = report.data["models"][each["model"]]
        if f"in=as_is;prod=exact;acc={plain};mid=none;" in model and model.endswith("_rne"):
            return each
    # A reason says of whom an exclusion is (harness/judge/judge.cc).
    said = reason.replace("what the contract asks for gives", "this model gives")
    return next((each for each in kept if each["why"] in said), None)
