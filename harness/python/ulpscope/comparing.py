"""compare(): whether two programs are one function on the same inputs, where they differ, or what their rounding
differs in."""

import dataclasses
import json
import pathlib
import tempfile
from dataclasses import dataclass, field

from ulpscope import adapters, kernels, names
from ulpscope.case import Case, every
from ulpscope.checking import Refused, RunFailed
from ulpscope.reporting import Ledger


@dataclass(frozen=True)
class FirstDifference:
    """The place in which two functions differ.

    step     the step of g whose operands f has too, and whose value f does not have
    of_f     the step of f in its place, '' if there is none
    value    where the exact values are shown: `step`, or the first later value that both programs have
    element  its coordinates
    f, g     both exact values there, rounded to a float
    """

    step: str
    of_f: str
    value: str
    element: tuple
    f: float
    g: float


@dataclass(repr=False)
class Comparison:
    """The result of compare(). `str` is the summary in the first line, and its basis below.

    same_function     the exact results are equal
    first_difference  None, or a FirstDifference
    ledgers           a Ledger of each result that differs in bits, for the same function; `ledger` is the first, None without
    summary, details  the text, line by line
    data              all of it, as `ulpscope compare --json` writes it
    """

    same_function: bool
    first_difference: FirstDifference | None
    ledgers: list
    summary: str
    details: list
    data: dict = field(default_factory=dict)

    @property
    def ledger(self):
        """The Ledger of the first result that differs in bits; None where none does, or where the functions differ."""
        return self.ledgers[0] if self.ledgers else None

    @property
    def nearer(self):
        """The name of the program whose computed result (that of `ledger`) is nearer to exact; '' for neither, None if
        unknown."""
        nearness = self.ledger.nearness if self.ledger else None
        return nearness["nearer"] if nearness else None

    def __str__(self):
        return "\n".join([self.summary, *("  " + each for each in self.details)])

    __repr__ = __str__


def compare(f, g, args=(), kwargs=None, *, backend=None, seed=0, timeout=None):
    """Compares `f(*args, **kwargs)` with `g(*args, **kwargs)`: first in exact arithmetic, with no step and no cast
    rounded, then as `backend` computes them.

    `f` and `g` are functions, nn.Modules, Cases or paths of case files. If the exact results differ, they are
    different functions, and `first_difference` names the step. If they are equal, every difference of the computed
    results is rounding: `ledger` has each step's share of it, and `nearer` names the one of the two that is nearer
    to exact. The default `backend` is torch-eager, on the device of the tensors, and jax-eager for functions of JAX.
    `seed` is that of the inputs of case files.

    Raises Refused (a ValueError) if the two cannot be compared: results of different shapes, parameters of one name
    and different values, a program that the backend does not compute, a result that has no exact value.
    """
    own_jax = False
    if any(not isinstance(each, (Case, str, pathlib.Path)) for each in (f, g)):
        from ulpscope import capturing_jax
        own_jax = capturing_jax.is_jax(args, kwargs)
    with tempfile.TemporaryDirectory(prefix="ulpscope-compare-") as folder:
        first, second = (_case_of(each, side, args, kwargs, own_jax) for each, side in ((f, "f"), (g, "g")))
        if isinstance(first, Case) and isinstance(second, Case):
            second = with_inputs_of(second, first)
        paths = [_path_of(each, pathlib.Path(folder, side)) for each, side in ((first, "f"), (second, "g"))]
        return _compared(paths, backend or _backend_for((f, g), args, kwargs, own_jax), seed, timeout, pathlib.Path(folder))


def _case_of(f, side, args, kwargs, own_jax):
    """The case of a function under its own name, or that of its `side` where it has none."""
    if isinstance(f, (Case, str, pathlib.Path)):
        return f
    own = getattr(f, "__name__", type(f).__name__)
    name = own if own.isidentifier() else side
    if own_jax:
        from ulpscope import capturing_jax
        return capturing_jax.capture_jax(f, args, kwargs, name=name)
    from ulpscope import capturing
    return capturing.capture(f, args, kwargs, name=name)


def _backend_for(programs, args, kwargs, own_jax):
    if own_jax:
        return "jax-eager"
    functions = [each for each in programs if not isinstance(each, (Case, str, pathlib.Path))]
    if not functions:
        return "torch-eager"
    from ulpscope import capturing
    return adapters.on(("torch-eager",), capturing.device_of(functions[0], args, kwargs))[0]


def _path_of(case, folder):
    if not isinstance(case, Case):
        return pathlib.Path(case)
    folder.mkdir()
    return case.save(folder / f"{case.name}.yaml")


def with_inputs_of(case, other):
    """`case` with each tensor called as the equal one of `other` is; those that a program holds as constants get names of their own."""
    unused, new = list(other.inputs), {}
    for each in case.inputs:
        same = next((known for known in unused if _equal(known, each)), None)
        if same is not None:
            unused.remove(same)
            new[each.name] = same.name
    taken = {each.name for each in (*other.inputs, *case.inputs)} | {step.name for step in every(case.steps)}
    given = set(new.values())
    for name in [each.name for each in case.inputs if each.name not in new] + [step.name for step in every(case.steps)]:
        if name in given or name.startswith("constant"):
            new[name] = names.unique(name, taken)

    def called(word):
        base, dot, rest = word.partition(".")
        return new.get(base, base) + dot + rest

    def renamed(steps):
        return [dataclasses.replace(step, of=tuple(called(each) if isinstance(each, str) else each for each in step.of),
                                    name=called(step.name), out=called(step.out), steps=renamed(step.steps)) for step in steps]

    return dataclasses.replace(case, inputs=[dataclasses.replace(each, name=called(each.name)) for each in case.inputs],
                               steps=renamed(case.steps), observe=[called(each) for each in case.observe])


def _equal(a, b):
    if (a.dtype, a.tensor.shape, a.synthetic, b.synthetic) != (b.dtype, b.tensor.shape, False, False):
        return False
    return adapters.to_wire(a.tensor).data == adapters.to_wire(b.tensor).data


def _compared(paths, backend, seed, timeout, folder):
    found = folder / "comparison.json"
    command = ["compare", *map(str, paths), "--json", str(found), "--seed", str(seed)]
    command += ["--timeout", str(timeout)] if timeout else []
    code, console, said = kernels.called(command, [backend])
    if code not in (0, 1) or not found.is_file():
        text = (said or console).strip().removeprefix("ulpscope: ")
        raise Refused(text) if code == 4 else RunFailed(f"ulpscope exits {code}: {text[-2000:]}")
    data = json.loads(found.read_text(encoding="utf-8"))
    return Comparison(same_function=data["same_function"], first_difference=_difference(data["first_difference"]),
                      ledgers=[Ledger(each) for each in data["ledgers"]], summary=data["summary"], details=data["details"], data=data)


def _difference(found):
    if found is None:
        return None
    return FirstDifference(step=found["step"], of_f=found["of_f"], value=found["at_g"], element=tuple(found["element"]),
                           f=float(found["f"]), g=float(found["g"]))
