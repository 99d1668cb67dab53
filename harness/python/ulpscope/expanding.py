"""Ops with steps inside (a softmax, a norm, an activation, attention) as elementary operations of a fused program (fusing.py)."""

import math
import types

from ulpscope import formats

_BLOCKS = (8, 16, 32, 48, 64, 96, 128, 192, 256)
OPEN = "open"


class NotFusable(ValueError):
    """The reference has an op whose float32 evaluations are not known."""


class Expansions:
    """The functions that write the nodes of one op: `_gelu` those of gelu. `self` is a fusing.Writer, whose add() makes
    a node."""

    def _square(self, x, name):
        self.add("mul", x, x, name=name, says=name)

    def _pow(self, x, exponent, name):
        if isinstance(exponent, str) or not isinstance(x, str):
            raise NotFusable(f"op pow: the exponent is a tensor{self.step.at()}")
        if exponent == 2:
            self._square(x, name)
        else:
            self.add("pow", x, name=name, says=name, exponent=exponent)

    def _relu(self, x, name):
        self._clamp(x, name, min=0)

    def _clamp(self, x, name, min=None, max=None):
        self.add("clamp", x, name=name, says=name, low=min, high=max)

    def _masked_fill(self, x, mask, value, name):
        self.add("where", mask, value, x, name=name, says=name)

    def _where(self, condition, a, b, name):
        self.add("where", condition, a, b, name=name, says=name)

    def _sigmoid_times(self, x, name):
        self.add("mul", x, self.add("sigmoid", x, says=self.inner("the sigmoid")), name=name, says=name)

    _silu = _sigmoid_times

    def _gelu(self, x, name, approximate="none"):
        if approximate == "tanh":
            cube = self.add("mul", self.add("mul", x, x, says=self.inner("the square")), x, says=self.inner("the cube"))
            sum_ = self.add("add", x, self.add("mul", cube, 0.044715, says=self.inner("the scaled cube")), says=self.inner("the argument"))
            inside = self.add("tanh", self.add("mul", sum_, math.sqrt(2 / math.pi), says=self.inner("the scaled argument")),
                              says=self.inner("the tanh"))
        else:
            inside = self.add("erf", self.add("mul", x, math.sqrt(0.5), says=self.inner("the scaled argument")), says=self.inner("the erf"))
        one = self.add("add", inside, 1, says=self.inner("1 + that"))
        self.add("mul", self.add("mul", x, 0.5, says=self.inner("the half")), one, name=name, says=name)

    def _glu(self, x, name, dim=-1):
        halves = []
        for index in (0, 1):
            step = types.SimpleNamespace(op="chunk", attrs={"chunks": 2, "dim": dim, "result": index})
            halves.append(self.add("move", x, says=self.inner("a half"), step=step))
        self.add("mul", halves[0], self.add("sigmoid", halves[1], says=self.inner("the sigmoid")), name=name, says=name)

    def _lerp(self, a, b, weight, name):
        self.add("add", a, self.add("mul", weight, self.add("sub", b, a, says=self.inner("the difference"))), name=name, says=name)

    def _addcmul(self, x, a, b, name, value=1):
        self.add("add", x, self.add("mul", self.add("mul", a, b, says=self.inner("the product")), value), name=name, says=name)

    def _sum(self, x, name, dim=None, keepdim=False, dtype=None):
        del dtype
        self.add("sum", x, name=name, says=name, dim=dim, keepdim=keepdim)

    def _mean(self, x, name, dim=None, keepdim=False, dtype=None, what="the sum"):
        del dtype
        total = self.add("sum", x, says=self.inner(what), dim=dim, keepdim=keepdim)
        self.add("mean", total, x, name=name, says=name if name == self.step.name else self.inner("the mean"), dim=dim)

    def _amax(self, x, name, dim=None, keepdim=False):
        self.add("amax", x, name=name, says=name, dim=dim, keepdim=keepdim)

    def _amin(self, x, name, dim=None, keepdim=False):
        self.add("amin", x, name=name, says=name, dim=dim, keepdim=keepdim)

    def _var(self, x, name, dim=None, keepdim=False, correction=1):
        if correction != 0:
            raise NotFusable(f"op var: a correction of {correction} is not handled; write the mean of squares out{self.step.at()}")
        self._variance(x, name, dim, keepdim)

    def _variance(self, x, name, dim, keepdim):
        mean = self._inner_mean(x, dim, "the mean")
        apart = self.add("sub", x, mean, says=self.inner("the deviation"))
        square = self.add("mul", apart, apart, says=self.inner("the square"))
        total = self.add("sum", square, says=self.inner("the sum of squares"), dim=dim, keepdim=keepdim)
        self.add("mean", total, square, name=name, says=self.inner("the variance"), dim=dim)
        return apart

    def _inner_mean(self, x, dim, what):
        total = self.add("sum", x, says=self.inner(f"the sum of {what}"), dim=dim, keepdim=True)
        return self.add("mean", total, x, says=self.inner(what), dim=dim)

    def _layer_norm(self, x, weight=None, bias=None, *, name, normalized_shape, eps=1e-5):
        dim = tuple(range(-len(normalized_shape), 0))
        variance = f"{name}~variance"
        apart = self._variance(x, variance, dim, True)
        self._scaled(apart, variance, eps, weight, bias, name)

    def _scaled(self, x, square, eps, weight, bias, name):
        more = self.add("add", square, eps, says=self.inner("the variance and eps"))
        inverse = self.add("rsqrt", more, says=self.inner("the reciprocal deviation"))
        value = self.add("mul", x, inverse, says=name if weight is None and bias is None else self.inner("the normalised value"))
        if weight is not None:
            value = self.add("mul", value, weight, says=name if bias is None else self.inner("the scaled value"))
        if bias is not None:
            value = self.add("add", value, bias, says=name)
        self.nodes[-1].name = name

    def _rms_norm(self, x, weight=None, *, name, normalized_shape, eps=None):
        dim = tuple(range(-len(normalized_shape), 0))
        if eps is None:
            eps = {"float16": 2.0**-10, "bfloat16": 2.0**-7}.get(self.dtypes.get(name), 2.0**-23)
        square = self.add("mul", x, x, says=self.inner("the square"))
        self._scaled(x, self._inner_mean(square, dim, "the mean square"), eps, weight, None, name)

    def _softmax_parts(self, x, dim):
        # Whatever is taken from the scores cancels in the quotient.
        largest = self.add("amax", x, says=self.inner("the maximum"), dim=dim, keepdim=True, allowed=("bfloat16", "float16"))
        apart = self.add("sub", x, largest, says=self.inner("the score less the maximum"))
        return largest, apart

    def _softmax(self, x, name, dim, dtype=None):
        del dtype
        _, apart = self._softmax_parts(x, dim)
        power = self.add("exp", apart, says=self.inner("the exponential"))
        total = self.add("sum", power, says=self.inner("the total"), dim=dim, keepdim=True)
        self.add("div", power, total, name=name, says=name)

    def _log_softmax(self, x, name, dim, dtype=None):
        del dtype
        _, apart = self._softmax_parts(x, dim)
        power = self.add("exp", apart, says=self.inner("the exponential"))
        total = self.add("sum", power, says=self.inner("the total"), dim=dim, keepdim=True)
        self.add("sub", apart, self.add("log", total, says=self.inner("the logarithm")), name=name, says=name)

    def _linear(self, x, weight, bias=None, *, name):
        turned = self._turned(weight)
        if bias is None:
            self.add("matmul", x, turned, name=name, says=name)
        else:
            self.add("add", self.add("matmul", x, turned, says=self.inner("the product")), bias, name=name, says=name)

    def _turned(self, x):
        return self.add("move", x, says=x, step=types.SimpleNamespace(op="transpose", attrs={"dim0": -2, "dim1": -1}))

    def _addmm(self, c, a, b, name, alpha=1, beta=1, out_dtype=None):
        del out_dtype
        product = self.add("matmul", a, b, says=self.inner("the product"))
        if alpha != 1:
            product = self.add("mul", product, alpha, says=self.inner("the scaled product"))
        self.add("add", self.add("mul", c, beta) if beta != 1 else c, product, name=name, says=name)

    _baddbmm = _addmv = _addmm

    def _einsum(self, *of, name, equation):
        left, _, right = equation.replace(" ", "").partition("->")
        letters = left.split(",")
        if len(of) != 2 or not right or "." in left or any(len(set(each)) < len(each) for each in letters):
            raise NotFusable(f"op einsum {equation}: write it as a matmul{self.step.at()}")
        a, b = letters
        summed = [each for each in a if each in b and each not in right]
        batch = [each for each in a if each in b and each in right]
        rows, columns = [each for each in a if each not in b], [each for each in b if each not in a]
        if not summed or any(each not in right for each in rows + columns):
            raise NotFusable(f"op einsum {equation}: write it as a matmul{self.step.at()}")
        self.add("contract", *of, name=name, says=name, letters=(a, b, right), parts=(batch, rows, summed, columns))

    def _scaled_dot_product_attention(self, q, k, v, mask=None, *, name, scale=None, is_causal=False, enable_gqa=False):
        if enable_gqa:
            k, v = (self.add("heads", each, q, says=each) for each in (k, v))
        scores = self.add("matmul", q, self._turned(k), says=self.inner("the scores"))
        scores = self.add("scale", scores, q, says=self.inner("the scaled scores"), scale=scale)
        if is_causal or mask is not None:
            scores = self.add("mask", scores, *([mask] if mask is not None else []), says=self.inner("the masked scores"))
        self._core(scores, v, name, name, self.dtypes.get(v, self.dtypes[name]))

    def _core(self, scores, v, name, place, dtype):
        """softmax(scores) @ v, the probabilities rounded as the form says."""
        keys = self.shapes[self.step.of[1]][-2]
        self.found[place] = [*_probabilities(dtype, keys), _UNROUNDED] if not formats.holds(dtype, "float32") else [_UNROUNDED]
        choice = self.form.get(place, _UNROUNDED)
        rounds = choice != _UNROUNDED
        kind, block, backwards, of_rounded = _probabilities(dtype, keys).get(choice, (choice, None, False, False))
        _, apart = self._softmax_parts(scores, -1)
        power = self.add("exp", apart, says=self.inner("the exponential"), allowed=[dtype] if rounds else [])
        says = self.inner("the rounded probabilities")
        if kind == OPEN:
            power = self.add("perhaps", power, says=says, format=dtype)
        rounded = power
        if kind == "undivided":
            rounded = self.add("to", power, says=says, format=dtype)
        elif kind == "blocks":
            rounded = self.add("blocks", scores, says=says, format=dtype, block=block, backwards=backwards)
        what = {"block": block, "backwards": backwards, "keys": keys}
        total = self.add("online", scores, rounded if of_rounded else power, says=self.inner("the total"), format="float32", **what)
        if kind == "divided":
            rounded = self.add("to", self.add("div", power, total, says=self.inner("the probabilities"), allowed=[dtype]), says=says,
                               format=dtype)
            self.add("matmul", rounded, v, name=name, says=name)
            return
        product = self.add("online", scores, rounded, v, says=self.inner("the second product"), format=dtype if rounds else "float32", **what)
        self.add("div", product, total, name=name, says=name)


_UNROUNDED = "with unrounded probabilities"


def _probabilities(dtype, keys):
    """{choice: (how, block of keys, from the last block on, whether the total is that of the rounded)} of rounded probabilities."""
    said = f"with probabilities in {dtype}"
    found = {f"{said}, divided by their total": ("divided", None, False, False)}
    for more, of_rounded in (("", False), (", the total that of the rounded ones", True)):
        found[f"{said}, before they are divided by their total{more}"] = "undivided", None, False, of_rounded
        for block in blocks_of(keys):
            so_far = f"{said}, relative to the maximum of blocks of {block} keys so far"
            found[so_far + more] = "blocks", block, False, of_rounded
            found[f"{so_far}, the last block first{more}"] = "blocks", block, True, of_rounded
    return found


def blocks_of(keys):
    """Blocks of keys that an online softmax may go by."""
    return [block for block in _BLOCKS if block < keys]
