"""The answer about a kernel and its reference: the report, the witness, the reason, and the advice that decides an open
answer."""

import dataclasses

from ulpscope import formats, varying

_LARGE = 128  # rows and columns of a result that show nearly everything
# An output rounding of another kind leaves at least this share of results other than the nearest.
_SHARE_OF_STORE = 0.1
# The fewest results that float32 does not give, and the share of them that a narrow evaluation has to give to be named.
ENOUGH_MISSED, NAMED = 10, 0.8


@dataclasses.dataclass
class KernelReport:
    """The report of assert_precision(reference=): what was tried, on which inputs, and the outcome.

    status    PASS, FAIL or INCONCLUSIVE
    inputs    {name: tuple of arguments} on which the kernel was called
    excluded  {narrow evaluation: elements in which it lies outside}; `left` are those that were not excluded
    form      the roundings requested by the reference that the kernel makes
    resembles [(narrow evaluation, share of the results that it gives)] for a refused kernel, the nearest first
    seconds   by the clock, from the call on; `computed`: this thread's own computing time, after the capture of the reference
    """

    kernel: str
    case: object
    status: str = "INCONCLUSIVE"
    reason: str = ""
    advice: str = ""
    inputs: dict = dataclasses.field(default_factory=dict)
    elements: int = 0
    excluded: dict = dataclasses.field(default_factory=dict)
    left: list = dataclasses.field(default_factory=list)
    form: str = ""
    resembles: list = dataclasses.field(default_factory=list)
    witness: dict | None = None
    seconds: float = 0.0
    computed: float = 0.0

    @property
    def ok(self):
        return self.status == "PASS"

    def __str__(self):
        lines = [f"{self.kernel}: {self.status}{', ' + self.reason if self.reason else ''}"]
        lines.append(f"  inputs   {len(self.inputs)}, {self.elements} elements, {self.seconds:.1f} s")
        if self.form:
            lines.append(f"  form     {self.form}")
        if self.excluded:
            lines.append(f"  excluded {len(self.excluded)} narrow evaluations, {len(self.left)} left")
        if self.witness:
            lines.append(f"  witness  {self.witness['text']}")
        if self.advice:
            lines.append(f"  advice   {self.advice}")
        return "\n".join(lines)


class Answers:
    """The answers of a fused.Judge."""

    def _other_kind(self):
        """Whether a result has another shape, or a narrower dtype, than the reference gives: then that is the answer."""
        for name, each in self.sets[0][2].items():
            asked, kernel, reference = self.stored[name], *(formats.name_of(one) for one in (each, self.stored[name]))
            if not formats.known(kernel):
                raise ValueError(f"assert_precision: {name} is {kernel}, and reference= judges float32 and what is narrower")
            if each.shape != asked.shape:
                self.report.reason = f"{name} is of shape {kernel}{list(each.shape)}, where the reference has {reference}{list(asked.shape)}"
            elif not formats.holds(kernel, reference):
                self.report.reason = (f"{name} is stored in {kernel}, and the reference gives {reference} (let it end with a cast to {kernel} "
                                      "where that is meant)")
            else:
                continue
            self.report.status = "FAIL"
            return True
        return False

    def _is_either_neighbour(self):
        """True if every result is next to the float32 one, and many are not the nearest, as with an output rounding of
        another kind."""
        form, off, count = len(self.forms) - 1, 0, 0
        for index in range(len(self.sets)):
            for name, (low, high, exact, _) in self._range(form, index).items():
                value, dtype = self._given(index)[name], self.result_dtypes[name]
                off += int(((value < low) | (value > high)).sum())
                count += value.numel()
                beside = (value >= formats.neighbour(low, dtype, -1)) & (value <= formats.neighbour(high, dtype, 1))
                if not bool((beside | exact.isnan()).all()):
                    return False
        return off >= _SHARE_OF_STORE * count

    def _say_store(self):
        self.report.status = "INCONCLUSIVE"
        self.report.reason = "the results are neighbours of the float32 ones and not the nearest: another store, or a rounding before it"
        self.store = "rz" if self.store == "rne" else "rne"
        self.balls.clear()
        if not any(self._outside(len(self.forms) - 1, index) for index in range(len(self.sets))):
            word = {name: f"{dtype}_{self.store}" for name, dtype in self.result_dtypes.items()}
            self.report.advice = f'all of them are cut towards zero: out="{next(iter(word.values()))}" asks for that'
        else:
            self.report.advice = "call it with a kernel that returns its float32 result, before the store"

    def _say_structure(self):
        self.report.status = "INCONCLUSIVE"
        self.report.reason = f"on {self.sets[-1][0].name} it computes something else than the reference, and not on the arguments"
        self.report.advice = "let kernel and reference close over the arguments whose values have a structure that both rely on"

    def _witness(self, form, index):
        import torch
        name, tensors, _ = self.sets[index]
        given = self._given(index)
        for result, bad in self._apart(form, index, given).items():
            if not bad.any():
                continue
            low, high, exact, _ = self._range(form, index)[result]
            value = given[result]
            away = torch.where(value > high, value - high, low - value)
            away = torch.where(bad, away.nan_to_num(nan=float("inf")) / (exact.abs() + exact.abs().mean()), -1.0)
            at = int(away.reshape(-1).argmax())
            element = tuple(int(each) for each in torch.unravel_index(torch.tensor(at), value.shape)) if value.dim() else ()
            found = {"input": name, "result": result, "element": element, "observed": value.reshape(-1)[at].item(),
                     "exact": exact.reshape(-1)[at].item(), "low": low.reshape(-1)[at].item(), "high": high.reshape(-1)[at].item(),
                     "outside": int(bad.sum()), "of": bad.numel(), "inputs": tensors}
            between = str(found["low"]) if found["low"] == found["high"] else f"between {found['low']} and {found['high']}"
            found["text"] = (f"{result}{list(element)} is {found['observed']} on {name}; exact {found['exact']}; float32 gives {between} "
                             f"in any order ({found['outside']} of {found['of']} elements are outside)")
            return found
        return None

    def _is_another(self, least=0.1):
        """Most results are nowhere near those of the reference: by more than the share `least`."""
        form, index = len(self.forms) - 1, len(self.sets) - 1
        far = count = 0
        for name, (_, _, exact, _) in self._range(form, index).items():
            off = (self._given(index)[name] - exact).abs()
            far += int((off > least * (exact.abs() + exact.abs().mean())).sum())
            count += exact.numel()
        return far * 2 > count

    def _sentence(self):
        report = self.report
        says, share = report.resembles[0] if report.resembles else ("", 0.0)
        if share < 0.5 and self._is_another():
            return "most results are nowhere near those of the reference: it computes something else"
        alike = [other for other, also in report.resembles[1:] if share - also < 1e-3 and _deed(other) == _deed(says)]
        says = " or ".join([says, *(other.rpartition(" ")[2] for other in alike)])
        if share >= NAMED and self.missed >= ENOUGH_MISSED:
            return f"{says} (that gives {share:.0%} of the results which float32 does not)"
        return "results that no float32 evaluation gives" + (f"; nearest is: {says} ({share:.0%} of them)" if share >= 0.3 else
                                                             ", nor any narrow one that is known")

    def _leave_open(self):
        """States why nothing was decided, and what would decide it."""
        report, late = self.report, self._late()
        shown = ", ".join(report.left[:3]) + (" and more" if len(report.left) > 3 else "")
        single = [each.fault for form in self.counted.values() for each in form if each.single and each.count < each.enough]
        free = {name: each for name, each in self._tensors().items() if varying.is_free(each) and each.dim()}
        if late:
            report.reason = f"not decided in {self.seconds} s" + (f": {shown} would look the same" if shown else "")
            report.advice = "call it with smaller operands: " + _as_shapes(free, lambda size: max(min(size, 16), size // self._shrink()))
        elif single:
            report.reason = f"of one term, {single[0].says} shows nowhere: any accumulator gives the same"
            report.advice = "call it with operands whose sums have 64 terms or more"
        elif self.forms and self._alive and self._is_open(self._alive[0]):
            report.reason = "its results are those of no form of the reference that is known, and of none that is excluded"
            report.advice = "write the kernel's blocks and casts into the reference, in its order"
        elif not free:
            report.reason = f"no argument may be varied, and on the arguments {shown} would look the same"
            report.advice = "call it with operands of a floating dtype that are finite"
        else:
            report.reason = f"the inputs do not decide: {shown} would look the same"
            shown_in = {size for _, _, given in self.sets[:1] for each in given.values() for size in each.shape[-2:]}
            report.advice = "call it with larger operands: " + _as_shapes(
                free, lambda size: max(size * 2, _LARGE) if size in shown_in else size)

    def _tensors(self):
        return self.sets[0][1] if self.sets else {}

    def _shrink(self):
        """By what every extent is to be divided: a pass over these inputs took so long, and some hundreds are needed."""
        passes = sum(each.asked for form in self.counted.values() for each in form)
        return 2 if passes > 200 else 4 if passes > 20 else 8


def _deed(says):
    """A narrow evaluation without the format at its end."""
    return says.rpartition(" ")[0]


def _as_shapes(tensors, change):
    """"x bfloat16[64, 32] as [8, 32], ..."; equal extents are changed alike."""
    said = [f"{name} {formats.name_of(each)}{list(each.shape)} as {[change(size) for size in each.shape]}"
            for name, each in tensors.items() if [change(size) for size in each.shape] != list(each.shape)]
    return ", ".join(said)
