"""Held out: norms, softmax and activations by other formulas, approximations, tables and mistakes."""

import math

import numpy as np
from heldout_tools import ALL, F32, add32, chain, row_sum
from ops import _ERF, _ERFC
from rounding import bfloat16, float16, float32 as r, rounding

p12 = rounding("p12")


def _schraudolph(x):
    """e^x by writing x into the exponent of a float32 and letting it run over into the significand."""
    bits = np.clip(np.where(np.isnan(x), 0, 12102203.0 * x + 1064866805.0), 0, 2139095039)
    return np.where(np.isnan(x), x, bits.astype(np.int32).view(np.float32).astype(np.float64))


def _exp2_12(x):
    """2^(x log2 e) with a significand of 12 bits."""
    return p12(np.exp2(r(x * 1.4426950408889634)))


def _quake(x, steps):
    """The inverse square root from a shifted float32 and so many steps of Newton's."""
    x = r(x)
    y = (0x5F3759DF - (x.astype(np.float32).view(np.int32) >> 1)).astype(np.int32).view(np.float32).astype(np.float64)
    for _ in range(steps):
        y = r(y * r(1.5 - r(r(0.5 * x * y) * y)))
    return y


def _rsqrt12(x, steps=0):
    """An inverse square root of 12 bits, and so many steps of Newton's."""
    y = p12(1 / np.sqrt(x))
    for _ in range(steps):
        y = r(y * r(1.5 - r(r(r(0.5 * x) * y) * y)))
    return y


# softmax
def _softmax(exp=lambda x: r(np.exp(x)), scale=1.0, top=None, sums=row_sum, late=lambda e: e, add=None, order="lanes8"):
    def result(x, w, bias, eps):
        high = np.max(x, axis=1, keepdims=True) if top is None else top(x)
        d = r(r(x - high) * scale)
        e = exp(d)
        total = sums(e)
        if add is not None:
            total = r(total + add(high))
        return late(r(e / total))

    return result


def _online(narrow):
    """The sum is scaled anew where the maximum grows, eight columns at a time; sum and maximum in a format."""
    n = rounding(narrow)

    def result(x, w, bias, eps):
        high, total = np.full((len(x), 1), -np.inf), np.zeros((len(x), 1))
        for at in range(0, x.shape[1], 8):
            part = x[:, at:at + 8]
            new = np.maximum(high, part.max(axis=1, keepdims=True))
            total = n(add32(r(total * r(np.exp(r(high - new)))), row_sum(r(np.exp(r(part - new))))))
            high = new
        return r(r(np.exp(r(x - high))) / total)

    return result


def _by_logarithm(x, w, bias, eps):
    d = r(x - np.max(x, axis=1, keepdims=True))
    return r(np.exp(r(d - r(np.log(row_sum(r(np.exp(d))))))))


def _ones_exact(x):
    return row_sum(x, acc="exact")


# norms
def _two_pass(order="lanes8", rsqrt=lambda v: r(1 / r(np.sqrt(v))), final=None, mean_as="none", variance=None, eps_at="inside",
              w_as="none", b_as="none"):
    def result(x, w, bias, eps):
        k = x.shape[1]
        mean = rounding(mean_as)(r(row_sum(x, order) / k))
        d = r(x - mean)
        v = r(row_sum(r(d * d), order) / k) if variance is None else variance(x, mean)
        if eps_at == "squared":
            eps = eps * eps
        elif eps_at == "before":
            v, eps = r(add32(v * k, eps) / k), 0.0
        elif eps_at == "bfloat16":
            eps = float(bfloat16(np.float64(eps)))
        elif eps_at == "maximum":
            v, eps = np.maximum(v, eps), 0.0
        y = r(d * rsqrt(r(v + eps)))
        w, bias = rounding(w_as)(w), rounding(b_as)(bias)
        return add32(r(y * w), bias) if final is None else final(y, w, bias)

    return result


def _squares_less_square(wide):
    def variance(x, mean):
        if wide:
            mean = _ones_exact(x) / x.shape[1]
            return _ones_exact(x * x) / x.shape[1] - mean * mean
        return np.maximum(r(r(row_sum(r(x * x)) / x.shape[1]) - r(mean * mean)), 0.0)

    return variance


def _welford(name):
    n = rounding(name)

    def result(x, w, bias, eps):
        mean, m2 = np.zeros((len(x), 1)), np.zeros((len(x), 1))
        for count, column in enumerate(x.T, 1):
            d = n(column[:, None] - mean)
            mean = n(mean + n(d / count))
            m2 = n(m2 + n(d * n(column[:, None] - mean)))
        y = r(r(x - mean) * r(1 / r(np.sqrt(r(r(m2 / x.shape[1]) + eps)))))
        return add32(r(y * w), bias)

    return result


def _rms(order="lanes8", rsqrt=lambda v: r(1 / r(np.sqrt(v))), count=lambda k: k, eps_at="inside", final=None, squares=r, w_as="none"):
    def result(x, w, bias, eps):
        v = r(row_sum(squares(x * x), order) / count(x.shape[1]))
        s = rsqrt(r(v + eps)) if eps_at == "inside" else r(1 / r(r(np.sqrt(v)) + eps))
        w = rounding(w_as)(w)
        return r(r(x * s) * w) if final is None else final(x, s, w)

    return result


def _rms_scaled(x, w, bias, eps):
    """Rows are divided by their largest element first; eps is not."""
    x = r(x / np.max(np.abs(x), axis=1, keepdims=True))
    return r(r(x * r(1 / r(np.sqrt(r(r(row_sum(r(x * x)) / x.shape[1]) + eps))))) * w)


# activations
def _erf_short(x):
    """Abramowitz and Stegun 7.1.26, in float32."""
    t = r(1 / r(1 + r(0.3275911 * np.abs(x))))
    y = 0.0
    for c in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        y = r(r(y + c) * t)
    return np.sign(x) * r(1 - r(y * r(np.exp(r(-x * x)))))


def _gelu(erf=None, x_as="none"):
    def result(x, w, bias, eps):
        x = rounding(x_as)(x)
        return r(r(0.5 * x) * r(1 + (erf(r(x * math.sqrt(0.5))))))

    return result


def _table(f, low, high, count, flat):
    """Straight lines between `count` values in bfloat16, `flat` beyond."""
    at = np.linspace(low, high, count)
    values = bfloat16(f(at))
    return lambda x, w, bias, eps: np.where(np.isnan(x), x, np.where((x < low) | (x > high), flat(x), np.interp(x, at, values)))


def _exact_gelu(x):
    return 0.5 * x * _ERFC(-x * math.sqrt(0.5))


def _simple(f):
    return lambda x, w, bias, eps: f(x)


def _sigmoid(x, exp=lambda v: r(np.exp(v)), inverse=lambda v: r(1 / v)):
    return inverse(r(1 + exp(-x)))


def _reciprocal12(steps):
    def inverse(v):
        y = p12(1 / v)
        for _ in range(steps):
            y = r(y * r(2 - r(v * y)))
        return y

    return inverse


def softmaxes():
    def row(name, kind, why, *args, **more):
        return chain("softmax", name, kind, why, _softmax(*args, **more))

    for order in ("lanes12", "hilbert", "split3"):
        yield row(f"f32_{order}", "honest", f"float32, {order}", sums=lambda e, order=order: row_sum(e, order))
    yield chain("softmax", "online", "honest", "scaled anew where the maximum grows, in float32", _online("float32"))
    yield row("top_rounded_up", "honest", "less the maximum rounded up to an integer, which cancels",
              top=lambda x: np.ceil(np.max(x, 1, keepdims=True)))
    yield chain("softmax", "online_bfloat16", "narrow", "scaled anew, the sum in bfloat16", _online("bfloat16"))
    yield chain("softmax", "online_p16", "narrow", "scaled anew, the sum in 16 bits", _online("p16"))
    yield chain("softmax", "by_logarithm", "narrow", "e to the log-softmax, in float32", _by_logarithm)
    yield row("schraudolph", "narrow", "Schraudolph's exponential", _schraudolph)
    yield row("exp2_12", "narrow", "2^x with 12 bits", _exp2_12)
    yield row("exp_cubic", "narrow", "2^x by a cubic", lambda x: np.exp2(np.floor(x * 1.4426950408889634)) * np.polyval(
        [0.0790204, 0.2241323, 0.6967989, 0.9998119], x * 1.4426950408889634 - np.floor(x * 1.4426950408889634)))
    yield row("log2e_bfloat16", "narrow", "2^(x log2 e) with log2 e in bfloat16", lambda x: r(np.exp2(r(x * 1.4453125))))
    yield row("warm", "wrong", "a temperature of 1 + 2^-8", scale=1 / (1 + 2.0**-8))
    yield row("half_scale", "wrong", "a temperature of 2", scale=0.5)
    yield row("one_more", "wrong", "one more element of 0 in the sum", add=lambda high: np.exp(-high))
    yield row("faint_left_out", "wrong", "exponentials below 2^-10 left out", lambda x: np.where(x < -6.93, 0.0, r(np.exp(x))))
    yield row("other_top", "wrong", "less the first element, which is taken for the maximum", lambda x: r(np.exp(np.minimum(x, 0.0))),
              top=lambda x: x[:, :1])
    yield row("late_p16", "narrow", "results through 16 bits", late=rounding("p16"))
    yield row("sum_of_stored", "narrow", "exponentials in the sum alone through bfloat16", sums=lambda e: row_sum(bfloat16(e)))
    yield row("approximate_quotient", "narrow", "times a reciprocal of 12 bits", sums=lambda e: 1 / p12(1 / row_sum(e)))


def norms():
    def layer(name, kind, why, result=None, inputs=ALL, **more):
        return chain("layer_norm", name, kind, why, result or _two_pass(**more), inputs)

    def rms(name, kind, why, result=None, inputs=ALL, **more):
        return chain("rms_norm", name, kind, why, result or _rms(**more), inputs)

    for order in ("lanes24", "outside_in"):
        yield layer(f"f32_{order}", "honest", f"float32, {order}", order=order)
        yield rms(f"f32_{order}", "honest", f"float32, {order}", order=order)
    yield layer("squares_f64", "honest", "E[x^2] - mean^2, exact sums", variance=_squares_less_square(True))
    yield layer("welford", "honest", "Welford's recurrence in float32", _welford("float32"))
    yield layer("squares_f32", "narrow", "E[x^2] - mean^2 in float32", variance=_squares_less_square(False))
    yield layer("welford_bfloat16", "narrow", "Welford's recurrence in bfloat16", _welford("bfloat16"))
    yield layer("welford_p16", "narrow", "Welford's recurrence in 16 bits", _welford("p16"))
    yield layer("mean_bfloat16", "narrow", "the mean in bfloat16", mean_as="bfloat16")
    for steps in (1, 2):
        yield layer(f"quake{steps}", "narrow", f"the fast inverse root, {steps} steps", rsqrt=lambda v, n=steps: _quake(v, n))
        yield rms(f"quake{steps}", "narrow", f"the fast inverse root, {steps} steps", rsqrt=lambda v, n=steps: _quake(v, n))
    yield layer("rsqrt12", "narrow", "an inverse root of 12 bits", rsqrt=_rsqrt12)
    yield rms("rsqrt12_newton", "narrow", "an inverse root of 12 bits and one step", rsqrt=lambda v: _rsqrt12(v, 1))
    for at, why in (("squared", "eps squared"), ("before", "eps added before the division by n"), ("bfloat16", "eps in bfloat16"),
                    ("maximum", "eps as the least variance")):
        yield layer(f"eps_{at}", "narrow" if at == "bfloat16" else "wrong", why, eps_at=at)
    yield layer("bias_first", "wrong", "the bias before the weight", final=lambda y, w, b: r(add32(y, b) * w))
    yield layer("bias_bfloat16", "narrow", "the bias through bfloat16", b_as="bfloat16", inputs=F32)
    yield layer("weight_p12", "narrow", "the weight through 12 bits", w_as="p12", inputs=F32)
    yield layer("one_plus_weight", "wrong", "1 + weight", final=lambda y, w, b: add32(r(y * r(1 + w)), b))
    yield layer("weight_shifted", "wrong", "the weight of the next column", final=lambda y, w, b: add32(r(y * np.roll(w, -1)), b))
    yield rms("weight_first", "honest", "the weight before the inverse root", final=lambda x, s, w: r(r(x * w) * s))
    yield rms("one_plus_weight", "wrong", "1 + weight", final=lambda x, s, w: r(r(x * s) * r(1 + w)))
    yield rms("padded", "wrong", "divided by the next multiple of 16", count=lambda k: -(-k // 16) * 16)
    yield rms("eps_outside", "wrong", "eps beside the root", eps_at="outside")
    yield rms("squares_p12", "narrow", "squares of 12 bits", squares=p12)
    yield rms("squares_float16", "narrow", "squares in float16", squares=float16)
    yield rms("weight_bfloat16", "narrow", "the weight through bfloat16", w_as="bfloat16", inputs=F32)
    yield rms("scaled", "wrong", "rows scaled first, eps not", _rms_scaled)


def activations():
    def erf(x):
        return r(_ERF(x))

    for op, name, kind, why, f in (
        ("gelu", "short_erf", "narrow", "a short formula for erf", _gelu(_erf_short)),
        ("gelu", "clipped_erf", "wrong", "erf is 1 beyond 2", _gelu(lambda x: np.where(np.abs(x) > 2, np.sign(x), erf(x)))),
        ("gelu", "table", "narrow", "straight lines between bfloat16 values", _table(_exact_gelu, -6, 6, 257, lambda x: np.maximum(x, 0))),
        ("gelu", "tail", "wrong", "zero below -3", _simple(lambda x: np.where(x < -3, 0.0, r(_exact_gelu(x))))),
        ("gelu", "rsqrt2_bfloat16", "narrow", "1/sqrt 2 in bfloat16", _simple(lambda x: r(r(0.5 * x) * r(1 + erf(r(x * 0.70703125)))))),
        ("gelu", "exact_late", "honest", "exact, by float32 at the end", _simple(lambda x: r(_exact_gelu(x)))),
        ("silu", "half_tanh", "narrow", "x/2 (1 + tanh x/2)", _simple(lambda x: r(r(0.5 * x) * r(1 + r(np.tanh(r(0.5 * x))))))),
        ("silu", "schraudolph", "narrow", "Schraudolph's exponential", _simple(lambda x: r(x * _sigmoid(x, _schraudolph)))),
        ("silu", "exp2_12", "narrow", "2^x with 12 bits", _simple(lambda x: r(x * _sigmoid(x, _exp2_12)))),
        ("silu", "reciprocal12", "narrow", "a reciprocal of 12 bits", _simple(lambda x: r(x * _sigmoid(x, inverse=_reciprocal12(0))))),
        ("silu", "reciprocal12_newton", "narrow", "a reciprocal of 12 bits and one step",
         _simple(lambda x: r(x * _sigmoid(x, inverse=_reciprocal12(1))))),
        ("silu", "steeper", "wrong", "x sigmoid(1.001 x)", _simple(lambda x: r(x * _sigmoid(r(1.001 * x))))),
        ("silu", "negative_exp", "honest", "x e^x / (1 + e^x) below 0", _simple(lambda x: np.where(
            x < 0, r(r(x * r(np.exp(np.minimum(x, 0)))) / r(1 + r(np.exp(np.minimum(x, 0))))), r(x * _sigmoid(x))))),
        ("tanh", "eleven", "narrow", "a result of 11 bits", _simple(lambda x: rounding("p11")(np.tanh(x)))),
        ("tanh", "by_sigmoid", "narrow", "2 sigmoid(2x) - 1", _simple(lambda x: add32(2 * _sigmoid(r(2 * x)), -1.0))),
        ("tanh", "straight", "wrong", "x where it is below 1/16", _simple(lambda x: np.where(np.abs(x) < 0.0625, x, r(np.tanh(x))))),
        ("tanh", "capped", "wrong", "results capped at 0.999", _simple(lambda x: np.clip(r(np.tanh(x)), -0.999, 0.999))),
        ("tanh", "table", "narrow", "straight lines between bfloat16 values", _table(np.tanh, -4, 4, 129, np.sign)),
        ("tanh", "expm1", "honest", "by expm1", _simple(lambda x: np.copysign(r(-r(np.expm1(r(-2 * np.abs(x)))) / r(2 + r(np.expm1(
            r(-2 * np.abs(x)))))), x)))):
        yield chain(op, name, kind, why, f)


def table():
    for part in (softmaxes, norms, activations):
        yield from part()
