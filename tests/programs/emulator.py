"""Runs a program in NumPy by a plan, and gives the truth about it: what each use read, which sums were narrow."""

from dataclasses import dataclass, field, replace

import numpy as np
from arithmetic import OPS, SUMS, VIEWS, How, compute, flushed
from tools import BITS, STORES, rounding, store

FORMATS = ("bfloat16", "float16", "tf32")
ORDERS = ("sequential", "reversed", "pairwise", "blocked16", "lanes8", "halves")


@dataclass(frozen=True)
class Plan:
    """Deviations from computing each step in float32, storing it in its dtype and reading it as stored.

    reads: (step, operand) -> unrounded, contracted (a product before any rounding) or the format that the stored value is rounded to.
    accumulators, flushes, inner: step -> How's words. opened_differs: it holds for the run as asked alone.
    """
    order: str = "sequential"
    prod: str = "exact"
    acc: str = "float32"
    form: str = ""
    reads: dict = field(default_factory=dict)
    accumulators: dict = field(default_factory=dict)
    flushes: dict = field(default_factory=dict)
    inner: dict = field(default_factory=dict)
    opened_differs: bool = False

    @property
    def honest(self):
        return not (self.reads or self.accumulators or self.flushes or self.inner)

    def opened(self):
        """The plan of the run in which every value is observed."""
        return Plan(order=self.order, prod=self.prod, acc=self.acc, form=self.form) if self.opened_differs else self

    def how(self, step, dtypes):
        return How(order=self.order, prod=self.prod, acc=self.accumulators.get(step.name, self.acc), form=self.form,
                   flush=self.flushes.get(step.name, "none"), inner=self.inner.get(step.name, {}),
                   compute="float64" if "float64" in dtypes else "float32")


@dataclass(frozen=True)
class Value:
    """stored: the numbers in `dtype`, as float64. wide: before their rounding to it. exact: of a product, before any rounding."""
    dtype: str
    stored: np.ndarray
    wide: np.ndarray
    exact: np.ndarray = None

    def read(self, word):
        if word == "stored":
            return self.stored
        if word == "contracted":
            return self.exact
        if word == "unrounded":
            return self.wide
        if word == "flushed":
            return flushed(self.stored)
        return rounding(word)(self.stored)

    def array(self):
        """In the dtype itself."""
        return store(self.stored, self.dtype)


def given(array):
    """The value of a tensor of the case."""
    wide = np.asarray(array).astype(np.float64)
    return Value(np.asarray(array).dtype.name, wide, wide)


def result_dtype(step, dtypes):
    """PyTorch's type of a step's result; scalars do not count."""
    if "dtype" in step.attrs:
        return step.attrs["dtype"]
    kinds = set(dtypes)
    if len(kinds) == 1:
        return dtypes[0]
    return "float64" if "float64" in kinds else "float32"


def apply(step, values, plan, override=None):
    """The result of one step; `override`: operand -> the word that it is read by in place of the plan's."""
    names = [x for x in step.of if isinstance(x, str)]
    sources = [values[name] for name in names]
    if step.op in VIEWS:
        view = lambda x: None if x is None else VIEWS[step.op](step.attrs, x)  # noqa: E731
        one = sources[0]
        return Value(one.dtype, view(one.stored), view(one.wide), view(one.exact))
    dtypes = [one.dtype for one in sources]
    how = plan.how(step, dtypes)
    words = {name: (override or {}).get(name, plan.reads.get((step.name, name), "stored")) for name in names}
    # A value that is passed on unrounded is passed on in the format of the computation.
    operands = [x if not isinstance(x, str) else values[x].read(words[x]) if words[x] == "contracted" else how.r(values[x].read(words[x]))
                for x in step.of]
    dtype = result_dtype(step, dtypes)
    if step.op == "softmax" and "dtype" in step.attrs:
        operands = [rounding(dtype)(operands[0])]
    wide = compute(step.op, how, step.attrs, operands)
    exact = None
    if step.op == "mul":
        with np.errstate(all="ignore"):
            a, b = (how.r(x) if isinstance(x, (int, float)) else x for x in operands)
            exact = a * b
    return Value(dtype, store(wide, dtype).astype(np.float64), wide, exact)


def run(steps, tensors, plan):
    """name -> Value of every tensor and step. tensors: name -> array in its dtype."""
    values = {name: given(array) for name, array in tensors.items()}
    for step in steps:
        values[step.name] = apply(step, values, plan)
    return values


def origin_of(name, steps):
    """The value that a view shows; steps: name -> step."""
    while name in steps and steps[name].op in VIEWS:
        name = steps[name].of[0]
    return name


def same_bits(a, b):
    a, b = a.array(), b.array()
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def same_numbers(a, b):
    """Zeros of either sign are one number."""
    a, b = a.array(), b.array()
    return a.dtype == b.dtype and np.array_equal(a.astype(np.float64), b.astype(np.float64), equal_nan=True)


def truth(steps, tensors, plan):
    """The actual computation of each step, in program order, and the part of it that shows in the step's own stored result.

    stored_alike: whether faults in several uses give together the very same bits as every operand read as stored.
    flush_alike: whether dropping subnormals would give the very same bits, every operand read as stored.
    acc_alike, prod_alike: of a narrow sum, other words that give the very same bits in some order.
    products: of an honest sum, how its products may be rounded for the very same bits in its order (in one of a single term each way).
    mid: formats through which the result may have been rounded before its store, every operand read as stored, for the very same bits.
    reads: as: the truth; same: every word that gives the very same bits there; visible: whether what is told is told apart from the
    stored value (an honest use: from the unrounded one); gone: nothing but zeros is left in the format that it is read in, so that no
    bits tell which format that is. acc, flush, inner: the words, `..._visible`: against float32, none.
    """
    values = run(steps, tensors, plan)
    rows = []
    for step in steps:
        row = {"value": step.name, "op": step.op, "dtype": values[step.name].dtype, "view": step.op in VIEWS, "reads": [], "acc": None,
               "acc_visible": False, "flush": "none", "flush_visible": False, "inner": {}, "inner_visible": False,
               "mid": [], "stored_alike": False, "flush_alike": False, "acc_alike": [], "prod_alike": [], "products": []}
        rows.append(row)
        if row["view"]:
            continue
        for name in dict.fromkeys(x for x in step.of if isinstance(x, str)):
            origin = origin_of(name, {each.name: each for each in steps})
            if origin not in tensors:
                row["reads"].append({**_use(step, name, values, plan), "origin": origin})
        row["mid"] = _through(step, values, plan)
        row["stored_alike"] = _stored_alike(step, values, plan)
        row["flush_alike"] = _flush_alike(step, values, plan)
        here = plan.how(step, [])
        for key, words, plain in (("acc", plan.accumulators, "accumulators"), ("flush", plan.flushes, "flushes"),
                                  ("inner", plan.inner, "inner")):
            changed = step.name in words
            without = replace(plan, **{plain: {k: v for k, v in words.items() if k != step.name}})
            row[key] = getattr(here, key) if key != "acc" or step.op in SUMS else None
            row[f"{key}_visible"] = changed and not same_bits(apply(step, values, without), values[step.name])
        if row["acc_visible"]:
            row["acc_alike"], row["prod_alike"] = _sums_alike(step, values, plan)
        if plan.honest and step.op in SUMS:
            row["products"] = [word for word in ("exact", "float32")
                               if same_bits(apply(step, values, replace(plan, prod=word)), values[step.name])]
    return rows


def _sums_alike(step, values, plan):
    """Narrow accumulators, and narrow formats of the products of a float32 sum, that give the very same bits in some order."""
    def gives(how):
        return any(same_bits(apply(step, values, replace(how, order=order)), values[step.name]) for order in ORDERS)
    others = {name: acc for name, acc in plan.accumulators.items() if name != step.name}
    accumulators = [acc for narrow in ("bfloat16", "float16") for acc in (narrow, narrow + "_via_float32")
                    if gives(replace(plan, accumulators={**plan.accumulators, step.name: acc}))]
    return accumulators, [prod for prod in ("bfloat16", "float16") if gives(replace(plan, accumulators=others, prod=prod))]


def _misread(step, plan):
    """The operands of a step that reads one of them otherwise than as it is stored; else none."""
    names = [x for x in step.of if isinstance(x, str)]
    return names if any((step.name, name) in plan.reads for name in names) else []


def _through(step, values, plan):
    """If operands were read otherwise, a rounding of the result may do the same: for a product with a power of two, or for relu, where the
    sign of a zero alone differs if a negative number vanishes in the format."""
    names = _misread(step, plan)
    if not names:
        return []
    plain = apply(step, values, plan, dict.fromkeys(names, "stored"))
    return [word for word in FORMATS
            if same_numbers(replace(plain, stored=store(rounding(word)(plain.wide), plain.dtype).astype(np.float64)), values[step.name])]


def _stored_alike(step, values, plan):
    """Whether every operand as it is stored gives the same all the same: (x + y) times its own rounding, each taken for the other."""
    names = _misread(step, plan)
    return bool(names) and same_bits(apply(step, values, plan, dict.fromkeys(names, "stored")), values[step.name])


def _flush_alike(step, values, plan):
    """Whether a step that read every operand as stored and dropped subnormals would do the same: of subnormals through float16."""
    names = _misread(step, plan)
    if not names:
        return False
    flushing = replace(plan, flushes={**plan.flushes, step.name: "daz"})
    return same_bits(apply(step, values, flushing, dict.fromkeys(names, "stored")), values[step.name])


def _use(step, name, values, plan):
    source, result = values[name], values[step.name]
    word = plan.reads.get((step.name, name), "stored")
    same = [word]
    others = ["stored", "unrounded"] + (["contracted"] if source.exact is not None and step.op in ("add", "sub") else [])
    others += [f for f in FORMATS if BITS[f] < BITS[source.dtype]] + (["flushed"] if word in FORMATS else [])
    for other in others:
        if other != word and same_bits(apply(step, values, plan, {name: other}), result):
            same.append(other)
    rival = "unrounded" if word == "stored" else "stored"
    gone = word in FORMATS and bool(source.stored.any()) and not source.read(word).any()
    return {"operand": name, "as": word, "same": same, "visible": rival not in same, "gone": gone}


__all__ = ["FORMATS", "OPS", "Plan", "STORES", "Value", "apply", "given", "origin_of", "result_dtype", "run", "same_bits", "truth"]
