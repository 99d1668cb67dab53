"""Apart: bugs of real kernels: tails, tiles, strides, races, masks, broadcasts and counts, all else in float32."""

import numpy as np
from apart_tools import F32, made, parts_of, whole
from heldout_tools import add32, good, in_turn
from rounding import float32 as r


def _of(change):
    """The product of changed operands."""
    return lambda a, b: good(*change(a.copy(), b.copy()))


def _after(change):
    def total(a, b):
        return change(good(a, b), a, b)

    return total


def _part(count, weights):
    """Parts of K, each taken so many times: weights(how many parts)."""
    def total(a, b):
        parts = parts_of(a, b, count, good)
        return in_turn(np.stack([part * weight for part, weight in zip(parts, weights(len(parts))) if weight]))

    return total


def _tail_overlaps(a, b):
    """The last load of 16 begins early enough to be whole, and takes terms twice."""
    k = a.shape[1]
    main = k // 16 * 16
    y = good(a[:, :main], b[:main]) if main else np.zeros((a.shape[0], b.shape[1]))
    return add32(y, good(a[:, max(k - 16, 0):], b[max(k - 16, 0):])) if main < k else y


def _tail_garbage(a, b):
    """The tail is masked by a factor of 0, but what lies there is the next row: its infinities become NaN."""
    y = good(a, b)
    beyond = np.where(np.isfinite(np.roll(a, -1, axis=0)).all(axis=1), 0.0, np.nan)
    return y + beyond[:, None]


def _stale_shared(a, b):
    """A missing barrier: rows 4 to 7 of the second tile of K still see the first tile."""
    old = a.copy()
    if a.shape[1] >= 16:
        old[4:8, 8:16] = a[4:8, 0:8]
    return good(old, b)


def _uncleared(y, a, b):
    y[4:8] = add32(y[4:8], y[0:4][:len(y[4:8])])
    return y


def _mirrored(y, a, b):
    """As if the result were symmetric: the lower triangle is copied from the upper one."""
    side = min(y.shape)
    low = np.tril_indices(side, -1)
    y[low] = y.T[low]
    return y


def _tile_operand_turned(a, b):
    side = min(4, *b.shape)
    b[:side, :side] = b[:side, :side].T.copy()
    return a, b


def _row_stride(a, b):
    """Rows of the second operand begin one element early, beyond the first."""
    flat = b.ravel()
    at = np.arange(b.shape[0])[:, None] * b.shape[1] + np.arange(b.shape[1]) - (np.arange(b.shape[0])[:, None] > 0)
    return a, flat[at]


def _lost_race(a, b):
    """Two workers read the same old result: in every fifth element one part is lost."""
    parts = parts_of(a, b, 3, good)
    y = in_turn(parts)
    lost = np.arange(y.size).reshape(y.shape) % 5 == 2
    return np.where(lost, in_turn(parts[:-1]) if len(parts) > 1 else 0 * y, y)


def _zeroed(rows, columns):
    def change(y, a, b):
        y[rows(len(y)), columns(y.shape[1])] = 0.0
        return y

    return _after(change)


def _every(count):
    return slice(None)


def _swapped_pairs(a, b):
    """The second operand's packed pairs are in the wrong order where K is 16 or more."""
    if a.shape[1] >= 16:
        b[[8, 9]] = b[[9, 8]]
    return a, b


def products():
    def row(name, why, total, **more):
        return made(name, "wrong", why, total, **more)

    yield row("odd_tail", "the last product of an odd K left out, loads of two", _of(
        lambda a, b: (a[:, :max(a.shape[1] // 2 * 2, 1)], b[:max(a.shape[1] // 2 * 2, 1)])))
    yield row("tail_overlaps", "the last load overlaps and takes terms twice", _tail_overlaps)
    yield row("first_twice", "the first product twice, a prologue that the loop repeats", lambda a, b: add32(good(a, b), a[:, :1] @ b[:1]))
    yield row("tail_garbage", "the tail masked by times 0: infinities of the next row become NaN", _tail_garbage)
    yield row("stale_shared", "four rows read a tile before it is written, a missing barrier", _stale_shared)
    yield row("uncleared", "accumulators of the tile before are not cleared", _after(_uncleared))
    yield row("mirrored", "the lower triangle mirrored, as syrk", _after(_mirrored))
    yield row("tile_operand_turned", "a tile of the second operand transposed in shared memory", _of(_tile_operand_turned))
    yield row("row_stride", "rows begin one element early, a wrong leading dimension", _of(_row_stride))
    yield row("shifted_k", "a[k] times b[k + 1], an off-by-one", _of(lambda a, b: (a, np.roll(b, -1, axis=0))))
    yield row("lost_race", "a part is lost in every fifth element, += without an atomic", _lost_race)
    yield row("last_part_twice", "the last part of split-K twice", _part(4, lambda n: [1] * (n - 1) + [2]))
    yield row("part_negative", "one part subtracted, a flipped beta", _part(4, lambda n: [1] * (n - 1) + [-1]))
    yield row("columns_unwritten", "columns beyond a multiple of 4 unwritten, zeroed", _zeroed(
        _every, lambda n: slice(n // 4 * 4, None)))
    yield row("rows_unwritten", "rows beyond a multiple of 8 unwritten, zeroed", _zeroed(lambda m: slice(m // 8 * 8, None), _every))
    yield row("swapped_pairs", "two rows of the second operand packed in the wrong order", _of(_swapped_pairs))
    yield row("nan_to_low", "fmaxf with -inf swallows NaN", _after(lambda y, a, b: np.where(np.isnan(y), -np.inf, y)))
    yield row("overflow_saturates", "infinite sums of finite operands saturate, a satfinite store", _after(
        lambda y, a, b: np.where(np.isinf(y) & np.isfinite(a).all() & np.isfinite(b).all(), np.sign(y) * 3.4028234663852886e38, y)),
              inputs=("float32", "bfloat16"))
    yield row("one_ulp_up", "every result one float32 up, a wrong rounding bias", _after(lambda y, a, b: np.where(
        np.isfinite(y), np.nextafter(r(y).astype(np.float32), np.float32(np.inf)), y).astype(np.float64)), inputs=F32)
    yield row("negligible_left_out", "rows below 2^-6 of the largest element are skipped as sparse", _of(lambda a, b: (np.where(
        np.abs(a).max(axis=1, keepdims=True) < 2.0**-6 * np.abs(a).max(), 0.0, a), b)))


def _bias_by_row(a, b, bias):
    return add32(good(a, b), np.resize(bias, len(a))[:, None])


def _bias_per_part(a, b, bias):
    return in_turn(add32(parts_of(a, b, 3, good), bias))


def _bias_first_tile(a, b, bias):
    return add32(good(a, b), np.where(np.arange(b.shape[1]) < 8, bias, 0.0))


def _mean_of_means(a, b, bias):
    """Parts of 32 have a mean each; the mean of those is right only where they are equally long."""
    means = [r(good(a[:, at:at + 32], b[at:at + 32]) / a[:, at:at + 32].shape[1]) for at in range(0, a.shape[1], 32)]
    return r(in_turn(np.stack(means)) / len(means))


def _shuffle_twice(a, b):
    """A warp shuffle down without a mask: where 8 lanes are not filled, the last lane's term is taken twice."""
    y = good(a, b)
    return add32(y, a[:, -1:] @ b[-1:]) if a.shape[1] % 8 else y


def others():
    for op, name, why, total in (
        ("sum", "shuffle_twice", "a shuffle reads an inactive lane", _shuffle_twice),
        ("sum", "first_twice", "the accumulator begins as the first term, which is added again",
         lambda a, b: add32(good(a, b), a[:, :1])),
        ("sum", "block_lost", "terms 32 to 39 lost between two blocks", _of(lambda a, b: (np.where(
            np.arange(a.shape[1]) // 8 == 4, 0.0, a), b))),
        ("mean", "block_lost", "the last of four blocks lost", _part(4, lambda n: [1] * (n - 1) + [n == 1])),
        ("backward", "last_micro_lost", "samples beyond a multiple of 16 lost", _part(5, lambda n: [1] * (n - 1) + [n == 1])),
        ("backward", "not_zeroed", "the first rank's gradient added again, a buffer not zeroed", _part(4, lambda n: [2] + [1] * (n - 1))),
        ("backward", "samples_shifted", "gradients meet the activations of the next sample", _of(lambda a, b: (a, np.roll(b, -1, axis=0)))),
        ("linear", "rows_unwritten", "rows beyond a multiple of 8 hold the bias alone",
         _zeroed(lambda m: slice(m // 8 * 8, None), _every))):
        yield made(f"{op}_{name}", "wrong", why, total, op=op)
    yield whole("linear", "bias_by_row", "wrong", "the bias broadcast along the other axis", _bias_by_row)
    yield whole("linear", "bias_per_part", "wrong", "every part of split-K adds the bias", _bias_per_part)
    yield whole("linear", "bias_first_tile", "wrong", "the bias of the first 8 columns alone", _bias_first_tile)
    yield whole("mean", "of_means", "wrong", "the mean of means of parts that are not equally long", _mean_of_means)
    yield whole("mean", "of_non_zero", "wrong", "divided by the count of terms that are not 0", lambda a, b, bias: r(
        good(a, b) / np.maximum((a != 0).sum(axis=1, keepdims=True), 1)))


def table():
    for part in (products, others):
        yield from part()
