"""JAX's own harnesses of its lax primitives as programs for capture_jax(): what becomes of each, as op_database has it for PyTorch.

A case counts as captured when jax-eager has the bits of the function as it stands, and jax those of jax.jit of it. With gradients the program
is the pullback of ones (jax.vjp) with respect to every floating-point argument.
"""
import pathlib
import re
import sys
import types
import unittest
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "harness/python"), str(ROOT / "backends/python"), str(pathlib.Path(__file__).parent)]

import numpy  # noqa: E402
from capture_gate import Row  # noqa: E402
from op_database import Asked  # noqa: E402
from ulpscope import capturing_jax  # noqa: E402
from ulpscope.refusals import CaptureError, Reason  # noqa: E402

DTYPES = ("float32", "bfloat16")
_RANDOM = re.compile(r"random_|threefry|rng_")


def database():
    """jax._src.internal_test_util.test_harnesses. Its helpers import absl, from which the harnesses themselves use nothing."""
    from jax._src import config
    try:
        import absl.testing  # noqa: F401
    except ImportError:
        _stub_absl()
        config.parse_flags_with_absl = lambda *_: None
        config.config.parse_flags_with_absl = lambda *_: None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from jax._src.internal_test_util import test_harnesses
    return test_harnesses.all_harnesses


def _stub_absl():
    made = {name: types.ModuleType(name) for name in ("absl", "absl.testing", "absl.testing.absltest", "absl.testing.parameterized",
                                                      "absl.logging", "absl.flags", "absl.app")}
    made["absl.testing.absltest"].TestCase = made["absl.testing.parameterized"].TestCase = unittest.TestCase
    made["absl.testing.absltest"].TestLoader = unittest.TestLoader
    for each in ("named_parameters", "parameters", "product"):
        setattr(made["absl.testing.parameterized"], each, lambda *_, **__: lambda function: function)
    for name, module in made.items():
        outer, _, inner = name.rpartition(".")
        if outer:
            setattr(made[outer], inner, module)
        sys.modules[name] = module


class Program:
    """A harness as a function over its arrays alone."""

    def __init__(self, harness, backward):
        self._harness, self._backward = harness, backward
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.arrays = tuple(numpy.asarray(each) for each in harness.dyn_args_maker(numpy.random.RandomState(0)))
        if not all(each.dtype.kind in "fiubV" or each.dtype.name == "bfloat16" for each in self.arrays):
            raise TypeError("an argument that is no array of numbers")

    def __call__(self, *arrays):
        if not self._backward:
            return self._harness.dyn_fun(*arrays)
        import jax
        places = [i for i, each in enumerate(arrays) if _is_floating(each)]

        def of_floating(*given):
            whole = list(arrays)
            for place, each in zip(places, given):
                whole[place] = each
            return next(each for each in jax.tree_util.tree_leaves(self._harness.dyn_fun(*whole)) if _is_floating(each))

        result, pullback = jax.vjp(of_floating, *(arrays[place] for place in places))
        return pullback(jax.numpy.ones_like(result))


def _is_floating(value):
    import jax
    return jax.numpy.issubdtype(jax.numpy.asarray(value).dtype if not hasattr(value, "dtype") else value.dtype, jax.numpy.floating)


def of_jax(program, reason):
    """'' where the program bears the reason of its refusal out; else what it shows instead."""
    import jax
    from ulpscope.binding import words
    jaxpr = jax.make_jaxpr(program)(*program.arrays)
    seen, facts = set(), set()
    avals = [var.aval for var in (*jaxpr.jaxpr.invars, *jaxpr.jaxpr.outvars)]
    for equation in _equations(jaxpr.jaxpr):
        name = equation.primitive.name
        seen.add(name)
        avals += [var.aval for var in (*equation.invars, *equation.outvars)]
        if _RANDOM.match(name):
            facts.add(Reason.RANDOM)
        if name not in words.OPS:
            facts.add(Reason.NO_WORD)
        if name.startswith("dynamic_") and not all(hasattr(var, "val") for var in equation.invars[1:]):
            facts.add(Reason.DATA_DEPENDENT)
        if name in words.OPS or hasattr(capturing_jax_walk(), "_" + name):
            facts.add(Reason.PRIMITIVE_FORM)
        if any(hasattr(each, "eqns") or hasattr(each, "jaxpr") for value in equation.params.values()
               for each in (value if isinstance(value, (list, tuple)) else [value])) and name not in ("jit", "pjit"):
            facts.add(Reason.CONTROL_FLOW)
    for aval in avals:
        kind = str(getattr(aval, "dtype", ""))
        facts |= {Reason.COMPLEX} if kind.startswith("complex") else set()
        facts |= {Reason.DTYPE} if kind and kind not in words.WORDS["dtypes"] else set()
        facts |= {Reason.EMPTY} if 0 in getattr(aval, "shape", ()) else set()
    if not _computes(jaxpr.jaxpr) or seen <= {"copy", "copy_p", "stop_gradient", "device_put", "optimization_barrier", "convert_element_type", "jit",
                                              "pjit"}:
        facts.add(Reason.NOTHING_COMPUTED)
    return "" if reason in facts else f"the reason {reason.name} is not true (primitives: {', '.join(sorted(seen)) or 'none'})"


def _computes(jaxpr):
    """Whether a result is computed from an argument, and is not that argument."""
    reached = set(jaxpr.invars)
    for equation in jaxpr.eqns:
        if any(not hasattr(var, "val") and var in reached for var in equation.invars):
            reached.update(equation.outvars)
    return any(not hasattr(var, "val") and var in reached and var not in jaxpr.invars for var in jaxpr.outvars)


def capturing_jax_walk():
    from ulpscope import primitives_jax
    return primitives_jax.Walk


def _equations(jaxpr):
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            for each in value if isinstance(value, (list, tuple)) else [value]:
                inner = getattr(each, "jaxpr", each)
                if hasattr(inner, "eqns"):
                    yield from _equations(inner)


def outcome(harness, dtype, number, asked, direction="forward", keep=None):
    row = Row(harness.group_name, dtype, direction, number)
    try:
        program = Program(harness, direction == "backward")
        capturing_jax.results(program, program.arrays, {}, _Results(), "jax-eager")
    except Exception as error:
        return row.ended("no program", f"the function itself raises: {type(error).__name__}")
    try:
        case = capturing_jax.capture_jax(program, program.arrays, name=re.sub(r"\W", "_", f"{row.op}_{dtype}_{direction}_{number}"), verify=())
    except CaptureError as error:
        return row.refused(error, of_jax(program, error.reason))
    except Exception as error:
        return row.ended("fault", f"{type(error).__name__}: {' '.join(str(error).split())}")
    row.words = tuple(step.op for step in case.all_steps() if step.name)
    parted = ""
    for backend in capturing_jax.BACKENDS:
        try:
            said = capturing_jax.differences(case, program, program.arrays, {}, backend, asked[backend].run(case))
            parted = parted or next((f"{backend}: {name}: {text}" for name, text in said.items() if text), "")
        except Exception as error:
            parted = parted or f"{backend}: {type(error).__name__}: {' '.join(str(error).split())}"
    if not parted and keep is not None:
        keep(row, case, program)
    return row.ended("fault", parted) if parted else row.ended("captured")


def keep_reference(references, row, case, program):
    """Hands a captured case to capture_references.References with what its program gives in float64."""
    import jax
    from ulpscope import kernels
    try:
        with jax.enable_x64(True):
            wide = tuple(each.astype("float64") if _is_floating(each) else each for each in program.arrays)
            found = jax.tree_util.tree_leaves(program(*wide))
            values = [kernels.as_torch(numpy.asarray(each)) for each in found]
    except Exception:  # a harness that takes no float64
        return
    own = capturing_jax.results(program, program.arrays, {}, case, "jax-eager")
    references.add(row, case, {name: value for name, value in zip(case.results, values) if name in own}, own)


class _Results:
    results, observe = (), ()


def chosen(samples, primitives=None):
    """(harness, its dtype, its number): of each primitive and dtype `samples` harnesses, spread over those that there are."""
    groups = {}
    for harness in database():
        dtype = numpy.dtype(harness.dtype).name
        if dtype in DTYPES and harness.filter("cpu") and (primitives is None or harness.group_name in primitives):
            groups.setdefault((harness.group_name, dtype), []).append(harness)
    for (_, dtype), harnesses in groups.items():
        step = max(1, len(harnesses) // samples)
        for number, harness in list(enumerate(harnesses))[::step][:samples]:
            yield harness, dtype, number


def outcomes(samples=2, primitives=None, directions=("forward", "backward"), keep=None):
    """Rows of the primitives of this name (all, without)."""
    asked = {backend: Asked(f"{backend}:threads={capturing_jax.threads()}") for backend in capturing_jax.BACKENDS}
    try:
        for harness, dtype, number in chosen(samples, primitives):
            for direction in directions:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    yield outcome(harness, dtype, number, asked, direction, keep)
    finally:
        for each in asked.values():
            each.close()
