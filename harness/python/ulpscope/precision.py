"""assert_precision(): does this kernel accumulate as it should? A proof, or a named reason."""

import inspect
import pathlib
import re
import shutil
import tempfile

from ulpscope import case as cases
from ulpscope import adapters, checking, kernels, models, places, referenced

places.find_sdk()
from ulpscope_adapter import words  # noqa: E402

# A demand for a format means that one or better: the language's words for it.
_STEP_OF = {"acc": "sum", "prod": "products of a sum"}
_AT_LEAST = {"float32": "at_least_float32", "float64": ["float64", "compensated", "exact"]}


class NotProved(AssertionError):
    """Neither kept nor violated could be proved. `status` and `reason` are the report's."""

    def __init__(self, text, status, reason, report):
        super().__init__(text)
        self.status, self.reason, self.report = status, reason, report


class PrecisionError(AssertionError):
    """The kernel violates the request. `witness` is the element that proves it, `report` the Report."""

    def __init__(self, text, witness, report):
        super().__init__(text)
        self.witness, self.report = witness, report


def assert_precision(kernel, args, *, reference=None, acc=None, mid="default", prod=None, operands="default", out=None, op="matmul",
                     attrs=None, data="auto", seed=0, keep=None):
    """Proves that `kernel(*args, **attrs)` computes `op`, or a program of your own, in the requested precision, or
    raises.

    With `reference`, a function of the same arguments, a module or a Case, the kernel is judged as that program
    computed in one go: in float32, with no intermediate rounding except where the reference casts to a narrower
    dtype (which the kernel may leave out), and rounded once at the end. The dtype in which the reference stores an
    intermediate is no request. Attention may round its probabilities to the dtype of the values. `mid` then names
    additional roundings that are allowed ({"hidden": "bfloat16"}, a value of the reference), `out` an output
    rounding other than to nearest ("bfloat16_rz"); the other facets are not requested. Gives a KernelReport, within
    20 seconds or so, or raises as below.

    args      arrays of torch, NumPy or jax, and Python numbers: the kernel is called with arrays of the same library
              (torch tensors: on the same device), on these and on additional inputs of the harness that distinguish
              precisions (the same shapes and dtypes)
    acc       the accumulator: "float32" and "float64" mean that or better; any word of `ulpscope list models`, or a list of them
    operands  how the operands of products are read: with acc=, "as_is" by default, since a float32 sum of operands that
              were rounded to bfloat16 or tf32 is no float32 product; None leaves it open
    mid       a rounding before the output: of the finished sum, or of a step inside `op` (a total, a reciprocal, a
              mean, probabilities). With acc=, "none" by default, since an intermediate rounding hides most of the sums
              before it; None leaves it open
    prod, out the other facets (products, the output rounding); not requested: not judged
    op, attrs the op that the kernel should compute, a word of `ulpscope list ops`, and its attributes
    keep      a folder for the run; without it the run of a failure stays in a temporary folder that the message names

    Returns the Report of a proof. Raises PrecisionError (an AssertionError) with the sentence, the witness and how
    to look closer; NotProved, which is one too, if the bits prove neither.
    """
    __tracebackhide__ = True  # pytest shows the refusal, not where it was raised
    if reference is not None:
        if (prod, operands, op) != (None, "default", "matmul") or _word(acc) not in (None, "float32", "at_least_float32"):
            raise ValueError("reference= asks for float32 throughout: of the facets it takes acc=\"float32\", mid= and out= alone")
        return _assert_reference(kernel, args, reference, mid, out, attrs or {}, seed, keep)
    if operands == "default":
        operands = "as_is" if acc is not None and op in words.ops("product") else None
    if mid == "default":
        mid = "none" if acc is not None else None
    if all(each is None for each in (acc, mid, prod, operands, out)):
        raise ValueError("nothing is asked: give acc=, mid=, prod=, operands= or out=")
    arrays = kernels.library_of(next((each for each in args if not isinstance(each, (bool, int, float))), args[0]))
    kernel(*args, **(attrs or {}))  # an error of the kernel's own is raised as its own
    case = _case(kernel, args, op, attrs or {}, data)
    acc, mid, prod, operands, out = map(_word, (acc, mid, prod, operands, out))
    asked = {"acc": _AT_LEAST.get(acc, acc) if isinstance(acc, str) else acc, "mid": mid, "prod": prod, "out": out}
    demand = {key: value for key, value in asked.items() if value is not None}
    if operands is not None:
        demand["in"] = operands
    case.contract = {"status": "specified", "prove": True, "accept": {case.observe[0]: demand}}
    made = kernels.backend(_name_of(kernel), {op: kernel}, arrays, adapters.device_of(args))
    folder = pathlib.Path(keep or tempfile.mkdtemp(prefix="ulpscope-run-"))
    folder.mkdir(parents=True, exist_ok=True)
    path = case.save(folder / f"{case.name}.yaml")
    try:
        report = checking.run(path, [made], out=folder / "run", seed=seed)
    except checking.Refused as refused:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise ValueError(f"assert_precision: {refused}") from None
    except BaseException:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    report.case = case
    _judge(report, made.name, args, keep is None)
    return report


def _assert_reference(kernel, args, reference, mid, out, keywords, seed, keep):
    __tracebackhide__ = True
    rounds = {} if mid in ("default", "none") else mid
    if not isinstance(rounds, dict) or not (out is None or isinstance(out, str) and out.endswith(("_rne", "_rz"))):
        raise ValueError('reference=: mid= is {value of the reference: dtype}, out= a store like "bfloat16_rz", or left out')
    name = _name_of(kernel)
    report = referenced.judge(kernel, args, reference, name=name, keywords=keywords, seed=seed, store=out.rpartition("_")[2] if out else "rne",
                              rounds={value: _word(dtype) for value, dtype in rounds.items()})
    if keep is not None:
        folder = pathlib.Path(keep)
        folder.mkdir(parents=True, exist_ok=True)
        report.case.save(folder / f"{report.case.name}.yaml")
        (folder / "report.txt").write_text(f"{report}\n", encoding="utf-8")
    if report.ok:
        return report
    if report.status == "FAIL":
        text = f"{name}: {report.reason}\n" + (f"  witness  {report.witness['text']}" if report.witness else "")
        raise PrecisionError(text.rstrip(), report.witness, report)
    raise NotProved(f"{name}: {report.status}, not proved: {report.reason}\n  advice   {report.advice}", report.status, report.reason, report)


def _word(asked):
    """A dtype of torch, NumPy or jax by its name, in a list too; a word as it is."""
    if asked is None or isinstance(asked, (str, dict)):
        return asked
    if isinstance(asked, (list, tuple)):
        return [_word(each) for each in asked]
    return getattr(asked, "__name__", str(asked)).rpartition(".")[2]


def _case(kernel, args, op, attrs, data):
    try:
        labels = [name for name in inspect.signature(kernel).parameters][:len(args)]
    except (TypeError, ValueError):
        labels = []
    if len(labels) < len(args) or len(set(labels)) < len(labels) or "args" in labels:
        labels = [f"operand_{i + 1}" for i in range(len(args))]
    operands = {label: each for label, each in zip(labels, args) if not isinstance(each, (bool, int, float))}
    inputs = [cases.Input(label, kernels.as_torch(each).detach()) for label, each in operands.items()]
    cases.fit(inputs, data)
    result = "result" if "result" not in labels else "product"
    return cases.Case(name=_name_of(kernel), about=f"Does {_name_of(kernel)} compute {op} in the precision asked?", inputs=inputs,
                      steps=[cases.Step(op, tuple(label if label in operands else each for label, each in zip(labels, args)), result, attrs)],
                      observe=[result])


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
        without = [facet for facet in hidden if entry["as_exact"][facet] == ["any"]]
        reason = (f"{report.case.steps[0].op} has no {' and no '.join(_STEP_OF[facet] for facet in without)}: any {' and '.join(without)} meets that"
                  if without else
                  f"of one term to a sum, or two, {' and '.join(hidden)} shows nowhere: the store rounds as any of them does")
        advice = _reference_of(report.case) if without else "call it with operands whose sums have 64 terms or more"
        raise NotProved(f"{backend}: INCONCLUSIVE, not proved: {reason}\n  look     {look}\n  advice   {advice}", "INCONCLUSIVE", reason, report)
    if result["status"] == "PASS" and entry.get("contract") == "CONFORMS":
        if temporary:
            shutil.rmtree(report.run_dir.parent, ignore_errors=True)
        return
    if result["status"] == "FAIL" and entry.get("contract") == "VIOLATES":
        witness = _witness(result, entry, report, args)
        text = f"{backend}: {result['reason']}\n"
        if witness:
            text += f"  witness  {witness['text']}\n"
        raise PrecisionError(f"{text}  look     {look}\n  case     {report.run_dir.parent / report.case.name}.yaml", witness, report)
    reason = result["reason"] or result["outcome"]["text"] or f"the contract is {entry.get('contract', 'NOT_JUDGED')}"
    raise NotProved(f"{backend}: {result['status']}, not proved: {reason}\n  look     {look}\n  advice   {_advice(report, result, entry)}",
                    result["status"], reason, report)


def _advice(report, result, entry):
    """The action that decides an open answer, followed once."""
    asked = report.case.contract["accept"][report.case.observe[0]]
    if result["outcome"]["kind"] != "completed":
        return "let the kernel take other values of the same shapes and dtypes: the harness calls it on some"
    if "neighbours" in entry.get("says_kinds", []):
        return "call it with a kernel that returns its float32 result, before the store"
    if asked.get("acc") == "at_least_float32" and "mid" not in asked:
        return "leave mid=None out: then a rounded intermediate is refused"
    if asked.get("acc") in (None, "at_least_float32") and asked.get("mid") == "none" and not {"prod", "out"} & set(asked):
        return _reference_of(report.case)
    return "call it on operands of float32, behind whose store more of its sums shows"


def _reference_of(case):
    """The question by which a kernel of an op of PyTorch's is held against what float32 can give."""
    import torch
    op = case.steps[0].op
    home = "torch" if hasattr(torch, op) else "torch.nn.functional"
    return f"ask with reference={home}.{op} in the place of op= and mid=: it computes every narrow kernel beside this one"


def _witness(result, entry, report, args):
    """The element whose bits exclude the request: a dict with its index, values, operands, and the model that it
    excludes."""
    found = _exclusion(result, entry, report)
    if found is None:
        return None
    case, index = report.case, tuple(found["element"])
    value = case.observe[0]
    further = found.get("further_input", "")
    model = report.data["models"][found["model"]]
    witness = {"element": index, "observed": found.get("observed"), "exact": found.get("reference"), "low": found.get("low"),
               "high": found.get("high"), "input": further, "model": model, "operands": None}
    where = f" on the added input '{further}'" if further else ""
    text = f"{value}{list(index)} is {witness['observed']}{where}; exact {witness['exact']}"
    if witness["low"] is not None:
        accumulator = models.facets_of(model)["acc"]
        low, high = witness["low"], witness["high"]
        text += f"; {accumulator} gives {low}" if low == high else f"; {accumulator} gives between {low} and {high} in any order"
    if case.steps[0].op in ("matmul", "mm") and not further and not any(each.synthetic for each in case.inputs) and len(index) == 2:
        witness["operands"] = (args[0][index[0]], args[1][:, index[1]])
        first, second = (each.name for each in case.inputs)
        text += f" ({first}[{index[0]}] times {second}[:, {index[1]}])"
    return {**witness, "text": text}


def _exclusion(result, entry, report):
    """The recorded exclusion of the plain model that was requested; else the one that the report's reason cites."""
    asked = report.case.contract["accept"][report.case.observe[0]].get("acc")
    plain = {"at_least_float32": "float32"}.get(asked, asked) if isinstance(asked, str) else asked[0] if asked else None
    kept = [each for each in (report.data["exclusions"][index] for index in entry["excluded"]) if each.get("observed") is not None]
    for each in kept:
        facets = models.facets_of(report.data["models"][each["model"]])
        stored = facets.pop("out")
        if facets == {"in": "as_is", "prod": "exact", "acc": plain, "mid": "none"} and stored.endswith("_rne"):
            return each
    cited = result.get("cited", {}).get(report.case.observe[0])
    return next((each for each in kept if each is report.data["exclusions"][cited]), None) if cited is not None else None
