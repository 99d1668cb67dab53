"""Held out: accumulators that spill, restart, draw, wrap, saturate, or keep a second number and get it wrong; fast products."""

import numpy as np
from heldout_tools import ALL, F32, HALF, add32, adding, good, in_turn, largest, made, recipe, terms, words
from products import Recipe, accumulate
from rounding import add_odd, float32, ranged, rounding

OTHER = words("as_is", acc="other")
# Known words of sums that few terms turn into others, which have words: those of the operands alone.
INSIDE = {"in": {"x": "as_is", "w": "as_is"}}


def _promoted(name, every, into=add32):
    """Sums of `every` terms in a narrow format, each added to a wider one."""
    def total(a, b):
        t = terms(a, b)
        return in_turn(np.stack([in_turn(t[at:at + every], adding(name)) for at in range(0, len(t), every)]), into)

    return total


def _spilled(name, every):
    """A float32 accumulator that is stored in a narrow format after every so many terms."""
    narrow = rounding(name)

    def total(a, b):
        y = np.zeros((a.shape[0], b.shape[1]))
        for at, t in enumerate(terms(a, b), 1):
            y = add32(y, t)
            if at % every == 0 and at < a.shape[1]:
                y = narrow(y)
        return y

    return total


def _pairs_in(name):
    """Two products at once into a narrow accumulator, fused one after the other or together."""
    add = adding(name)

    def total(a, b):
        t = terms(a, b)
        t = np.concatenate([t, np.zeros((len(t) % 2, *t.shape[1:]))])
        return in_turn(add_odd(t[0::2], t[1::2]), add)

    return total


def _halves(first, second):
    """The first half of K by one adder, the second by another."""
    def total(a, b):
        t = terms(a, b)
        y = np.zeros(t.shape[1:])
        for at, each in enumerate(t):
            y = (first if at < len(t) // 2 else second)(y, each)
        return y

    return total


def _by_turns(narrow):
    """Even terms as they are, the products of odd ones through a narrow format."""
    def total(a, b):
        t = terms(a, b)
        t[1::2] = rounding(narrow)(t[1::2])
        return in_turn(t)

    return total


def _dropped(limit):
    """Products below `limit` of the largest are left out."""
    def total(a, b):
        t = terms(a, b)
        return in_turn(np.where(np.abs(t) < limit * largest(t, 0), 0.0, t))

    return total


def _swallowed(a, b):
    """A term below 2^-16 of the accumulator is not added."""
    y = np.zeros((a.shape[0], b.shape[1]))
    for t in terms(a, b):
        y = np.where(np.abs(t) < 2.0**-16 * np.abs(y), y, add32(y, t))
    return y


def _restarted(a, b):
    half = a.shape[1] // 2
    return good(a[:, half:], b[half:]) if half >= 8 else good(a, b)


def _guarded(guard, width=24):
    """Alignment by shifting: what is beyond `guard` bits below the larger of the two is cut, then the sum is rounded."""
    def add(s, t):
        top = np.maximum(np.frexp(s)[1], np.frexp(t)[1])
        quantum = np.ldexp(1.0, np.maximum(top - width - guard, -1000))
        cut = np.trunc(s / quantum) * quantum + np.trunc(t / quantum) * quantum
        return np.where(np.isfinite(s) & np.isfinite(t), ranged(width)(cut), s + t)

    return lambda a, b: in_turn(float32(terms(a, b)), add)


def _fixed(bits, wrap=False):
    """Integers of a common unit, `bits` below the largest product there can be; wrap: in a register that is too short."""
    def total(a, b):
        unit = 2.0**(np.frexp(largest(a, None) * largest(b, None))[1] - bits)
        t = np.rint(terms(a, b) / unit).sum(axis=0)
        reach = 2.0**(bits + 1)
        return (np.mod(t + reach, 2 * reach) - reach if wrap else t) * unit

    return total


def _saturating(limit):
    """An accumulator that stays at `limit` times the largest product."""
    def total(a, b):
        t = terms(a, b)
        reach = limit * largest(t, None)
        return in_turn(t, lambda s, u: np.clip(add32(s, u), -reach, reach))

    return total


def _kahan(name, sign=-1.0):
    """Kahan's sum with every step in a format; sign +1: the correction has the wrong one."""
    narrow = rounding(name)

    def total(a, b):
        y = lost = np.zeros((a.shape[0], b.shape[1]))
        for t in narrow(terms(a, b)):
            step = narrow(t + sign * lost)
            new = narrow(add_odd(y, step))
            lost, y = narrow(narrow(new - y) - step), new
        return y

    return total


def _hasty(name):
    """Two numbers hold the sum, by the fast two-sum, which needs the larger summand first and does not get it."""
    narrow = rounding(name)

    def total(a, b):
        y = lost = np.zeros((a.shape[0], b.shape[1]))
        for t in narrow(terms(a, b)):
            new = narrow(add_odd(t, y))
            lost = narrow(lost + narrow(y - narrow(new - t)))
            y = new
        return add_odd(y, lost)

    return total


def _directed(up):
    """Float32 sums rounded up, or down."""
    def add(s, t):
        exact = add_odd(s, t)
        near = float32(exact).astype(np.float32)
        beyond = near.astype(np.float64) < exact if up else near.astype(np.float64) > exact
        return np.where(beyond, np.nextafter(near, np.float32(np.inf if up else -np.inf)), near).astype(np.float64)

    return lambda a, b: in_turn(terms(a, b), add)


def _drawn_chunks(name, size):
    """Float32 sums of `size` terms, added with stochastic rounding to a narrow format."""
    def total(a, b):
        t, draw = terms(a, b), rounding(f"{name}_sr")
        return in_turn(np.stack([in_turn(t[at:at + size]) for at in range(0, len(t), size)]),
                       lambda s, u: np.where(np.isfinite(s + u), draw(add_odd(s, u)), s + u))

    return total


def _logarithmic(a, b):
    """exp2(log2 |a| + log2 |b|), all in float32."""
    la, lb = float32(np.log2(np.abs(a))), float32(np.log2(np.abs(b)))
    size = float32(np.exp2(add32(la.T[:, :, None], lb[:, None, :])))
    return in_turn(size * np.sign(a).T[:, :, None] * np.sign(b)[:, None, :])


def _mitchell(a, b):
    """Products by Mitchell's straight lines for the logarithm and its inverse."""
    (fa, ea), (fb, eb) = np.frexp(np.abs(a)), np.frexp(np.abs(b))
    lines = (2 * fa - 1).T[:, :, None] + (2 * fb - 1)[:, None, :]
    size = np.where(lines < 1, 1 + lines, 2 * lines) * 2.0**((ea - 1).T[:, :, None] + (eb - 1)[:, None, :])
    return in_turn(float32(size * np.sign(a).T[:, :, None] * np.sign(b)[:, None, :]))


def _winograd_inner(a, b):
    """(a0 + b1)(a1 + b0) less what is known of the rows and columns alone (Winograd 1968)."""
    k = a.shape[1] // 2 * 2
    xi = in_turn(float32(a[:, 0:k:2] * a[:, 1:k:2]).T) if k else np.zeros(a.shape[0])
    eta = in_turn(float32(b[0:k:2] * b[1:k:2])) if k else np.zeros(b.shape[1])
    left = add32(a[:, 0:k:2].T[:, :, None], b[1:k:2][:, None, :])
    right = add32(a[:, 1:k:2].T[:, :, None], b[0:k:2][:, None, :])
    y = add32(add32(in_turn(float32(left * right)), -xi[:, None]), -eta[None, :])
    return add32(y, a[:, k:] * b[k:]) if k < a.shape[1] else y


def _strassen(narrow, depth=1):
    """Seven products of blocks for eight, the sums of blocks in a narrow format."""
    r = rounding(narrow)

    def total(a, b, level=depth):
        (m, k), n = a.shape, b.shape[1]
        if level == 0 or min(m, k, n) < 2:
            return good(a, b)
        a, b = np.pad(a, ((0, m % 2), (0, k % 2))), np.pad(b, ((0, k % 2), (0, n % 2)))
        i, j, l = a.shape[0] // 2, a.shape[1] // 2, b.shape[1] // 2
        a11, a12, a21, a22, b11, b12, b21, b22 = a[:i, :j], a[:i, j:], a[i:, :j], a[i:, j:], b[:j, :l], b[:j, l:], b[j:, :l], b[j:, l:]
        m1, m2, m3 = total(r(a11 + a22), r(b11 + b22), level - 1), total(r(a21 + a22), b11, level - 1), total(a11, r(b12 - b22), level - 1)
        m4, m5 = total(a22, r(b21 - b11), level - 1), total(r(a11 + a12), b22, level - 1)
        m6, m7 = total(r(a21 - a11), r(b11 + b12), level - 1), total(r(a12 - a22), r(b21 + b22), level - 1)
        top = np.concatenate([add32(add32(m1, m4), add32(m7, -m5)), add32(m3, m5)], axis=1)
        low = np.concatenate([add32(m2, m4), add32(add32(m1, -m2), add32(m3, m6))], axis=1)
        return np.concatenate([top, low])[:m, :n]

    return total


def _cancelled(a, b):
    """The sum of (a + 64) b less 64 times the sum of b, in float32."""
    ones = np.ones((1, a.shape[1]))
    return add32(good(add32(a, 64.0), b), -64 * good(ones, b))


def table():
    def narrow(name, why, total, truth=OTHER, inputs=ALL, **more):
        return made(name, "narrow", why, total, truth=truth, inputs=inputs, **more)

    f32, b16 = add32, adding("bfloat16")
    for name, every in (("p14_rz", 32), ("bfloat16", 16), ("float16", 8), ("p20", 16)):
        yield narrow(f"promoted_{name}_{every}", f"{name} sums of {every}, added in float32", _promoted(name, every), INSIDE)
    for name, every in (("bfloat16", 32), ("float16", 16), ("p20", 8), ("p22", 4)):
        yield narrow(f"spilled_{name}_{every}", f"a float32 accumulator stored in {name} after every {every} terms",
                     _spilled(name, every))
    yield narrow("pairs_bfloat16", "two products at once into bfloat16", _pairs_in("bfloat16"), INSIDE)
    yield narrow("pairs_p18", "two products at once into 18 bits", _pairs_in("p18"), INSIDE)
    yield narrow("then_bfloat16", "float32 for the first half of K, bfloat16 for the second", _halves(f32, b16), INSIDE)
    yield narrow("bfloat16_then", "bfloat16 for the first half of K, float32 for the second", _halves(b16, f32), INSIDE)
    yield narrow("p16_by_turns", "float32 and 16 bits by turns", lambda a, b: in_turn(np.stack(
        [accumulate(a[:, 0::2], b[0::2], Recipe()), accumulate(a[:, 1::2], b[1::2], Recipe(acc="p16"))])))
    yield narrow("odd_products_bfloat16", "every other product through bfloat16", _by_turns("bfloat16"),
                 words("as_is", prod="other", acc="float32"))
    yield narrow("odd_products_tf32", "every other product through tf32", _by_turns("tf32"),
                 words("as_is", prod="other", acc="float32"))
    yield narrow("dropped_2m8", "products below 2^-8 of the largest left out", _dropped(2.0**-8), {})
    yield narrow("dropped_2m14", "products below 2^-14 of the largest left out", _dropped(2.0**-14), {})
    yield narrow("swallowed", "terms below 2^-16 of the accumulator left out", _swallowed, {})
    yield narrow("guard0", "a float32 accumulator without guard bits", _guarded(0), accepted=True)
    yield narrow("guard0_p20", "an accumulator of 20 bits without guard bits", _guarded(0, 20))
    yield narrow("guard2_p16", "an accumulator of 16 bits with two guard bits", _guarded(2, 16))
    yield narrow("fixed16", "integers of 2^-16 of the largest product", _fixed(16))
    yield narrow("fixed22", "integers of 2^-22 of the largest product", _fixed(22))
    yield narrow("fixed40", "integers of 2^-40 of the largest product", _fixed(40), {})
    yield narrow("saturating", "the accumulator stays at 3 times the largest product", _saturating(3.0), {})
    yield narrow("kahan_bfloat16", "Kahan's sum in bfloat16", _kahan("bfloat16"))
    yield narrow("kahan_float16", "Kahan's sum in float16", _kahan("float16"))
    yield narrow("kahan_wrong_sign", "Kahan's sum in float32, the correction with the wrong sign", _kahan("float32", 1.0), {})
    yield narrow("hasty_bfloat16", "two bfloat16 numbers by a two-sum in the wrong order", _hasty("bfloat16"))
    yield narrow("hasty_p12", "two numbers of 12 bits by a two-sum in the wrong order", _hasty("p12"), inputs=F32)
    yield narrow("upwards", "float32 sums rounded up", _directed(True), accepted=True)
    yield narrow("downwards", "float32 sums rounded down", _directed(False), accepted=True)
    yield narrow("drawn_p8_16", "float32 sums of 16, added with stochastic rounding to 8 bits", _drawn_chunks("p8", 16), INSIDE)
    yield narrow("drawn_p16_8", "float32 sums of 8, added with stochastic rounding to 16 bits", _drawn_chunks("p16", 8), INSIDE)
    yield narrow("logarithmic", "products by logarithms in float32", _logarithmic, {})
    yield narrow("mitchell", "products by straight lines for logarithms", _mitchell, {})
    yield narrow("winograd_inner", "Winograd's inner product in float32", _winograd_inner, {})
    yield narrow("strassen", "Strassen's product in float32", _strassen("float32"), {})
    yield narrow("strassen2", "Strassen's product in float32, twice over", _strassen("float32", 2), {}, F32)
    yield narrow("strassen_bfloat16", "Strassen's product, the sums of operands in bfloat16", _strassen("bfloat16"), {}, F32)
    yield made("restarted", "wrong", "the accumulator is cleared half-way", _restarted)
    yield narrow("shifted_by_64", "64 is added to the operand and taken off the result", _cancelled, {})
    yield recipe("split3_p16", "narrow", "three float32 parts added in 16 bits", order="split3", combine="p16")
    yield recipe("acc_p19_lanes24", "narrow", "24 accumulators of 19 bits", acc="p19", order="lanes24")
    yield recipe("acc_p15_hilbert", "narrow", "an accumulator of 15 bits along Hilbert's curve", acc="p15", order="hilbert")
    yield recipe("prod_float16_lanes6", "narrow", "float16 products in six lanes", prod="float16", order="lanes6", inputs=F32 + HALF)
    yield recipe("prod_p22_rz", "narrow", "products cut to 22 bits", prod="p22_rz", order="lanes12", inputs=F32)
    for op in ("sum", "mean"):
        yield narrow(f"{op}_kahan_bfloat16", "Kahan's sum in bfloat16", _kahan("bfloat16"), {"in": {"x": "bfloat16_rne"}, "acc": "other"}, op=op)
        yield narrow(f"{op}_promoted", "bfloat16 sums of 8, added in float32", _promoted("bfloat16", 8), {}, op=op)
        yield narrow(f"{op}_drawn", "float32 sums of 8, added with stochastic rounding to 8 bits", _drawn_chunks("p8", 8), {}, op=op)
    yield narrow("sum_fixed16_wraps", "integers of 2^-16 of the largest that wrap around", _fixed(16, True), {}, op="sum")
    yield narrow("sum_dropped", "terms below 2^-8 of the largest left out", _dropped(2.0**-8), {}, op="sum")
    yield narrow("backward_micro", "gradients of 8 samples each, added in bfloat16", _promoted("float32", 8, b16), {}, op="backward")
    yield narrow("backward_drawn", "gradients of 8 samples each, stochastically rounded to 8 bits", _drawn_chunks("p8", 8), {},
                 op="backward")
    yield narrow("linear_promoted", "float16 sums of 8, added in float32", _promoted("float16", 8), INSIDE, op="linear")
