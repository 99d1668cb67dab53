"""Fresh, a ninth set: what libraries ship beside the plain ways: residues, votes, packed formats, tables and seams (e_...).

No order is entered in MORE_ORDERS here: heldout_orders makes a kernel of each that it finds there.
"""

import numpy as np
from apart_tools import cut, filled, once, parts_of, tree, two_sum_in
from fresh import _norm, _rms, _tree_rows
from fresh_fifth import fma
from fresh_fourth import FIRST_OTHER, INSIDE, OTHER, PLAIN, SECOND_OTHER, _deviated, _inverse, _or_plain
from heldout_tools import ALL, F32, add32, blockwise, good, in_turn, largest, row_sum, terms, under, words
from ops import _ERF
from rounding import add_odd, bfloat16, float16, float32 as r, rounding

SUMMED = words("as_is", acc="float32", op="sum")
OTHER_SUM = words("as_is", acc="other")


made, recipe, chain, whole = under("e_")


def _kept(x, y):
    """y where x is finite, x itself elsewhere."""
    return np.where(np.isfinite(x), y, x)


def _polynomial(x, *coefficients):
    """By Horner's rule, from the highest coefficient on, in float64."""
    y = np.zeros_like(x)
    for each in coefficients:
        y = y * x + each
    return y


# honest sums
def _three_floats(a, b):
    """The sum is three float32 numbers; a product joins as its rounded value and what that lacks."""
    first = second = third = np.zeros((a.shape[0], b.shape[1]))
    for exact in terms(a, b):
        product = r(exact)
        first, lost = two_sum_in(first, product)
        second, fainter = two_sum_in(second, lost)
        second, faintest = two_sum_in(second, np.where(np.isfinite(product), r(exact - product), 0.0))
        third = add32(third, add32(fainter, faintest))
    return _or_plain(add32(first, add32(second, third)), a, b)


# Coprime in pairs; their product is beyond 2^160.
MODULI = (256, 255, 253, 251, 247, 241, 239, 233, 229, 227, 223, 217, 211, 199, 197, 193, 191, 181, 179, 173, 167)


def _integers(x, axis):
    """x as (24-bit integers, powers of two on them, exponents along `axis`): 70 bits below the largest, the rest cut."""
    top = np.frexp(largest(x, axis))[1]
    fraction, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
    shift = np.clip(exponent - top + 46, -30, 46)  # of 0 any will do
    return np.trunc(fraction * 2.0**(24 + np.minimum(shift, 0))).astype(np.int64), np.maximum(shift, 0), top


def _residues(a, b):
    """Ozaki's second scheme: integer products modulo small primes, put together by the Chinese remainder theorem."""
    (x, s, high), (w, t, wide) = _integers(a, 1), _integers(b, 0)
    modulus = int(np.prod([int(p) for p in MODULI], dtype=object))
    y = np.zeros((a.shape[0], b.shape[1]), dtype=object)
    for p in MODULI:
        powers = np.array([pow(2, shift, p) for shift in range(47)])
        product = (x * powers[s] % p).astype(float) @ (w * powers[t] % p).astype(float)
        others = modulus // p
        y = y + np.mod(product, p).astype(np.int64).astype(object) * (others * pow(others, -1, p))
    y = y % modulus
    signed = np.where(y > modulus // 2, y - modulus, y).astype(float)
    finite = np.isfinite(a).all(axis=1)[:, None] & np.isfinite(b).all(axis=0)
    return np.where(finite, np.ldexp(signed, high + wide - 140), good(a, b))


def _binary_counter(a, b):
    """Fused chains of three; equally long sums are joined as the bits of a counter carry, the rest from the shortest on."""
    stack = []
    for count, piece in enumerate(cut(terms(a, b), 3), 1):
        y = in_turn(piece)
        while count % 2 == 0:
            y, count = add32(stack.pop(), y), count // 2
        stack.append(y)
    y = stack.pop()
    while stack:
        y = add32(stack.pop(), y)
    return y


def _panels_of_28(a, b):
    """Panels of 28 along K with four new fused accumulators each, joined 0 2 and 1 3, then added to the result."""
    y = np.zeros((a.shape[0], b.shape[1]))
    for piece in cut(terms(a, b), 28):
        lanes = in_turn(filled(piece, 4))
        y = add32(y, add32(add32(lanes[0], lanes[2]), add32(lanes[1], lanes[3])))
    return y


def _voted(a, b):
    """Three units add in orders of their own; the middle one of the three results counts."""
    t = terms(a, b)
    return np.sort(np.stack([in_turn(t), in_turn(t[::-1]), tree(r(t))]), axis=0)[1]


def _outliers_wide(a, b):
    """The eight columns of the first operand with the largest elements in float64, all others in one fused chain."""
    t, wide = terms(a, b), np.zeros((a.shape[0], b.shape[1]))
    ranked = np.argsort(-np.abs(a).max(axis=0), kind="stable")
    for each in t[np.sort(ranked[:8])]:
        wide = wide + each
    return add32(in_turn(t[np.sort(ranked[8:])]), r(wide))


def _into_int64(a, b):
    """Terms as integers of 2^-46 of the row's largest, added in 64 bits: the same in any order."""
    unit = np.ldexp(1.0, np.frexp(largest(a, 1))[1] - 46)
    integers = np.rint(np.where(np.isfinite(a), a, 0.0) / unit).astype(np.int64)
    return np.where(np.isfinite(a).all(axis=1, keepdims=True), integers.sum(axis=1, keepdims=True) * unit, good(a, b))


def _mean_by_blocks(a, b, bias):
    """The mean of each 24 moves the mean so far towards it by its share, in one fused step."""
    mean, count = np.zeros((len(a), 1)), 0
    for piece in cut(terms(a, b), 24):
        count += len(piece)
        mean = fma(r(r(in_turn(piece) / len(piece)) - mean), r(np.float64(len(piece) / count)), mean)
    return np.where(np.isfinite(mean), mean, r(good(a, b) / a.shape[1]))


def _by_semaphore(a, b, bias):
    """The result begins as the bias; five parts of K wait for each other and add their fused sums to it."""
    y = np.broadcast_to(bias, (a.shape[0], b.shape[1]))
    for part in parts_of(a, b, 5, lambda x, w: in_turn(terms(x, w))):
        y = add32(y, part)
    return y


def _pairs_by_stride(a, b):
    """Six blocks take pairs of samples by turns; their gradients are added from the last block to the first."""
    t = terms(a, b)
    block = np.arange(len(t)) // 2 % 6
    return in_turn(np.stack([in_turn(t[block == each]) for each in range(6)])[::-1])


def honest_sums():
    for name, why, total, truth in (
        ("three_floats", "three float32 numbers hold the sum", _three_floats, INSIDE),
        ("residues_of_integers", "70-bit integers modulo 21 small numbers, as Ozaki's second scheme", _residues, INSIDE),
        ("binary_counter", "fused chains of three, joined as a counter carries", _binary_counter, PLAIN),
        ("panels_of_28", "panels of 28 with four fused accumulators each", _panels_of_28, PLAIN),
        ("voted_by_three", "the middle one of three orders' results", _voted, PLAIN),
        ("outlier_columns_wide", "eight columns of large elements in float64", _outliers_wide, INSIDE)):
        yield made(name, "honest", why, total, truth=truth)
    yield made("sum_int64_of_row", "honest", "64-bit integers of 2^-46 of the row's largest", _into_int64, op="sum",
               truth={"in": {"x": "as_is"}})
    yield whole("mean", "moved_by_blocks", "honest", "the mean of each 24 moves the mean by its share", _mean_by_blocks,
                truth={"in": {"x": "as_is"}})
    yield whole("linear", "parts_onto_bias", "honest", "five parts of K added onto the bias one after the other", _by_semaphore,
                truth=PLAIN)
    yield made("backward_pairs_by_stride", "honest", "pairs of samples to six blocks by turns, from the last block",
               _pairs_by_stride, op="backward", truth=words("as_is", acc="float32", op="backward"))


# honest chains
def _shifted(x):
    return r(x - np.max(x, axis=1, keepdims=True))


def _sleef_exp(d):
    """SLEEF's expf: ln 2 in two parts, a polynomial of degree 7, all steps fused float32."""
    d = np.clip(d, -200, 0)
    q = np.rint(r(d * r(np.float64(1.4426950408889634))))
    s = fma(q, -r(np.float64(1.428606765330187045e-06)), fma(q, -0.693145751953125, d))
    u = np.full_like(s, r(np.float64(0.000198527617612853646278381)))
    for c in (0.00139304355252534151077271, 0.00833336077630519866943359, 0.0416664853692054748535156,
              0.166666671633720397949219, 0.5):
        u = fma(u, s, r(np.float64(c)))
    return np.where(d < -104, 0.0, r(add32(fma(r(s * s), u, s), np.ones_like(s)) * np.exp2(q)))


def _sleef(x, w, bias, eps):
    e = _sleef_exp(_shifted(x))
    return r(e / _tree_rows(e))


LN2 = np.log(2.0)


def _significands(x, w, bias, eps):
    """No maximum is taken off: exponentials and their sum have exponents of their own. Rows beyond 2^14 go the usual way."""
    plain = r(np.exp(_shifted(x)))
    plain = r(plain / _tree_rows(plain))
    usual = ~(np.abs(x) < 2.0**14).all(axis=1, keepdims=True)
    x = np.where(usual, 0.0, x)
    n = np.rint(r(x * r(np.float64(1 / LN2))))
    m = r(np.exp(fma(n, -r(LN2 - r(LN2)), fma(n, -r(LN2), x))))
    total, top = m[:, :1], n[:, :1]
    for at in range(1, x.shape[1]):
        new = np.maximum(top, n[:, at:at + 1])
        total = add32(r(total * np.exp2(top - new)), r(m[:, at:at + 1] * np.exp2(n[:, at:at + 1] - new)))
        top = new
    return np.where(usual, plain, r(r(m / total) * np.exp2(n - top)))


def _total_by_eights(x, w, bias, eps):
    """Eight exponentials and the sum so far at once, one rounding, as a unit that multiplies by ones has it."""
    e = r(np.exp(_shifted(x)))
    total = np.zeros((len(x), 1))
    for piece in cut(e.T[:, :, None], 8):
        total = r(once([total, *piece]))
    return r(e / total)


def _joined_moments(one, two):
    """(count, mean, squared deviations) of two parts of a row, as torch's AddMoments joins them."""
    (n, mean, squares), (k, other, more) = one, two
    if n == 0:
        return two
    share, apart = r(np.float64(k / (n + k))), r(other - mean)
    return n + k, add32(mean, r(share * apart)), add32(squares, add32(more, r(r(r(apart * apart) * share) * n)))


def _row_moments(x, w, bias, eps):
    """Welford with tabled reciprocals in eight lanes, chunks of 4 vectors on a stack, then the lanes, then the rest."""
    even = x.shape[1] // 8 * 8
    stack, lanes = [], x[:, :even].T.reshape(-1, 8, len(x), 1)

    def moments(columns):
        mean = squares = np.zeros(columns.shape[1:])
        for count, column in enumerate(columns, 1):
            apart = r(column - mean)
            mean = add32(mean, r(apart * r(np.float64(1 / count))))
            squares = add32(squares, r(apart * r(column - mean)))
        return len(columns), mean, squares

    for count, chunk in enumerate(cut(lanes, 4), 1):
        part = moments(chunk)
        while count % 2 == 0:
            part, count = _joined_moments(stack.pop(), part), count // 2
        stack.append(part)
    total = (0, 0.0, 0.0)
    while stack:
        total = _joined_moments(total, stack.pop())
    n, means, squares = total
    row = (0, 0.0, 0.0)
    for lane in range(8 if n else 0):
        row = _joined_moments(row, (n, means[lane], squares[lane]))
    if even < x.shape[1]:
        row = _joined_moments(row, moments(x[:, even:].T[:, :, None]))
    n, mean, squares = row
    return _deviated(x, mean, _inverse(r(r(squares / n) + eps)), w, bias)


def _x_times_deviation(x, w, bias, eps):
    """The variance as the mean of x (x - mean), in float64."""
    d = x - x.sum(axis=1, keepdims=True) / x.shape[1]
    return d / np.sqrt(np.maximum((x * d).sum(axis=1, keepdims=True) / x.shape[1], 0.0) + eps) * w + bias


# Cephes' ndtr.c: x^2 -> erf(x) / x below 1, erfc(x) e^(x^2) below 8 and beyond.
ERF = ((9.60497373987051638749e0, 9.00260197203842689217e1, 2.23200534594684319226e3, 7.00332514112805075473e3,
        5.55923013010394962768e4),
       (1.0, 3.35617141647503099647e1, 5.21357949780152679795e2, 4.59432382970980127987e3, 2.26290000613890934246e4,
        4.92673942608635921086e4))
ERFC = ((2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0, 4.86371970985681366614e1,
         1.96520832956077098242e2, 5.26445194995477358631e2, 9.34528527171957607540e2, 1.02755188689515710272e3,
         5.57535335369399327526e2),
        (1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2, 9.75708501743205489753e2,
         1.82390916687909736289e3, 2.24633760818710981792e3, 1.65666309194161350182e3, 5.57535340817727675546e2))
FAR = ((5.64189583547755073984e-1, 1.27536670759978104416e0, 5.01905042251180477414e0, 6.16021097993053585195e0,
        7.40974269950448939160e0, 2.97886665372100240670e0),
       (1.0, 2.26052863220117276590e0, 9.39603524938001434673e0, 1.20489539808096656605e1, 1.70814450747565897222e1,
        9.60896809063285878198e0, 3.36907645100081516050e0))


def _quotient(x, pair):
    return _polynomial(x, *pair[0]) / _polynomial(x, *pair[1])


def _cephes_ndtr(x):
    """The normal distribution as Cephes has it, in float64."""
    z = x * 0.7071067811865476
    near, size = np.clip(z, -1, 1), np.clip(np.abs(z), 0, 40)
    tail = np.exp(-size * size) * np.where(size < 8, _quotient(size, ERFC), _quotient(size, FAR)) / 2
    inner = 0.5 + near * _quotient(near * near, ERF) / 2
    return x * np.where(np.abs(z) < 1, inner, np.where(z > 0, 1 - tail, tail))


def _glibc_exp(v):
    """glibc's expf: 32 powers of two and a cubic in float64, rounded once."""
    z = np.clip(v, -110, 110) * (32 / LN2)
    k = np.rint(z)
    s = z - k
    cubic = _polynomial(s, float.fromhex("0x1.c6af84b912394p-5") / 32**3, float.fromhex("0x1.ebfce50fac4f3p-3") / 32**2,
                        float.fromhex("0x1.62e42ff0c52d6p-1") / 32, 1.0)
    return r(cubic * np.exp2(k / 32))


def _hyperbolic(t, steps):
    """(cosh t, sinh t) for |t| below 1.1 by CORDIC's rotations, the 4th, 13th and 40th done twice."""
    turns = sorted([*range(1, steps + 1), *(each for each in (4, 13, 40) if each <= steps)])
    c = np.full_like(t, 1 / np.prod([np.sqrt(1 - 4.0**-i) for i in turns]))
    s = np.zeros_like(t)
    for i in turns:
        turn = np.where(t >= 0, 2.0**-i, -2.0**-i)
        c, s, t = c + turn * s, s + turn * c, t - np.copysign(np.arctanh(2.0**-i), turn)
    return c, s


def _tanh_cordic(x):
    """Below 2^-6 a series, below 1 sinh over cosh by CORDIC, beyond that e^-2|x| by CORDIC; in float64."""
    size = np.clip(np.abs(x), 0, 30)
    c, s = _hyperbolic(np.minimum(size, 1), 46)
    n = np.rint(2 * size / LN2)
    p, q = _hyperbolic(2 * size - n * LN2, 46)
    e = (p - q) * np.exp2(-n)
    y = np.select([size < 2.0**-6, size < 1], [size - size**3 / 3 + 2 * size**5 / 15, s / c], (1 - e) / (1 + e))
    return np.where(np.isnan(x), x, np.copysign(y, x))


def _tanh_of_sinh(x):
    s = np.sinh(np.clip(x, -20, 20))
    return s / np.sqrt(1 + s * s)


def honest_chains():
    for op, name, why, f in (
        ("softmax", "sleef_exp", "SLEEF's expf", _sleef),
        ("softmax", "significands_and_exponents", "no maximum taken off, exponents kept apart, as XNNPACK", _significands),
        ("softmax", "total_by_eights", "eight exponentials and the sum so far by one rounding", _total_by_eights),
        ("layer_norm", "row_moments", "Welford in eight lanes, chunks on a stack, as torch on a CPU", _row_moments),
        ("layer_norm", "x_times_deviation", "the variance as the mean of x (x - mean), in float64", _x_times_deviation),
        ("rms_norm", "power_of_minus_half", "a power of -1/2 in float64", _rms(rsqrt=lambda v: r(v**-0.5)))):
        yield chain(op, name, "honest", why, f)
    for op, name, why, f in (
        ("gelu", "cephes_ndtr", "Cephes' normal distribution, in float64", _cephes_ndtr),
        ("silu", "glibc_exp", "glibc's expf", lambda x: r(x / r(1 + _glibc_exp(-x)))),
        ("tanh", "cordic", "CORDIC in float64", _tanh_cordic),
        ("tanh", "sinh_over_root", "sinh x over the root of 1 + sinh^2 x, in float64", _tanh_of_sinh)):
        yield chain(op, name, "honest", why, lambda x, w, bias, eps, f=f: f(x))


# narrow sums
def _microexponents(x, axis):
    """Seven bits and a sign, one exponent per 16, one bit per pair that lowers it (MX9)."""
    def change(blocks):
        finite = np.where(np.isfinite(blocks), blocks, 0.0)
        shared = np.frexp(largest(finite))[1][..., None]
        pairs = finite.reshape(*finite.shape[:-1], 8, 2)
        lower = np.abs(pairs).max(axis=-1, keepdims=True) < np.ldexp(0.5, shared)
        unit = np.ldexp(1.0, shared - lower - 7)
        return (np.clip(np.rint(pairs / unit), -127, 127) * unit).reshape(blocks.shape)

    return _kept(x, blockwise(x, axis, 16, change))


def _mx9(a, b):
    return good(_microexponents(a, 1), _microexponents(b, 0))


def _signed_powers(x, count):
    """x as a sum of so many powers of two of either sign, each the nearest to what is left."""
    rest, y = np.where(np.isfinite(x), x, 0.0), np.zeros_like(x)
    for _ in range(count):
        fraction, exponent = np.frexp(rest)
        power = np.where(rest == 0, 0.0, np.copysign(np.ldexp(1.0, exponent - (np.abs(fraction) < 0.75)), rest))
        y, rest = y + power, rest - power
    return _kept(x, y)


def _half_and_brain(a, b):
    """Operands as a float16 number and what it lacks in bfloat16; the product of the two rests is left out."""
    def pieces(x):
        high = _kept(x, rounding("float16_sat")(x))
        return high, np.where(np.isfinite(x), bfloat16(x - np.where(np.isfinite(x), high, 0.0)), 0.0)

    (high, low), (wide, fine) = pieces(a), pieces(b)
    return add32(add32(good(high, fine), good(low, wide)), good(high, wide))


def _zfp(x, axis):
    """Blocks of 4 through zfp's lifted transform, the lowest 15 of 30 planes cut."""
    def change(blocks):
        finite = np.where(np.isfinite(blocks), blocks, 0.0)
        unit = np.ldexp(1.0, np.frexp(largest(finite))[1] - 30)
        x, y, z, w = np.moveaxis(np.trunc(finite / unit).astype(np.int64), -1, 0)
        x = x + w >> 1
        w = w - x
        z = z + y >> 1
        y = y - z
        x = x + z >> 1
        z = z - x
        w = w + y >> 1
        y = y - w
        w = w + (y >> 1)
        y = y - (w >> 1)
        x, y, z, w = ((each >> 15) << 15 for each in (x, y, z, w))
        y = y + (w >> 1)
        w = w - (y >> 1)
        y, w = y + w, (w << 1) - (y + w)
        z, x = z + x, (x << 1) - (z + x)
        y, z = y + z, (z << 1) - (y + z)
        w, x = w + x, (x << 1) - (w + x)
        return np.stack([x, y, z, w], axis=-1) * unit

    return _kept(x, blockwise(x, axis, 4, change))


def _marked(x):
    """The last four bits hold a watermark that follows from the place."""
    rows, columns = np.indices(x.shape)
    bits = x.astype(np.float32).view(np.int32)
    return _kept(x, (bits & ~15 | (7 * rows + 5 * columns) % 16).astype(np.int32).view(np.float32).astype(np.float64))


def _six_digits(x):
    """As a text of six decimal digits has it."""
    finite = np.where(np.isfinite(x) & (x != 0), x, 1.0)
    unit = 10.0**(np.floor(np.log10(np.abs(finite))) - 5)
    return np.where(np.isfinite(x) & (x != 0), r(np.rint(finite / unit) * unit), x)


def _short_array(a, b):
    """An array multiplier without its lowest 27 of 48 columns: what these partial products would carry is lost."""
    def significands(x):
        fraction, exponent = np.frexp(np.where(np.isfinite(x), np.abs(x), 0.0))
        return (fraction * 2.0**24).astype(np.int64), exponent - 24

    (x, s), (w, t) = significands(a), significands(b)
    y = np.zeros((a.shape[0], b.shape[1]))
    for k, exact in enumerate(terms(a, b)):
        one, two = x[:, k, None], w[None, k, :]
        product = sum((((one >> i) & 1) * ((two << i) >> 27)) << 27 for i in range(24))
        product = np.copysign(np.ldexp(product.astype(float), s[:, k, None] + t[None, k, :]), exact)
        y = add32(y, _kept(exact, r(product)))
    return y


def _lower_part_or(a, b):
    """Integers of 2^-28 of the largest product; an adder whose lowest 10 bits are or'ed and carry nothing."""
    t = terms(a, b)
    unit = np.ldexp(1.0, np.frexp(largest(t, 0))[1] - 28)
    integers = np.rint(np.where(np.isfinite(t), t, 0.0) / unit).astype(np.int64)
    y = np.zeros_like(integers[0])
    for each in integers:
        y = ((y >> 10) + (each >> 10) << 10) | ((y | each) & 1023)
    return np.where(np.isfinite(t).all(axis=0), y * unit[0], good(a, b))


def _never_finer(a, b):
    """A word of 20 bits that shifts to the right where a sum grows and never back."""
    y, grown = np.zeros((a.shape[0], b.shape[1])), np.full((a.shape[0], b.shape[1]), -1000)
    for each in terms(a, b):
        exact = add_odd(y, each)
        exponent = np.frexp(np.where(np.isfinite(exact), exact, 0.0))[1]
        grown = np.where(np.isfinite(exact) & (exact != 0), np.maximum(grown, exponent), grown)
        unit = np.ldexp(1.0, np.maximum(grown - 20, -149))
        y = _kept(exact, r(np.rint(exact / unit) * unit))
    return y


def _one_draw(a, b):
    """Sums of 14 bits, rounded by chance; all elements share the number that is drawn for a step."""
    rng, y = np.random.default_rng(314), np.zeros((a.shape[0], b.shape[1]))
    for each in terms(a, b):
        exact = add_odd(y, each)
        finite = np.where(np.isfinite(exact), exact, 0.0)
        unit = np.ldexp(1.0, np.maximum(np.frexp(finite)[1] - 14, -149))
        y = _kept(exact, r(np.copysign(np.floor(np.abs(finite) / unit + rng.random()) * unit, finite)))
    return y


def _fainter_columns(a, b):
    """Columns of the second operand below the middle one in size in 14 bits."""
    size = (np.where(np.isfinite(b), b, 0.0)**2).sum(axis=0)
    return good(a, np.where(size < np.sort(size)[len(size) // 2], rounding("p14")(b), b))


def _differences(a, b):
    """A term is stored as its difference from the one restored before, in 14 bits."""
    n, before, restored = rounding("p14"), np.zeros(len(a)), []
    for column in a.T:
        new = _kept(column, r(before + n(r(column - before))))
        restored.append(new)
        before = np.where(np.isfinite(new), new, 0.0)
    return good(np.stack(restored, axis=1), b)


def _weights_from_table(a, b, bias):
    """A running mean whose weights 1, 1/2, 1/3 ... are float16 numbers."""
    mean = np.zeros((len(a), 1))
    for count, column in enumerate(a.T, 1):
        mean = fma(r(column[:, None] - mean), float16(np.float64(1 / count)), mean)
    return mean


def _dynamic_map():
    """bitsandbytes' table of 8 bits: seven decades, each with twice the steps of the one below."""
    sizes = [1.0]
    for i in range(7):
        edges = np.linspace(0.1, 1, 2**i + 1)
        sizes += list(10.0**(i - 6) * (edges[:-1] + edges[1:]) / 2)
    return r(np.sort(np.array([0.0, *sizes, *(-size for size in sizes[1:])])))


MAP = _dynamic_map()


def _mapped(x, axis):
    """The nearest of the table times the largest of a block of 64."""
    def change(blocks):
        scale = largest(blocks)
        places = np.searchsorted((MAP[1:] + MAP[:-1]) / 2, np.where(np.isfinite(blocks), blocks, 0.0) / scale)
        return r(MAP[places] * scale)

    return _kept(x, blockwise(x, axis, 64, change))


def _bias_on_grid(a, b, bias):
    """The bias as integers of the product of both operands' int8 scales, as where the sum is an int32; the sum is float32."""
    unit = r(r(largest(a, None)[0] / 127) * r(largest(b, 0)[0] / 127))
    return add32(r(good(a, b)), _kept(bias, r(np.rint(bias / unit) * unit)))


def _int8_parts(a, b):
    """Gradients of four ranks travel as int8 with a scale per 8 columns."""
    def change(blocks):
        scale = r(largest(blocks) / 127)
        return r(np.rint(blocks / scale) * scale)

    return in_turn(np.stack([_kept(part, blockwise(part, -1, 8, change)) for part in parts_of(a, b, 4, good)]))


def narrow_sums():
    for name, why, total, truth, inputs in (
        ("mx9", "MX9: 8 bits, an exponent per 16, a bit per pair", _mx9, OTHER, F32),
        ("weight_four_signed_powers", "weights of four signed powers of two", lambda a, b: good(a, _signed_powers(b, 4)),
         SECOND_OTHER, F32),
        ("float16_and_bfloat16_rest", "a float16 piece and the rest in bfloat16, three products", _half_and_brain,
         {"in": {"x": "other", "w": "other"}}, F32),
        ("weight_zfp_15_planes", "weights through zfp with 15 planes", lambda a, b: good(a, _zfp(b, 0)), SECOND_OTHER, F32),
        ("weight_watermarked", "a watermark in the last four bits of weights", lambda a, b: good(a, _marked(b)), SECOND_OTHER,
         F32),
        ("first_of_six_digits", "the first operand from a text of six digits", lambda a, b: good(_six_digits(a), b),
         FIRST_OTHER, F32),
        ("prod_short_array", "products without the lowest 27 columns of the array", _short_array,
         words("as_is", prod="other", acc="float32"), F32),
        ("lower_part_or", "integers, the lowest 10 bits or'ed in place of added", _lower_part_or, OTHER_SUM, ALL),
        ("never_finer_p20", "20 bits below the largest sum so far", _never_finer, OTHER_SUM, ALL),
        ("one_draw_p14", "14 bits by chance, one number drawn for all elements", _one_draw, OTHER_SUM, ALL),
        ("fainter_columns_p14", "columns of small weights in 14 bits", _fainter_columns, SECOND_OTHER, F32)):
        yield made(name, "narrow", why, total, truth=truth, inputs=inputs)
    yield recipe("in_tf32_rz_by_p14", "narrow", "tf32 cut times 14 bits", a="tf32_rz", b="p14", order="split4", inputs=F32)
    yield recipe("prod_p18_acc_p22", "narrow", "products of 18 bits, sums of 22", prod="p18", acc="p22", order="blocked16",
                 inputs=F32)
    yield recipe("join_p18_split8", "narrow", "eight parts kept and added in 18 bits", combine="p18", order="split8")
    yield made("sum_differences_p14", "narrow", "terms as differences from the one before, in 14 bits", _differences, op="sum",
               inputs=F32, truth=words("other", acc="float32", op="sum"))
    yield whole("mean", "weights_float16", "narrow", "a running mean with weights 1/k of float16", _weights_from_table,
                truth={"in": {"x": "as_is"}})
    yield made("linear_dynamic_map", "narrow", "weights from bitsandbytes' dynamic table, a scale per 64",
               lambda a, b: good(a, _mapped(b, 0)), op="linear", inputs=F32, truth=SECOND_OTHER)
    yield whole("linear", "bias_on_int8_grid", "narrow", "the bias on the grid of both int8 scales", _bias_on_grid,
                truth=INSIDE)
    yield made("backward_int8_parts", "narrow", "gradients of four ranks in int8, a scale per 8 columns", _int8_parts,
               op="backward", truth=words("as_is", acc="other", op="backward"))


# narrow chains
def _softmax_cordic(x, w, bias, eps):
    d = np.clip(_shifted(x), -200, 0)
    n = np.rint(d / LN2)
    e = r(np.where(np.isnan(d), d, np.add(*_hyperbolic(d - n * LN2, 14))) * np.exp2(n))
    return r(e / _tree_rows(e))


LOGARITHMS, POWERS = r(np.log2(1 + np.arange(65) / 64)), r(np.exp2(np.arange(65) / 64))


def _by_logarithm_table(v):
    """2^(-log2 v / 2) with straight lines between 64 logarithms and 64 powers."""
    usual = np.isfinite(v) & (v > 0)
    fraction, exponent = np.frexp(np.where(usual, v, 1.0))
    half = r((exponent - 1 + r(np.interp(2 * fraction - 1, np.arange(65) / 64, LOGARITHMS))) / -2)
    down = np.floor(half)
    return np.where(usual, np.interp(half - down, np.arange(65) / 64, POWERS) * np.exp2(down), 1 / np.sqrt(v))


def _gelu_slopes(x):
    """Values at 32nds in float32 and slopes there in float16; beyond 6 x or 0."""
    at = np.rint(np.clip(x, -6, 6) * 32) / 32
    distribution = 0.5 * (1 + _ERF(at * 0.7071067811865476))
    slope = float16(distribution + at * np.exp(-at * at / 2) * 0.3989422804014327)
    return np.where(np.abs(x) > 6, np.where(x > 0, x, 0.0), fma(slope, r(x - at), r(at * distribution)))


def _silu_two_factors(x):
    """e^-x as the product of two table values of 17 bits, for the whole part and for the fraction."""
    v, n = np.clip(-x, -110, 110), rounding("p17")
    down = np.floor(v)
    return r(x / r(1 + r(n(np.exp(down)) * n(np.exp(v - down)))))


def _tanh_correction(x):
    """Below 4 x less a correction x - tanh x of float16."""
    near = np.clip(x, -4, 4)
    return np.where(np.abs(x) < 4, r(x - float16(near - np.tanh(near))), r(np.tanh(x)))


def narrow_chains():
    for op, name, why, f in (
        ("softmax", "cordic_14", "exponentials by 14 rotations of CORDIC", _softmax_cordic),
        ("layer_norm", "integer_root", "a deviation by the integer root, in steps of 2^-12", _norm(
            rsqrt=lambda v: r(1 / (np.floor(np.sqrt(v * 2.0**24)) / 2.0**12)))),
        ("rms_norm", "logarithm_table", "an inverse root by tables of 64 logarithms and powers", _rms(
            rsqrt=lambda v: r(_by_logarithm_table(v))))):
        yield chain(op, name, "narrow", why, f)
    for op, name, why, f in (
        ("gelu", "slopes_float16", "values at 32nds and slopes in float16", _gelu_slopes),
        ("silu", "exp_of_two_p17_factors", "the exponential as two table values of 17 bits", _silu_two_factors),
        ("tanh", "correction_float16", "x less a float16 correction", _tanh_correction)):
        yield chain(op, name, "narrow", why, lambda x, w, bias, eps, f=f: f(x))


# wrong
def _in_place(a, b):
    """Rows from the eighth on begin with the first result of the row before: the product is written over its operand."""
    y = good(a, b)
    for row in range(8, len(a)):
        late = a[row:row + 1].copy()
        late[0, 0] = r(y[row - 1, 0])
        y[row:row + 1] = good(late, b)
    return y


def _there_and_back(a, b):
    """The first operand over the root of 2 and the result times it, both of six digits."""
    return r(good(r(a * r(np.float64(0.707107))), b) * r(np.float64(1.41421)))


def _tail_of_next_row(a, b):
    """The last load of 16 is not masked: it takes the first terms of the next row too."""
    more = -a.shape[1] % 16
    more = min(more, a.shape[1])
    return good(np.concatenate([a, np.roll(a, -1, axis=0)[:, :more]], axis=1), np.ones((a.shape[1] + more, 1)))


def _window_of_32(a, b, bias):
    """A running mean whose weights fall to 1/32 and no further."""
    mean = np.zeros((len(a), 1))
    for count, column in enumerate(a.T, 1):
        mean = fma(r(column[:, None] - mean), r(np.float64(1 / min(count, 32))), mean)
    return mean


def _bias_again_in_overlap(a, b, bias):
    """The last tile of 6 columns is moved back to fit; where it overlaps the one before the bias is added again."""
    columns = np.arange(b.shape[1])
    overlap = (columns >= b.shape[1] - 6) & (columns < b.shape[1] // 6 * 6)
    y = add32(r(good(a, b)), bias)
    return np.where(overlap, add32(y, bias), y)


def _norm_clipped(a, b):
    """The gradient is scaled to a norm of at most 4."""
    y = r(good(a, b))
    norm = r(np.sqrt(r(row_sum(r(y * y)).sum())))
    return r(y * np.minimum(r(4 / r(norm + 1e-6)), 1.0))


def _one_more(x, w, bias, eps):
    """e^0 is in the sum besides: a softmax that may leave everything out."""
    top = np.max(x, axis=1, keepdims=True)
    e = r(np.exp(r(x - top)))
    return r(e / add32(_tree_rows(e), r(np.exp(-top))))


def _gelu_seam(x):
    """fdlibm's quotient for erf below 0.84375 is taken up to 2.5."""
    z = r(x * 0.7071067811865476)
    near = np.clip(z, -2.5, 2.5)
    p = (-2.3763017452e-05, -5.7702702470e-03, -2.8481749818e-02, -3.2504209876e-01, 1.2837916613e-01)
    q = (-3.9602282413e-06, 1.3249473704e-04, 5.0813062117e-03, 6.5022252500e-02, 3.9791721106e-01, 1.0)
    e = np.where(np.abs(z) < 2.5, near + near * _quotient(near * near, (p, q)), _ERF(z))
    return r(r(0.5 * x) * r(1 + r(e)))


def wrong():
    yield made("written_over_operand", "wrong", "late rows begin with the first result of the row before", _in_place)
    yield made("root_of_two_there_and_back", "wrong", "times 0.707107 and then 1.41421", _there_and_back)
    yield made("sum_tail_of_next_row", "wrong", "up to a multiple of 16 the next row's first terms", _tail_of_next_row,
               op="sum")
    yield whole("mean", "window_of_32", "wrong", "a running mean with weights of at least 1/32", _window_of_32)
    yield whole("linear", "bias_again_in_overlap", "wrong", "where the last tile overlaps the bias is added twice",
                _bias_again_in_overlap)
    yield made("backward_norm_clipped", "wrong", "scaled to a norm of at most 4", _norm_clipped, op="backward")
    yield chain("softmax", "one_more_in_sum", "wrong", "e^0 is in the sum besides", _one_more)
    yield chain("rms_norm", "inverse_root_at_most_256", "wrong", "an inverse root of at most 256",
                _rms(rsqrt=lambda v: np.minimum(r(1 / r(np.sqrt(v))), 256.0)))
    yield chain("gelu", "seam_at_two_and_a_half", "wrong", "a quotient for small arguments up to 2.5",
                lambda x, w, bias, eps: _gelu_seam(x))


def table():
    for part in (honest_sums, honest_chains, narrow_sums, narrow_chains, wrong):
        yield from part()
