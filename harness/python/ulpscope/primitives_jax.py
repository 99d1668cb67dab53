"""JAX's primitives in the words of the case language, one method for each that does not have the name and the operands
of an elementwise word.

A value computed from constants alone is a constant: a number if one represents it, else a tensor of the case. A call
is one word if the library's function of that word has the same jaxpr on these operands; else it is entered.
"""

import pathlib
import traceback

from ulpscope import case as cases
from ulpscope import names
from ulpscope.case import Step
from ulpscope.products_jax import Products
from ulpscope.binding import words
from ulpscope.refusals import CaptureError, Reason

_WORDS = {"logistic": "sigmoid", "add_any": "add", "rem": "fmod"}
_COMMUTE = ("add", "mul", "eq", "ne")
_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_REDUCTIONS = {"reduce_sum": "sum", "reduce_max": "amax", "reduce_min": "amin", "reduce_and": "all", "reduce_or": "any"}
_NOTHING = ("copy", "copy_p", "optimization_barrier", "stop_gradient", "device_put")
_ARRANGED = ("broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose", "convert_element_type")  # an array keeps its name
_SHAPING = ("reshape", "unsqueeze", "expand")
_FLOW = {"while": "a loop", "scan": "a loop", "cond": "a branch on values"}
# Primitives that run the program they hold once, on their own operands. Others hold one and do something else with it.
CALLS = ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "remat", "remat2", "checkpoint",
          "composite", "custom_lin", "name")


class Constant:
    """An array that follows from constants alone; `where` has the lines of the last of them."""

    def __init__(self, array, where=()):
        self.array, self.where = array, where

    def number(self):
        """The one number that every element is, or None."""
        import numpy
        flat = numpy.asarray(self.array).reshape(-1)
        if flat.size == 0 or not (flat[:1] == flat).all() and not (flat != flat).all():
            return None
        item = flat[0].item() if flat.dtype.kind in "fiub" else float(flat[0])
        return item if isinstance(item, (bool, int, float)) else None


class Walk(Products):
    """Steps from a jaxpr. Values are called `%NUMBER` until names.py has named them; `home` is the file that requested
    the jaxpr."""

    def __init__(self, home, taken):
        self.steps, self.inputs = [], []
        self._home, self._taken, self._where, self._equation = home, taken, (), None
        self._made, self._shapes = {}, {}

    def results(self, closed, known):
        """Walks a closed jaxpr with `known`, variable -> name; what it returns, names and Constants."""
        self._shapes = {name: [int(extent) for extent in var.aval.shape] for var, name in known.items()}
        constants = {var: Constant(value) for var, value in zip(closed.jaxpr.constvars, closed.consts)}
        return self._jaxpr(closed.jaxpr, {**constants, **known})

    def _jaxpr(self, jaxpr, env):
        env = dict(env)

        def read(var):
            return Constant(var.val) if hasattr(var, "val") else env[var]

        for equation in jaxpr.eqns:
            outer = self._where, self._equation
            self._where, self._equation = self._lines(equation, outer[0]), equation
            found = self._saying(equation, [read(var) for var in equation.invars])
            found = found if isinstance(found, list) else [found]
            env.update(zip(equation.outvars, found))
            self._shapes.update({each: [int(extent) for extent in var.aval.shape] for each, var in zip(found, equation.outvars)
                                 if isinstance(each, str)})
            self._where, self._equation = outer
        return [read(var) for var in jaxpr.outvars]

    def add(self, op, of, **attrs):
        """Appends a step; the name of its result. Constants become numbers where the step may have one there, else tensors."""
        step = Step(op, tuple(of), f"%{len(self.steps) + 1}", attrs, where=self._where)
        self.steps.append(step)
        self._made[step.name] = step
        return step.name

    def refuse(self, text, reason=Reason.PRIMITIVE_FORM):
        where = self._where
        raise CaptureError(f"primitive {self._equation.primitive.name}: {text}"
                           + (f", at {where[-1][0]}:{where[-1][1]}: {where[-1][2]}" if where else ""), reason)

    def _saying(self, equation, of):
        """_said(); whatever goes wrong in it is an error that names the primitive and its line."""
        try:
            return self._said(equation, of)
        except CaptureError:
            raise
        except Exception as error:
            self.refuse(f"capture has no way to say it; this is a fault of ulpscope's own ({type(error).__name__}: {error})", Reason.OWN_FAULT)

    def _said(self, equation, of):
        name, params = equation.primitive.name, equation.params
        if name.startswith(("random_", "threefry", "rng_")):
            self.refuse("random numbers; what a case computes must come out the same each time", Reason.RANDOM)
        if name in _FLOW:
            self.refuse(f"{_FLOW[name]}, and a case is a straight line", Reason.CONTROL_FLOW)
        inner = next((params[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if hasattr(params.get(key), "eqns")
                      or hasattr(params.get(key), "jaxpr")), None)
        if inner is not None:
            if name not in CALLS:
                self.refuse("it holds a program of its own, which is not run once on the operands as they are", Reason.CONTROL_FLOW)
            return self._call(equation, inner, of)
        if name in _NOTHING:
            return of
        if all(isinstance(each, Constant) for each in of):
            found = equation.primitive.bind(*(each.array for each in of), **params)
            found = found if equation.primitive.multiple_results else [found]
            where = of[0].where if name in _ARRANGED and of[0].where else self._where
            return [Constant(each, where) for each in found]
        if name in _REDUCTIONS and (_REDUCTIONS[name] not in ("all", "any") or str(equation.invars[0].aval.dtype) == "bool"):
            axes = [int(axis) for axis in params["axes"]]
            return self.add(_REDUCTIONS[name], of, dim=axes[0] if len(axes) == 1 else axes) if axes else of[0]
        method = getattr(self, "_" + name, None)
        if method is not None:
            return method(of, params)
        row = words.OPS.get(_WORDS.get(name, name))
        if row is None or row["kind"] != "value" or set(row["attributes"]) - {"alpha"} or not row["operands"][0] == row["operands"][1] == len(of):
            if row is not None and row["kind"] == "value":
                self.refuse("a form of it that its word does not have")
            self.refuse("the case language has no word for it", Reason.NO_WORD)
        return self._elementwise(_WORDS.get(name, name), of)

    def _call(self, equation, inner, of):
        body = getattr(inner, "jaxpr", inner)
        word = _library(equation, body, of)
        if word is not None:
            return [self.add(word[0], [each for each in of if isinstance(each, str)], **word[1])]
        known = {var: Constant(value) for var, value in zip(body.constvars, getattr(inner, "consts", ()))}
        return self._jaxpr(body, {**known, **dict(zip(body.invars, of))})

    def _lines(self, equation, outer):
        """The author's lines that an equation comes from, outermost first. The lines of a call that was traced before
        belong to another caller: then only those below this one count."""
        own = frames_of(equation.source_info.traceback, self._home)
        if not outer or own[:len(outer)] == outer or (own and own[0][3] == outer[0][3] and len(own) >= len(outer)):
            return own or outer
        return outer

    def tensor(self, value):
        """A name for an operand."""
        if isinstance(value, str):
            return value
        import numpy
        number, array = value.number(), numpy.asarray(value.array)
        if number is not None:
            return self.add("full", (), shape=list(array.shape), dtype=str(array.dtype), value=number)
        from ulpscope import kernels
        target = names.assigned(value.where)
        name = names.unique(target or "constant", self._taken)
        self.inputs.append(cases.Input(name, kernels.as_torch(array)))
        return name

    def scalar(self, value, what, reason=Reason.PRIMITIVE_FORM):
        """An operand that the language requires as a number."""
        number = value.number() if isinstance(value, Constant) else None
        if number is None:
            self.refuse(f"{what} that is no number", reason)
        return number

    def operand(self, value):
        """A name, or a number if one represents the constant."""
        if isinstance(value, str):
            return value
        number = value.number()
        return number if number is not None else self.tensor(value)

    def shape(self, index=0):
        return [int(extent) for extent in self._equation.invars[index].aval.shape]

    def due(self):
        return [int(extent) for extent in self._equation.outvars[0].aval.shape]

    def _elementwise(self, op, of):
        of = [self.operand(each) for each in of]
        if isinstance(of[0], str):
            return self.add(op, of)
        if op in _COMMUTE or op in _TURNED:
            return self.add(_TURNED.get(op, op), of[::-1])
        if op == "sub":  # no op of the language has a number first
            return self.add("add", [self.add("neg", of[1:]), of[0]])
        if op == "div" and of[0] == 1:
            return self.add("reciprocal", of[1:])
        aval = self._equation.invars[0].aval
        first = self.add("full", (), shape=[1] * len(self.due()), dtype=str(aval.dtype), value=of[0])
        return self.add(op, [first, *of[1:]])

    def _bound(self, of, op, nothing, **side):
        """maximum or minimum, of an array and a number: a bound; infinity bounds nothing."""
        of = [self.operand(each) for each in of]
        of = of if isinstance(of[0], str) else of[::-1]
        if isinstance(of[1], str):
            return self.add(op, of)
        if of[1] == nothing:
            return of[0]
        if op == "maximum" and of[1] == 0 and "float" in str(self._equation.outvars[0].aval.dtype):
            return self.add("relu", of[:1])
        return self.add("clamp", of[:1], **{key: of[1] for key in side})

    def _max(self, of, params):
        return self._bound(of, "maximum", float("-inf"), min=True)

    def _min(self, of, params):
        return self._bound(of, "minimum", float("inf"), max=True)

    def _clamp(self, of, params):
        if any(isinstance(each, str) or each.number() is None for each in (of[0], of[2])):
            return self.add("minimum", [self.add("maximum", [self.tensor(of[1]), self.tensor(of[0])]), self.tensor(of[2])])
        return self.add("clamp", [of[1]], min=self.scalar(of[0], "a bound"), max=self.scalar(of[2], "a bound"))

    def _pow(self, of, params):
        return self.add("pow", [self.tensor(of[0]), self.scalar(of[1], "an exponent")])

    def _integer_pow(self, of, params):
        return self.add("pow", [of[0], int(params["y"])])

    def _is_finite(self, of, params):
        return self.add("lt", [self.add("abs", of), float("inf")])

    def _round(self, of, params):
        if int(params["rounding_method"]) != 1:
            self.refuse("a half away from zero, and the language's goes to the even number")
        return self.add("round", of)

    def _convert_element_type(self, of, params):
        if params["new_dtype"] == self._equation.invars[0].aval.dtype:
            return of[0]
        return self.add("cast", of, dtype=str(params["new_dtype"]))

    def _select_n(self, of, params):
        if len(of) != 3 or str(self._equation.invars[0].aval.dtype) != "bool":
            self.refuse("a choice among more than two")
        which, other, one = of
        always = which.number() if isinstance(which, Constant) else None
        if always is not None:
            return one if always else other
        one, other = self.operand(one), self.operand(other)
        if not isinstance(one, str) and not isinstance(other, str):
            aval = self._equation.outvars[0].aval
            one = self.add("full", (), shape=[1] * len(self.due()), dtype=str(aval.dtype), value=one)
        return self.add("where", [self.tensor(which), one, other])

    def _logic(self, op, of):
        if str(self._equation.invars[0].aval.dtype) != "bool":
            self.refuse("bit by bit, of whole numbers")
        return self.add(op, [self.tensor(each) for each in of])

    def _and(self, of, params):
        return self._logic("logical_and", of)

    def _or(self, of, params):
        return self._logic("logical_or", of)

    def _not(self, of, params):
        return self._logic("logical_not", of)

    def _reshape(self, of, params):
        if params.get("dimensions") is not None:
            self.refuse("of turned dimensions")
        return self._shaped(of[0], self.shape(), self.due())

    def _squeeze(self, of, params):
        return self._shaped(of[0], self.shape(), self.due())

    _expand_dims = _squeeze

    def _shaped(self, value, old, new):
        if old == new:
            return value
        places = [i for i in range(len(new)) if new[:i] + new[i + 1:] == old and new[i] == 1]
        return self.add("unsqueeze", [value], dim=places[-1]) if places else self.add("reshape", [value], shape=new)

    def _broadcast_in_dim(self, of, params):
        due, spread = self.due(), [1] * len(self.due())
        for axis, extent in zip(params["broadcast_dimensions"], self.shape()):
            spread[axis] = extent
        value = self._shaped(of[0], self.shape(), spread)
        return value if spread == due else self.add("expand", [value], shape=due)

    def _transpose(self, of, params):
        dims = [int(axis) for axis in params["permutation"]]
        return of[0] if dims == sorted(dims) else self.add("t", of) if dims == [1, 0] else self.add("permute", of, dims=dims)

    def _concatenate(self, of, params):
        return self.add("cat", [self.tensor(each) for each in of], dim=int(params["dimension"]))

    def _slice(self, of, params):
        value, own = of[0], self.shape()
        strides = params["strides"] or [1] * len(own)
        for axis, (start, end, step) in enumerate(zip(params["start_indices"], params["limit_indices"], strides)):
            if (start, end, step) != (0, own[axis], 1):
                attrs = {"step": int(step)} if step != 1 else {}
                value = self.add("slice", [value], dim=axis, start=int(start), end=int(end), **attrs)
        return value

    def _dynamic_slice(self, of, params):
        value, own = of[0], self.shape()
        for axis, (start, extent) in enumerate(zip(of[1:], params["slice_sizes"])):
            start = min(max(int(self.scalar(start, "a start", Reason.DATA_DEPENDENT)), 0), own[axis] - extent)
            if extent != own[axis]:
                value = self.add("narrow", [value], dim=axis, start=start, length=int(extent))
        return value

    def _split(self, of, params):
        found, start = [], 0
        for length in params["sizes"]:
            found.append(self.add("narrow", of, dim=int(params["axis"]), start=start, length=int(length)))
            self.steps[-1].position = len(found) - 1
            start += int(length)
        return found

    def _running(self, word, of, params):
        """A running sum or product; from the end as that of the turned array, turned back."""
        dim = int(params["axis"])
        if not params.get("reverse"):
            return self.add(word, of, dim=dim)
        return self.add("flip", [self.add(word, [self.add("flip", of, dims=[dim])], dim=dim)], dims=[dim])

    def _cumsum(self, of, params):
        return self._running("cumsum", of, params)

    def _cumprod(self, of, params):
        return self._running("cumprod", of, params)

    def _cumlogsumexp(self, of, params):
        return self._running("logcumsumexp", of, params)

    def _reduce_prod(self, of, params):
        axes = [int(axis) for axis in params["axes"]]
        if len(axes) != 1:
            self.refuse("of several dimensions, or of none")
        return self.add("prod", of, dim=axes[0])

    def _place(self, word, of, params):
        """argmax or argmin, in the requested dtype."""
        found = self.add(word, of, dim=int(params["axes"][0]))
        due = str(params["index_dtype"])
        return found if due == "int64" else self.add("cast", [found], dtype=due)

    def _argmax(self, of, params):
        return self._place("argmax", of, params)

    def _argmin(self, of, params):
        return self._place("argmin", of, params)

    def _sort(self, of, params):
        if len(of) != 1:
            self.refuse("of several arrays by one of them")
        attrs = {"stable": True} if params["is_stable"] else {}
        return [self.add("sort", of, dim=int(params["dimension"]), **attrs)]

    def _top_k(self, of, params):
        axis = int(params.get("axis", len(self.shape()) - 1))
        attrs = {"k": int(params["k"]), "dim": axis}
        values, places = self.add("topk", of, **attrs), self.add("topk", of, **attrs, result=1)
        due = str(self._equation.outvars[1].aval.dtype)
        return [values, places if due == "int64" else self.add("cast", [places], dtype=due)]

    def _rev(self, of, params):
        return self.add("flip", of, dims=[int(axis) for axis in params["dimensions"]])

    def _pad(self, of, params):
        config = params["padding_config"]
        if any(inner for _, _, inner in config) or any(side < 0 for low, high, _ in config for side in (low, high)):
            self.refuse("between elements, or by fewer than none")
        value = self.scalar(of[1], "a value")
        sides = [int(side) for low, high, _ in reversed(config) for side in (low, high)]
        return self.add("pad", [self.tensor(of[0])], pad=sides, **({"value": value} if value != 0 else {})) if any(sides) else of[0]

    def _gather(self, of, params):
        """Rows by their numbers (index_select), and one element of each line (gather)."""
        numbers, table, rows = params["dimension_numbers"], self.shape(0), self.shape(1)[:-1]
        axis = numbers.start_index_map[0]
        if len(numbers.start_index_map) != 1 or tuple(numbers.collapsed_slice_dims) != (axis, ):
            self.refuse("of more than one dimension")
        sizes, batch = [int(each) for each in params["slice_sizes"]], tuple(numbers.operand_batching_dims)
        value = self.tensor(of[0])
        if not batch and len(rows) <= 1 and sizes == [1 if i == axis else extent for i, extent in enumerate(table)]:
            places = tuple(i for i in range(len(self.due())) if not axis <= i < axis + len(rows))
            if tuple(numbers.offset_dims) == places:
                index = self._index(of[1], rows or [1])
                found = self.add("index_select", [value, index], dim=axis)
                return found if rows else self._shaped(found, [1], self.due())
        if not batch and axis == 0 and len(table) == 2 and sizes == [1, table[1]] and tuple(numbers.offset_dims) == (len(rows), ):
            return self.add("embedding", [value, self._index(of[1], rows)])
        if set(batch) | {axis} == set(range(len(table))) and not numbers.offset_dims and set(sizes) == {1}:
            if len(rows) == len(table):
                return self.add("gather", [value, self._index(of[1], rows)], dim=axis)
        self.refuse("a form of it that is neither rows by their numbers nor one element of each line")

    def _index(self, value, shape):
        """An index as the language has it: int64, of this shape; what JAX adds for negative numbers is left to the op."""
        if isinstance(value, str):
            value = self._unwrapped(value)
        old = self._shapes.get(value, []) if isinstance(value, str) else list(value.array.shape)
        wide = self.add("cast", [self.tensor(value)], dtype="int64")
        return wide if old == shape else self.add("reshape", [wide], shape=shape)

    def _unwrapped(self, value):
        """x of where(x < 0, x + n, x), through what only shapes it."""
        while value in self._made and self._made[value].op in _SHAPING:
            value = self._made[value].of[0]
        step = self._made.get(value)
        if step is None or step.op != "where" or not all(each in self._made for each in step.of[:2]):
            return value
        plain = step.of[2]
        mask, wrapped = (self._made[each] for each in step.of[:2])
        same = (mask.op, mask.of) == ("lt", (plain, 0)) and (wrapped.op, wrapped.of[0]) == ("add", plain)
        return self._unwrapped(plain) if same else value


def _library(equation, body, of):
    """(word, attributes) of jax.nn's function of this name where it has this jaxpr on these operands; None."""
    import jax
    name = equation.params.get("name")
    operands = [each for each in of if isinstance(each, str)]
    if equation.primitive.name not in ("jit", "pjit", "custom_jvp_call") or len(operands) != 1 or len(of) != 1 or name not in words.OPS:
        return None
    function = getattr(jax.nn, name, None) or getattr(jax.numpy, name, None)
    row, aval = words.OPS[name], equation.invars[0].aval
    if function is None or row["operands"][0] != 1 or len(equation.outvars) != 1:
        return None
    wanted = str(body)
    for attrs in [{"dim": dim} for dim in range(aval.ndim)] if "dim" in row["attributes"] else [{}]:
        try:
            made = jax.make_jaxpr(lambda x: function(x, **{"axis": each for each in attrs.values()}))(  # noqa: B023
                jax.ShapeDtypeStruct(aval.shape, aval.dtype)).jaxpr
        except TypeError:
            continue
        inner = [made.eqns[0].params[key] for key in ("jaxpr", "call_jaxpr") if len(made.eqns) == 1 and key in made.eqns[0].params]
        if inner and str(getattr(inner[0], "jaxpr", inner[0])) == wanted:
            return name, attrs
    return None


def frames_of(found, home):
    """((file, line, text, function), ...) of the lines outside of JAX between `home` and what they call, outermost first."""
    import jax
    library = str(pathlib.Path(jax.__file__).parent)
    own = []
    for frame in found.frames if found is not None else ():
        if frame.file_name == home:
            break
        if not frame.file_name.startswith((library, "<")) and "/jaxlib/" not in frame.file_name:
            own.append(traceback.FrameSummary(frame.file_name, frame.line_num, frame.function_name.rpartition(".")[2]))
    return tuple((each.filename, each.lineno, (each.line or "").strip(), each.name) for each in reversed(own))


def line_of(error, home):
    """', at file:line: text' of the author's innermost line that an error came through."""
    import jax
    library, inside, found = str(pathlib.Path(jax.__file__).parent), False, None
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == home:
            inside = True
        elif inside and not frame.filename.startswith((library, "<")):
            found = frame
    return f", at {found.filename}:{found.lineno}: {found.line}" if found else ""
