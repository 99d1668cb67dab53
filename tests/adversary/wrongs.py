"""Matrix products that are wrong: something left out, added, scaled, replaced or transposed, in float32."""

import numpy as np
from kernel import Kernel
from products import Recipe, accumulate, finish
from rounding import float16

GOOD = Recipe(order="lanes8")


def _sum(a, b):
    return accumulate(a, b, GOOD)


def _kernel(name, why, change, **more):
    """change(a, b, call) -> the sum before the store, in float64."""
    def run(call):
        a, b = (np.asarray(x).astype(np.float64) for x in call.operands)
        with np.errstate(all="ignore"):
            return finish(change(a, b, call), GOOD, call.dtype)

    return Kernel(name=name, op="matmul", kind="wrong", why=why, run=run, **more)


def _without(keep):
    return lambda a, b, call: _sum(a * keep(a.shape[1]), b)


def _one(place, change):
    def changed(a, b, call):
        y = _sum(a, b).copy()
        at = place(y)
        y[at] = change(y[at])
        return y

    return changed


def _transposed(a, b, call):
    return _sum(a, b.T) if a.shape[1] == b.shape[1] and b.shape[0] == b.shape[1] else _sum(a, b[:, ::-1])


def _noisy(a, b, call):
    y = _sum(a, b)
    return y * (1 + np.random.default_rng(call.count).normal(0, 2e-7, y.shape))


def _half_partials(a, b, call):
    return float16(_sum(a * 64, b)) / 64


def table():
    yield _kernel("wrong_last_k", "the last product left out", _without(lambda k: np.arange(k) < k - 1))
    yield _kernel("wrong_first_k", "the first product left out", _without(lambda k: np.arange(k) > 0))
    yield _kernel("wrong_last_3", "the last three products left out", _without(lambda k: np.arange(k) < k - 3))
    yield _kernel("wrong_tail_8", "products beyond the last whole 8 left out", _without(lambda k: np.arange(k) < k // 8 * 8))
    yield _kernel("wrong_tail_32", "products beyond the last whole 32 left out",
                  _without(lambda k: np.arange(k) < k // 32 * 32))
    yield _kernel("wrong_twice", "one product taken twice", _without(lambda k: 1.0 + (np.arange(k) == k // 2)))
    yield _kernel("wrong_smallest", "the smallest column of the first operand left out",
                  lambda a, b, call: _sum(np.where(np.abs(a).max(0) == np.abs(a).max(0).min(), 0.0, a), b))
    yield _kernel("wrong_times_1001", "times 1.001", lambda a, b, call: _sum(a, b) * 1.001)
    for bits in (8, 12, 16, 20):
        yield _kernel(f"wrong_times_2m{bits}", f"times 1 + 2^-{bits}", lambda a, b, call,
                      bits=bits: _sum(a, b) * (1 + 2.0**-bits))
    yield _kernel("wrong_offset", "plus 2^-10", lambda a, b, call: _sum(a, b) + 2.0**-10)
    yield _kernel("wrong_offset_tiny", "plus 2^-24 of the largest result",
                  lambda a, b, call: _sum(a, b) + 2.0**-24 * np.nanmax(np.abs(_sum(a, b))))
    yield _kernel("wrong_sign", "the sign of one element turned", _one(lambda y: (-1, -1), lambda v: -v))
    yield _kernel("wrong_one", "one element is 1.5 times what it is", _one(lambda y: (y.shape[0] // 2, 0), lambda v: 1.5 * v))
    yield _kernel("wrong_one_little", "one element is off by a part in 1000", _one(lambda y: (0, -1), lambda v: 1.001 * v))
    yield _kernel("wrong_nan", "one element is NaN", _one(lambda y: (0, 0), lambda v: np.nan))
    yield _kernel("wrong_inf", "one element is infinite", _one(lambda y: (0, 0), lambda v: np.inf))
    yield _kernel("wrong_zero_column", "the last column is zero", _one(lambda y: (slice(None), -1), lambda v: 0 * v))
    yield _kernel("wrong_zero_one", "one element is zero", _one(lambda y: (-1, 0), lambda v: 0.0))
    yield _kernel("wrong_swap", "two elements exchanged", _one(lambda y: ((0, -1), (0, -1)), lambda v: v[::-1]))
    yield _kernel("wrong_transposed", "the second operand transposed, or its columns reversed", _transposed)
    yield _kernel("wrong_abs", "sizes of the first operand", lambda a, b, call: _sum(np.abs(a), b))
    yield _kernel("wrong_nan_to_zero", "NaN replaced by 0", lambda a, b,
                  call: np.nan_to_num(_sum(a, b), nan=0.0, posinf=np.inf, neginf=-np.inf))
    yield _kernel("wrong_inf_to_max", "infinities replaced by the largest float32",
                  lambda a, b, call: np.clip(_sum(a, b), -3.4028234663852886e38, 3.4028234663852886e38))
    yield _kernel("wrong_noise", "differs in the last bit from call to call", _noisy)
    yield _kernel("wrong_half_overflow", "64 times the sum is held in float16 in between", _half_partials)
    yield _kernel("wrong_cancels", "2^20 added and taken away in float32",
                  lambda a, b, call: ((_sum(a, b) + 2.0**20).astype(np.float32).astype(np.float64) - 2.0**20))
    yield _kernel("wrong_mean", "divided by K and multiplied by K - 1",
                  lambda a, b, call: _sum(a, b) * ((a.shape[1] - 1) / a.shape[1]))
    yield _kernel("wrong_relu", "negative results are zero", lambda a, b, call: np.maximum(_sum(a, b), 0.0))
    yield _kernel("wrong_squared", "an operand's largest element squared",
                  lambda a, b, call: _sum(np.where(np.abs(a) == np.abs(a).max(), a * a, a), b))
