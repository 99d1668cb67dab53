"""Tests a kernel against the program that it should compute in one go: does it compute in float32 and round once, at
the end?

An enclosure (enclosing.py) contains everything that a conforming float32 evaluation can give; a result outside is a
violation, however the kernel computes. A result inside proves nothing by itself. So every place where a kernel may
be narrow (narrowing.py) is computed too, on the same inputs, and has to leave the enclosure: inputs are added until
each has, or time is up.
"""

import dataclasses
import itertools
import math
import time

from ulpscope import enclosing, evaluating, formats, fusing, narrowing, varying
from ulpscope.answering import ENOUGH_MISSED, NAMED, Answers, KernelReport

# Computing time of the calling thread, so that the answer does not depend on the machine's other load; the limit by the
# clock is `_PATIENCE` times as long.
SECONDS, _PATIENCE = 20, 3
_TO_NAME = 8  # seconds for naming the narrow place
# Elements of a narrow evaluation that have to lie outside, in all; more for a sum, whose order may be another one.
_ENOUGH_OF_SUM, _ENOUGH = 8, 3
_NEARLY_ALL = 0.95
_MOST_INPUTS, _MOST_OF_OPEN = 400, 40
_MOST_ALIVE = 3
_FEWEST_INPUTS = 3


class TimeUp(Exception):
    """Raised by the clock."""


@dataclasses.dataclass
class _Counted:
    """A narrow evaluation: inputs tested, elements outside, whether it rounded any number at all."""

    fault: object
    asked: int = 0
    count: int = 0
    rounds: bool = False
    single: bool = False  # a narrow sum of one term
    matters: bool = False  # some value before the output rounding differs from every float32 evaluation's

    def is_float32(self):
        """True if a float32 evaluation gives every value of it, on enough inputs: it is as exact as requested. For a
        constant, which is the same on every input, the results alone decide."""
        same = self.fault.kind == "result" and not self.matters or self.fault.kind == "number" and self.count == 0
        return same and self.asked >= 6 * len(varying.KINDS)

    @property
    def enough(self):
        return _ENOUGH_OF_SUM if self.fault.kind == "sum" else _ENOUGH


class Judge(Answers):
    """One kernel. `stored` has the values of the reference as PyTorch stores them, for their dtypes and shapes.
    `call(tensors)` gives ({input: tensor}, {result: tensor}) of the kernel, on its own arguments if `tensors` is
    None; `vary(number)` a Varied of other inputs, or None."""

    def __init__(self, kernel, case, stored, call, vary, rounds=None, store="rne", seconds=SECONDS, began=None):
        self.case, self.stored, self.call, self.vary, self.store, self.rounds = case, stored, call, vary, store, rounds
        self.began, self.spent, self.seconds = began or time.monotonic(), time.thread_time(), seconds
        self.report = KernelReport(kernel, case)
        self.sets = []  # (a Varied, tensors, {result: what the kernel gave})
        self.known = {}  # (form, set) -> values without a fault
        self.nearest = None  # the form that the results are distinguished from, if the open one contains them
        self.single = set()  # narrow sums of one term
        self.forms, self._alive = [], []
        self.missed = 0  # results that the nearest form does not give
        self.yields = {}  # (kind of input, its tensor) -> elements of narrow evaluations that lay outside
        self.counted = {}  # form -> [_Counted]
        self.balls = {}  # (form, set) -> values as the enclosure has them

    def clock(self):
        if self._late():
            raise TimeUp

    def _late(self):
        return time.thread_time() - self.spent > self.seconds or time.monotonic() - self.began > self.seconds * _PATIENCE

    def run(self):
        """Decides; the report."""
        try:
            self._decide()
        except TimeUp:
            self._leave_open()
        self.report.seconds, self.report.computed = time.monotonic() - self.began, time.thread_time() - self.spent
        return self.report

    def _decide(self):
        self._add("given")
        self.result_dtypes = {name: formats.name_of(each) for name, each in self.sets[0][2].items()}
        if self._other_kind():
            return None
        dtypes = {name: formats.name_of(each) for name, each in self.stored.items()}
        shapes = {name: tuple(each.shape) for name, each in self.stored.items()}
        self.forms = fusing.programs(self.case, dtypes, shapes, self.result_dtypes, self.rounds)
        alive, number = self._likely_forms(), 0
        while True:
            alive = [form for form in alive if not self._outside(form, len(self.sets) - 1)]
            self._alive = alive
            if not alive:
                return self._violated()
            if len(self.sets) == 2 and self._is_open(alive[0]) and self._is_narrow():
                return self._violated()
            if len(self.sets) >= _FEWEST_INPUTS and self._all_excluded(alive):
                self.report.status = "PASS"
                return None
            self.known = {key: each for key, each in self.known.items() if key[1] >= len(self.sets) - 2}
            while number < (_MOST_OF_OPEN if self._is_open(alive[0]) else _MOST_INPUTS):
                number += 1
                if self._add(self._next(number - 1)):
                    break
            else:
                return self._leave_open()

    def _likely_forms(self):
        """The forms nearest to the results, and the open one; no other has to be enclosed."""
        usual = [form for form in range(len(self.forms)) if not self._is_open(form)]
        if len(usual) > _MOST_ALIVE:
            given = self._given(0)

            def distance(form):
                values, _ = self._faulty(form, 0, None)
                return sum(float(((values[name] - given[name]).abs() / (1e-30 + values[name].abs())).nan_to_num(posinf=1).clamp(max=1).sum())
                           for name in given)
            usual = sorted(sorted(usual, key=distance)[:_MOST_ALIVE])
        return usual + [form for form in range(len(self.forms)) if self._is_open(form)]

    def _next(self, number):
        """The number of the next input: each kind in turn at first, then every other time of the kind that excluded most."""
        kinds = len(varying.KINDS)
        if number < 2 * kinds or number % 2 or not self.yields:
            return number
        best = max(range(kinds), key=lambda kind: max([count for (of, _), count in self.yields.items() if of == kind] + [0]))
        return (number + 1000) * kinds + best

    def _is_open(self, form):
        return fusing.OPEN in self.forms[form].form.values()

    def _is_narrow(self):
        """True if no known form gives the results, and a narrow evaluation of one of them gives all that the form alone
        does not."""
        self.report.resembles = self._named()
        self.nearest = self._usual()[0]
        return self.missed >= ENOUGH_MISSED and bool(self.report.resembles) and self.report.resembles[0][1] >= _NEARLY_ALL

    def _add(self, seed):
        made = varying.Varied("the arguments", None, None, None) if seed == "given" else self.vary(seed)
        if made is None:
            return False
        name, tensors = made.name, made.tensors
        tensors, given = self.call(tensors)
        if made.kind == varying.KINDS.index(varying.RANGE) and not all(bool(each.float().isfinite().all()) for each in given.values()):
            return False  # an overflow of float32 in an intermediate is not a matter of precision
        self.sets.append((made, tensors, given))
        self.report.inputs[name] = tensors
        self.report.elements += sum(each.numel() for each in given.values())
        self.clock()
        return True

    # Inside or not

    def _range(self, form, index):
        """{result: (lowest, highest)} after the output rounding."""
        key = form, index
        if key not in self.balls:
            self.balls[key] = {}
            env = evaluating.evaluate(self.forms[form], self.sets[index][1], enclosing.Enclosing(self.clock))
            for name, dtype in self.result_dtypes.items():
                low, high = (formats.stored(each, dtype, self.store) for each in env[name].ends())
                self.balls[key][name] = low, high, env[name].v, env[name].e
        return self.balls[key]

    def _apart(self, form, index, values):
        """{result: where `values`, after the output rounding, differ from every conforming evaluation}."""
        found = {}
        for name, (low, high, exact, _) in self._range(form, index).items():
            value = formats.stored(values[name], self.result_dtypes[name], self.store)
            inside = (value >= low) & (value <= high) | exact.isnan()
            found[name] = ~inside
        return found

    def _outside(self, form, index):
        return any(bool(each.any()) for each in self._apart(form, index, self._given(index)).values())

    def _given(self, index):
        return {name: each.double() for name, each in self.sets[index][2].items()}

    # Narrow evaluations

    def _faulty(self, form, index, fault, sample=False):
        """({result: the narrow evaluation after the output rounding}, whether it rounded anything)."""
        program, inputs, known = self.forms[form], self.sets[index][1], self._without(form, index)
        if fault is None:
            return {name: known[name] for name in self.result_dtypes}, False
        arithmetic = narrowing.Plain(fault, self.clock, sample)
        env = evaluating.evaluate(program, inputs, arithmetic, known)
        if fault.kind == "sum" and arithmetic.terms == 1 and not fault.products and not fault.parts and fault.chunk == 1:
            self.single.add(fault)  # nothing is added here, so a narrow sum gives the same
        changed = not fault.node or env[fault.node] is not known[fault.node] and not _equal(env[fault.node], known[fault.node])
        return {name: env[name] for name in self.result_dtypes}, changed

    def _without(self, form, index):
        """The values of a form with nothing narrow; values shared with a form that was computed already are reused."""
        if (form, index) not in self.known:
            program, known, alike = self.forms[form], None, None
            if other := next((each for each in self.known if each[1] == index), None):
                nodes = {node.name: (node.op, node.of, node.attrs) for node in self.forms[other[0]].nodes}
                known, alike = self.known[other], {node.name for node in program.nodes if nodes.get(node.name) == (node.op, node.of, node.attrs)}
            self.known[form, index] = evaluating.evaluate(program, self.sets[index][1], narrowing.Plain(clock=self.clock), known, alike)
        return self.known[form, index]

    def _all_excluded(self, alive):
        """True if, under one of the forms that the kernel may have, every narrow evaluation lies outside on some
        input."""
        best = None
        for form in ([each for each in alive if not self._is_open(each)] or alive)[:2]:
            excluded, left = {}, []
            for each in self._counted(form):
                if each.count >= each.enough:
                    excluded[each.fault.says] = each.count
                elif each.rounds and not each.is_float32():
                    left.append(each.fault)
            if best is None or len(left) < len(best[1]):
                best = excluded, left, form
            if not left:
                break
        excluded, left, form = best
        self.report.excluded, self.report.left, self.report.form = excluded, [each.says for each in left], self.forms[form].said()
        return not left

    def _counted(self, form):
        """The narrow evaluations of a form, each tested on the new inputs until it is excluded."""
        if form not in self.counted:
            self.counted[form] = [_Counted(each) for each in
                                  narrowing.faults(self.forms[form], self._input_dtypes(), self.result_dtypes)]
        for each in self.counted[form]:
            while each.count < each.enough and each.asked < len(self.sets):
                values, changed = self._faulty(form, each.asked, each.fault, sample=True)
                each.single = each.fault in self.single
                each.rounds = each.rounds or changed or each.single
                if changed:
                    each.matters = each.matters or self._matters(form, each.asked, values)
                    found = sum(int(one.sum()) for one in self._apart(form, each.asked, values).values())
                    each.count += found
                    made = self.sets[each.asked][0]
                    key = made.kind, made.chosen
                    self.yields[key] = self.yields.get(key, 0) + min(found, each.enough)
                each.asked += 1
        return self.counted[form]

    def _matters(self, form, index, values):
        for name, (_, _, exact, near) in self._range(form, index).items():
            if bool(((values[name] - exact).abs() > near).any()):
                return True
        return False

    def _input_dtypes(self):
        return {name: formats.name_of(each) for name, each in self.sets[0][1].items()}

    # Answers

    def _violated(self):
        """Fails the kernel: the last form, which leaves every choice open, does not contain the last input's results,
        or no other form does."""
        report, index = self.report, len(self.sets) - 1
        report.status = "FAIL"
        report.witness = self._witness(len(self.forms) - 1 if self.nearest is None else self.nearest, index)
        if not report.resembles:
            self.seconds = time.thread_time() - self.spent + _TO_NAME
            report.resembles = self._named()
        if not (report.resembles and report.resembles[0][1] >= NAMED) and self._is_either_neighbour():
            self._say_store()
            return
        if index > 0 and not (report.resembles and report.resembles[0][1] >= NAMED) and self._is_another(2.0**-6):
            self._say_structure()
            return
        report.reason = self._sentence()

    def _named(self):
        """[(sentence, share)] of the narrow evaluations that come nearest, the best first: of the results that float32
        does not give, the share that the narrow evaluation explains, less the share of the others that it misses."""
        seen = {}
        try:
            return self._compared(seen)
        except TimeUp:
            return sorted(((each[1].says, each[0]) for each in seen.values()), key=lambda each: -each[1])[:4]

    def _compared(self, seen):
        last, usual = [len(self.sets) - 1], self._usual()
        self.missed = self._missed(usual[0], None, last)
        without = max(1, self.missed)
        for thorough, form in itertools.product((False, True), usual[:2]):
            if thorough and max((each[0] for each in seen.values()), default=0.0) >= _NEARLY_ALL:
                break
            found = narrowing.faults(self.forms[form], self._input_dtypes(), self.result_dtypes, thorough)
            for fault in sorted(found, key=lambda each: each.simplicity()):
                if fault.says in seen and seen[fault.says][2] == form and not fault.products:
                    continue
                share = 1 - self._missed(form, fault, last) / without
                if share > seen.get(fault.says, (-math.inf, ))[0]:
                    seen[fault.says] = share, fault, form
        best = sorted(seen.values(), key=lambda each: (-each[0], each[1].simplicity()))[:4]
        self.missed = self._missed(usual[0], None)
        without = max(1, self.missed)
        both = [(fault.says, 1 - self._missed(form, fault) / without, fault.simplicity()) for _, fault, form in best]
        return [(says, share) for says, share, _ in sorted(both, key=lambda each: (-each[1], each[2]))]

    def _usual(self):
        """The forms that leave no choice open, the one that gives most of the last results first."""
        usual = [form for form in range(len(self.forms)) if not self._is_open(form)]
        return sorted(usual, key=lambda form: self._missed(form, None, [len(self.sets) - 1]))

    def _missed(self, form, fault, indices=None):
        """The number of results of some inputs that the narrow evaluation does not give, apart from those that float32
        leaves open."""
        missed = 0
        plain = max(each for each in range(len(self.forms)) if not self._is_open(each))
        for index in range(max(0, len(self.sets) - 2), len(self.sets)) if indices is None else indices:
            values, given = self._faulty(form, index, fault)[0], self._given(index)
            for name, value in values.items():
                near, dtype = self._range(plain, index)[name][3], self.result_dtypes[name]
                low, high = (formats.stored(each, dtype, self.store) for each in (value - near, value + near))
                missed += int((~((given[name] >= low) & (given[name] <= high) | value.isnan())).sum())
        return missed


def _equal(a, b):
    return bool(((a == b) | a.isnan() & b.isnan()).all())
