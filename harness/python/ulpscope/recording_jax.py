"""A run of a function of JAX, primitive by primitive: each call with its real arrays, and that call as a case.

The function runs on arrays and not on tracers, so its Python may branch on values. Functions that JAX compiles by
itself (jax.jit, jnp's functions) are carried out primitive by primitive, and so are branches and loops (cond, while,
scan).
"""

import linecache
import os
import sys
from collections import Counter

import jax
import numpy
from jax._src import core

from ulpscope import capturing_jax, kernels, primitives_jax
from ulpscope.binding import words
from ulpscope.recording import Call, Group
from ulpscope.refusals import CaptureError, Reason

_LIBRARY = os.path.dirname(jax.__file__) + os.sep
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
# Primitives that only rearrange an array, or pass it on.
_VIEWS = ("reshape", "squeeze", "expand_dims", "broadcast_in_dim", "transpose", "copy", "copy_p", "stop_gradient", "device_put", "stage",
          "optimization_barrier")


class Recorder(core.EvalTrace):
    """`recorded(f, args, kwargs, recorder)`; then `recorder.groups`, in the order of their first calls."""

    def __init__(self, most_elements):
        super().__init__()
        self.groups, self.most_elements, self.opaque = {}, most_elements, Counter()
        self._inside = []  # the lines of the equations that are being entered

    def process_primitive(self, primitive, args, params, /):
        return self._done(primitive, args, params)

    def process_custom_jvp_call(self, primitive, fun, jvp, tracers, /, **_):
        with core.set_current_trace(self):
            return fun.call_wrapped(*tracers)

    def process_custom_vjp_call(self, primitive, fun, fwd, bwd, tracers, /, **_):
        with core.set_current_trace(self):
            return fun.call_wrapped(*tracers)

    def _done(self, primitive, args, params):
        """The result of a primitive; a list if it has several."""
        name = primitive.name
        inner = next((params[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if hasattr(params.get(key), "eqns")
                      or hasattr(params.get(key), "jaxpr")), None)
        if name == "cond":
            index, *operands = args
            return self._entered(params["branches"][min(max(int(index), 0), len(params["branches"]) - 1)], operands)
        if name == "while":
            return self._loop(args, params)
        if name == "scan":
            return self._scan(args, params)
        if inner is not None and name in primitives_jax.CALLS:
            found = self._entered(inner, args)
            return found if primitive.multiple_results else found[0]
        if inner is not None:
            self.opaque[name] += 1
        found = super().process_primitive(primitive, args, params)
        if inner is None:
            self._keep(primitive, args, params, found if primitive.multiple_results else [found])
        return found

    def _entered(self, closed, args):
        """The results of a jaxpr, each of its equations done by itself."""
        jaxpr = getattr(closed, "jaxpr", closed)
        env = dict(zip(jaxpr.constvars, getattr(closed, "consts", ())))
        env.update(zip(jaxpr.invars, args))

        def read(var):
            return var.val if hasattr(var, "val") else env[var]

        for equation in jaxpr.eqns:
            self._inside.append(primitives_jax.frames_of(equation.source_info.traceback, __file__))
            try:
                found = self._done(equation.primitive, [jax.numpy.asarray(each) if isinstance(each, (bool, int, float, numpy.generic)) else each
                                                        for each in map(read, equation.invars)], equation.params)
            finally:
                self._inside.pop()
            env.update(zip(equation.outvars, found if equation.primitive.multiple_results else [found]))
        return [read(var) for var in jaxpr.outvars]

    def _loop(self, args, params):
        tests, bodies = params["cond_nconsts"], params["body_nconsts"]
        beside_test, beside, state = args[:tests], args[tests:tests + bodies], list(args[tests + bodies:])
        while bool(self._entered(params["cond_jaxpr"], [*beside_test, *state])[0]):
            state = self._entered(params["body_jaxpr"], [*beside, *state])
        return state

    def _scan(self, args, params):
        consts, carried, length = params["num_consts"], params["num_carry"], params["length"]
        beside, state, rows = args[:consts], list(args[consts:consts + carried]), args[consts + carried:]
        made = []
        for index in reversed(range(length)) if params["reverse"] else range(length):
            found = self._entered(params["jaxpr"], [*beside, *state, *(each[index] for each in rows)])
            state = found[:carried]
            made.append(found[carried:])
        made = made[::-1] if params["reverse"] else made
        return [*state, *(jax.numpy.stack(each) for each in zip(*made))]

    def _keep(self, primitive, args, params, results):
        described = tuple(("tensor", each.dtype, tuple(each.shape), (), "", "") if hasattr(each, "dtype") else (type(each).__name__, repr(each))
                          for each in args)
        others = tuple((key, ("", str(value))) for key, value in sorted(params.items()) if not callable(value) and value is not None)
        key = (primitive, "", described, others)
        if key not in self.groups:
            same = primitive.name == "convert_element_type" and args[0].dtype == results[0].dtype
            self.groups[key] = Group(primitive, f"jax::{primitive.name}", key, "view" if same or primitive.name in _VIEWS else "op")
        group = self.groups[key]
        group.calls += 1
        where = self._where()
        group.places[("", *(where[-1][:2] if where else ("", 0)))] += 1
        size = sum(each.size for each in args if hasattr(each, "size"))
        if size > self.most_elements:
            group.too_large = size
        elif group.kept is None and group.kind == "op":
            group.kept = Call(primitive, group.op, tuple(args), dict(params), list(results), where)

    def _where(self):
        """The lines of Python that make this call, then those of the equations around it; outermost first."""
        frames, frame = [], sys._getframe(2)
        while frame is not None and not (frame.f_code.co_filename == __file__ and frame.f_code.co_name == "recorded"):
            file = frame.f_code.co_filename
            if not file.startswith((_LIBRARY, _HERE, "<")) and "/jaxlib/" not in file:
                frames.append((file, frame.f_lineno, linecache.getline(file, frame.f_lineno).strip(), frame.f_code.co_name))
            frame = frame.f_back
        inner = next((each for each in reversed(self._inside) if each), ())
        return (*reversed(frames), *inner)


def recorded(f, args, kwargs, recorder):
    """The result of `f(*args, **kwargs)`, with every primitive recorded."""
    with core.set_current_trace(recorder):
        return f(*args, **kwargs)


def case_of(call, name):
    """As calls.case_of(): (the Case that a primitive's call is, {observed value: the tensor that it gave})."""
    from ulpscope.calls import demand
    if call.func.name.startswith(("random_", "threefry", "rng_")):
        raise CaptureError(f"primitive {call.func.name}: random numbers", Reason.RANDOM)
    arrays = [each for each in call.args if hasattr(each, "dtype")]
    for each in (*arrays, *call.results):
        if str(each.dtype) not in words.WORDS["dtypes"]:
            raise CaptureError(f"primitive {call.func.name}: dtype {each.dtype}, which no case has",
                               Reason.COMPLEX if jax.numpy.iscomplexobj(each) else Reason.DTYPE)
    if any(each.size == 0 for each in (*arrays, *call.results)):
        raise CaptureError(f"primitive {call.func.name}: an array without elements", Reason.EMPTY)

    def again(*given):
        given = iter(given)
        return call.func.bind(*(next(given) if hasattr(each, "dtype") else each for each in call.args), **call.kwargs)

    case = capturing_jax.capture_jax(again, arrays, name=name, verify=())
    results = {value: kernels.as_torch(numpy.asarray(found)) for value, found in zip(case.results, call.results) if value in case.observe}
    case.source = call.place()
    demand(case, [kernels.as_torch(numpy.asarray(each)) for each in arrays], results)
    return case, results
