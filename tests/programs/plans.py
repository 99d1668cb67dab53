"""Which fault a backend of the emulator plants in which program: everything follows from the two names and the steps.

A backend is called FAMILY or FAMILY-ORDER. A program that has no place for a family's fault runs without one.
"""

import hashlib

import numpy as np
from arithmetic import POINTWISE, SITES, SUMS, VIEWS
from emulator import FORMATS, ORDERS, Plan, origin_of, result_dtype
from tools import BITS

NARROW = ("bfloat16", "float16", "bfloat16_via_float32", "float16_via_float32", "split_k(bfloat16,bfloat16)", "split_k(float16,float16)")
HONEST = {
    "honest": {"order": "sequential"},
    "reversed": {"order": "reversed", "prod": "float32"},
    "pairwise": {"order": "pairwise", "form": "quotient"},
    "blocked": {"order": "blocked16", "prod": "float32"},
    "lanes": {"order": "lanes8"},
    "wide_sums": {"acc": "float64"}
}
# Honest backends that really differ in precision: in the width of sums, in whether products are rounded (in a tree they are).
ALIKE = ({"honest", "lanes"}, {"reversed", "pairwise", "blocked"}, {"wide_sums"})


def generator(*words):
    """Random numbers that depend on the words alone."""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(repr(words).encode()).digest()[:8], "little"))


def program_of(case):
    """The name of a program, from the id of its case: the same whether the run is opened or not."""
    return case.rpartition("/")[2].partition("~")[0]


def is_opened(case):
    return case.endswith("~opened")


class Places:
    """Places in a program where faults can be planted."""

    def __init__(self, steps, dtypes):
        """dtypes: of the tensors of the case."""
        self.steps, self.dtypes, self.ops = steps, dict(dtypes), {}
        for step in steps:
            self.dtypes[step.name] = result_dtype(step, [self.dtypes[x] for x in step.of if isinstance(x, str)])
            self.ops[step.name] = step.op
        self.tensors = set(dtypes)

    def uses(self):
        """(step, operand) of each value of the program that a step computes with; views of a tensor are none."""
        steps = {step.name: step for step in self.steps}
        return [(step.name, x) for step in self.steps if step.op not in VIEWS
                for x in dict.fromkeys(step.of) if isinstance(x, str) and origin_of(x, steps) not in self.tensors]

    def unrounded(self):
        return [use for use in self.uses() if self.dtypes[use[1]] in ("bfloat16", "float16")]

    def in_kernels(self):
        """Uses that a fusing compiler keeps in registers: of a pointwise value in a pointwise step."""
        return [use for use in self.unrounded() if self.ops[use[0]] in POINTWISE and self.ops[use[1]] in POINTWISE]

    def narrower(self):
        return [(use, word) for use in self.uses() for word in FORMATS if BITS[word] < BITS[self.dtypes[use[1]]]]

    def sums(self):
        return [step.name for step in self.steps if step.op in SUMS]

    def contracted(self):
        """Sums of which an operand is a product."""
        twice = {step.name for step in self.steps if len(set(step.of)) < len(step.of)}
        return [use for use in self.uses() if self.ops[use[0]] in ("add", "sub") and self.ops[use[1]] == "mul" and use[0] not in twice]

    def pointwise(self):
        return [step.name for step in self.steps if step.op in POINTWISE and step.op != "cast"]

    def tiny(self):
        """Pointwise steps near which numbers are subnormal, by the scalars of the program; all of them where there is none."""
        near = {step.name for step in self.steps if any(isinstance(x, float) and abs(x) < 1e-30 for x in step.of)}
        near |= {step.name for step in self.steps if near & set(x for x in step.of if isinstance(x, str))}
        return [name for name in self.pointwise() if name in near] or self.pointwise()

    def inner(self):
        """(step, elementary step inside it, the format in which it is stored)."""
        found = []
        for step in self.steps:
            sites = SITES.get(step.op, ())
            if step.op == "linear" and len(step.of) < 3:
                sites = ()
            if step.op == "layer_norm":
                sites = sites[:3 + len(step.of)]
            if step.op in ("mul", "add", "sub") and any(isinstance(x, float) for x in step.of):
                sites = ("scalar", )
            narrow = self.dtypes[step.name]
            found += [(step.name, site, narrow) for site in sites if narrow in ("bfloat16", "float16")]
        return found


def _one(rng, choices):
    return choices[int(rng.integers(len(choices)))] if choices else None


def _unrounded(rng, places):
    use = _one(rng, places.unrounded())
    return {"reads": {use: "unrounded"}} if use else {}


def _kernel(rng, places):
    return {"reads": dict.fromkeys(places.in_kernels(), "unrounded")}


def _narrow_use(rng, places):
    chosen = _one(rng, places.narrower())
    return {"reads": {chosen[0]: chosen[1]}} if chosen else {}


def _narrow_sum(rng, places):
    step, word = _one(rng, places.sums()), _one(rng, NARROW)
    return {"accumulators": {step: word}} if step else {}


def _contract(rng, places):
    use = _one(rng, places.contracted())
    return {"reads": {use: "contracted"}} if use else {}


def _flush(rng, places):
    step, word = _one(rng, places.tiny()), _one(rng, ("ftz", "daz"))
    return {"flushes": {step: word}} if step else {}


def _inner(rng, places):
    chosen = _one(rng, places.inner())
    return {"inner": {chosen[0]: {chosen[1]: chosen[2]}}} if chosen else {}


def _inner_all(rng, places):
    found = {}
    for step, site, word in places.inner():
        found.setdefault(step, {})[site] = word
    return {"inner": found}


SINGLE = {"unrounded": _unrounded, "narrow_use": _narrow_use, "narrow_sum": _narrow_sum, "contract": _contract, "flush": _flush,
          "inner": _inner}


def _several(rng, places):
    """Two or three faults; of two in one place the first stays."""
    plan = {}
    for name in rng.permutation(sorted(SINGLE))[:int(rng.integers(2, 4))]:
        for key, words in SINGLE[name](rng, places).items():
            plan[key] = {**words, **plan.get(key, {})}
    return plan


def _opened_changes(rng, places):
    plan = _one(rng, [_unrounded, _kernel, _narrow_use, _narrow_sum])(rng, places)
    return {**plan, "opened_differs": True} if plan else {}


FAULTS = {**SINGLE, "kernel": _kernel, "inner_all": _inner_all, "several": _several, "opened_changes": _opened_changes}
BACKENDS = (*HONEST, *FAULTS)


def plan(backend, program, steps, dtypes):
    """The plan of `backend` for the program of that name."""
    if backend in HONEST:
        return Plan(**HONEST[backend])
    rng = generator("plan", backend, program)
    chosen = FAULTS[backend](rng, Places(steps, dtypes))
    base = Plan(order=_one(rng, ORDERS), prod=_one(rng, ("exact", "float32")), **chosen)
    if any(word == "contracted" for word in base.reads.values()):
        base = _one_product(base)
    return base


def _one_product(plan):
    """A fused step adds to one product: of several contracted operands of a step the first stays."""
    reads, seen = {}, set()
    for (step, operand), word in plan.reads.items():
        if word != "contracted" or step not in seen:
            reads[(step, operand)] = word
        if word == "contracted":
            seen.add(step)
    return Plan(**{**plan.__dict__, "reads": reads})
