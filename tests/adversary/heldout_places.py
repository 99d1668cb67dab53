"""Held out: results that are wrong in places, or stored wrongly: tiles, rows and columns mistaken, signs, ranges, subnormals."""

import numpy as np
from heldout_tools import ALL, F32, HALF, add32, good, made, recipe, words
from products import Recipe, accumulate
from rounding import STORES, bfloat16, float16, float32, rounding


def _after(change):
    """change(y, a, b) -> the results in place of y."""
    def total(a, b):
        y = good(a, b)
        return change(y.copy(), a, b)

    return total


def _rows(y, a, b):
    return y[[1, 0, *range(2, len(y))]] if len(y) > 1 else y


def _stale(y, a, b):
    y[-1] = y[len(y) // 2]
    return y


def _neighbour(y, a, b):
    y[:, y.shape[1] // 2] = y[:, y.shape[1] // 2 - 1]
    return y


def _neighbours_after(y, a, b):
    """Beyond column 8 every result is its left neighbour's."""
    y[:, 9:] = y[:, 8:-1]
    return y


def _tile_twice(y, a, b):
    """A tile of 4 by 4 is added once more."""
    y[-4:, -4:] = add32(y[-4:, -4:], y[-4:, -4:])
    return y


def _tile_turned(y, a, b):
    side = min(4, *y.shape)
    y[:side, :side] = y[:side, :side].T.copy()
    return y


def _tile_off_by_one(y, a, b):
    """The second tile of K begins one too early."""
    half = a.shape[1] // 2
    return add32(y, a[:, half - 1:half] @ b[half - 1:half]) if half else y


def _tile_missing(y, a, b):
    """The products 8 to 15 are missing from the first four rows."""
    y[:4] = good(np.where((np.arange(a.shape[1]) // 8 == 1), 0.0, a)[:4], b)
    return y


def _tile_left(y, a, b):
    y[8:16, 8:16] = 0.0
    return y


def _checkered(narrow):
    def change(y, a, b):
        rows, columns = np.indices(y.shape)
        return np.where((rows + columns) % 2 == 1, rounding(narrow)(y), y)

    return change


def _where(choose, narrow):
    """Results that are chosen go through a narrow format."""
    return lambda y, a, b: np.where(choose(y), rounding(narrow)(float32(y)), y)


def _accumulator_where(choose, acc):
    """Results that are chosen come from a narrow accumulator."""
    return lambda y, a, b: np.where(choose(y), accumulate(a, b, Recipe(acc=acc)), y)


def _turned(limit):
    """Results beyond `limit` times the usual size wrap around."""
    def change(y, a, b):
        reach = limit * np.sqrt(np.nanmean(np.where(np.isfinite(y), y, np.nan)**2))
        return np.where(np.isfinite(y) & (reach > 0), np.mod(y + reach, 2 * reach) - reach, y)

    return change


def _capped(y, a, b):
    reach = 2 * np.sqrt(np.nanmean(np.where(np.isfinite(y), y, np.nan)**2))
    return np.clip(y, -reach, reach)


def _faint_zero(y, a, b):
    """Results below 2^-8 of the usual size become zero."""
    usual = np.sqrt(np.nanmean(np.where(np.isfinite(y), y, np.nan)**2))
    return np.where(np.abs(y) < 2.0**-8 * usual, 0.0, y)


def _column_scales(y, a, b):
    """Results are stored as 8-bit integers with a scale per column."""
    top = np.where(np.isfinite(y), np.abs(y), 0.0).max(axis=0, keepdims=True)
    unit = float32(np.where(top > 0, top, 1.0) / 127.0)
    return np.where(np.isfinite(y), np.rint(y / np.where(unit > 0, unit, 1.0)) * unit, y)


def _cells(y):
    return np.indices(y.shape)


def _zero_products_skipped(a, b):
    """0 times infinity or NaN is skipped."""
    total = np.zeros((a.shape[0], b.shape[1]))
    for k in range(a.shape[1]):
        total = np.where((a[:, k, None] == 0) | (b[None, k, :] == 0), total, add32(total, a[:, k, None] * b[None, k, :]))
    return total


def _edges_low(a, b):
    """Elements outside whole tiles of 12 by 12 are computed from tf32 operands."""
    y = good(a, b)
    low = good(rounding("tf32")(a), rounding("tf32")(b))
    rows, columns = _cells(y)
    return np.where((rows >= len(y) // 12 * 12) | (columns >= y.shape[1] // 12 * 12), low, y)


def table():
    def wrong(name, why, change, **more):
        return made(name, "wrong", why, _after(change), **more)

    def narrow(name, why, change, **more):
        return made(name, "narrow", why, _after(change), **more)

    yield wrong("rows_swapped", "the first two rows exchanged", _rows)
    yield wrong("stale_row", "the last row is that of the middle", _stale)
    yield wrong("neighbour", "one column is its neighbour's", _neighbour)
    yield wrong("neighbours_after", "beyond column 8 every column is its neighbour's", _neighbours_after)
    yield wrong("tile_twice", "a tile of 4 by 4 added twice", _tile_twice)
    yield wrong("tile_turned", "a tile of 4 by 4 transposed", _tile_turned)
    yield wrong("tile_off_by_one", "the second half of K begins one too early", _tile_off_by_one)
    yield wrong("tile_missing", "products 8 to 15 missing from four rows", _tile_missing)
    yield wrong("tile_left", "a tile of 8 by 8 never written but zeroed", _tile_left)
    yield wrong("wrapped", "results beyond twice the usual size wrap around", _turned(2.0))
    yield wrong("capped", "results capped at twice the usual size", _capped)
    yield wrong("faint_zero", "results below 2^-8 of the usual size are zero", _faint_zero)
    yield wrong("minus_zero", "results of zero are negative zeros", lambda y, a, b: np.where(y == 0, -0.0, y))
    yield wrong("no_infinity", "infinite results are NaN", lambda y, a, b: np.where(np.isinf(y), np.nan, y))
    yield wrong("saturated_float16", "results beyond float16 saturate", lambda y, a, b: np.clip(y, -65504.0, 65504.0))
    yield made("zero_products_skipped", "wrong", "products with a zero skipped, NaN or not", _zero_products_skipped)
    yield narrow("subnormals_flushed", "subnormal results are zero", lambda y, a, b: np.where(
        np.abs(y) < STORES["float16"][2], np.copysign(0.0, y), y), inputs=("float16", ))
    yield narrow("quarter_bits", "results on a grid of 2^-9", lambda y, a, b: np.where(np.abs(y) < 2.0**30, np.rint(y * 512) / 512, y))
    yield narrow("stored_int8", "results in 8-bit integers with a scale per column", _column_scales)
    yield narrow("checkered_bfloat16", "every other result through bfloat16", _checkered("bfloat16"), inputs=F32 + ("float16", ))
    yield narrow("checkered_p20", "every other result through 20 bits", _checkered("p20"), inputs=F32)
    yield narrow("small_bfloat16", "results below 1 through bfloat16", _where(lambda y: np.abs(y) < 1, "bfloat16"))
    yield narrow("negative_p16", "negative results through 16 bits", _where(lambda y: y < 0, "p16"))
    yield narrow("large_float16", "results above 4 through float16", _where(lambda y: np.abs(y) > 4, "float16"))
    yield narrow("fourth_columns", "every fourth column from an accumulator of 12 bits", _accumulator_where(
        lambda y: _cells(y)[1] % 4 == 3, "p12"))
    yield narrow("positive_accumulator", "positive results from a bfloat16 accumulator", _accumulator_where(lambda y: y > 0, "bfloat16"))
    yield narrow("late_rows_p20", "rows beyond 6 from an accumulator of 20 bits", _accumulator_where(lambda y: _cells(y)[0] >= 6, "p20"))
    yield made("edges_tf32", "narrow", "what no tile of 12 by 12 holds of tf32 operands", _edges_low, inputs=F32)
    yield narrow("twice_rounded", "through 26 bits and then 16", lambda y, a, b: rounding("p16")(rounding("p26")(y)),
                 truth=words("as_is", mid="p16"))
    for name, mid, why in (("away", "bfloat16_rna", "ties away"), ("odd", "p8_rod", "to odd")):
        yield recipe(f"bfloat16_{name}", "narrow", f"through bfloat16, {why}", mid=mid, order="lanes8", inputs=F32)
    yield narrow("bfloat16_pair", "through a sum of two bfloat16 numbers", lambda y, a, b: bfloat16(y) + bfloat16(
        np.where(np.isfinite(y), y - bfloat16(y), 0.0)), truth=words("as_is", mid="other"), inputs=F32)
    yield narrow("float16_scaled_result", "through float16 at 2^-4 times the size", lambda y, a, b: float16(y / 16) * 16)
    for op, name, why, change in (("linear", "stale_row", "the last row is that of the middle", _stale),
                                  ("linear", "checkered", "every other result through bfloat16", _checkered("bfloat16")),
                                  ("backward", "neighbour", "one column is its neighbour's", _neighbour),
                                  ("backward", "tile_twice", "a tile of 4 by 4 added twice", _tile_twice),
                                  ("backward", "small_p16", "results below 1 through 16 bits", _where(lambda y: np.abs(y) < 1, "p16")),
                                  ("sum", "rows_swapped", "the first two rows exchanged", _rows),
                                  ("sum", "negative_p12", "negative results through 12 bits", _where(lambda y: y < 0, "p12")),
                                  ("mean", "stale_row", "the last row is that of the middle", _stale),
                                  ("mean", "tile_off_by_one", "the second half begins one too early", _tile_off_by_one)):
        kind = "narrow" if "through" in why else "wrong"
        yield made(f"{op}_{name}", kind, why, _after(change), op=op, inputs=F32 if name == "checkered" else ALL)
    for name, why in (("bfloat16", "the bias through bfloat16"), ("p12", "the bias through 12 bits")):
        yield made(f"linear_bias_{name}", "narrow", why, good, op="linear", bias_as=name, inputs=F32 + HALF)
    yield made("linear_scaled_before_bias", "wrong", "the product times 1 + 2^-9 before the bias", good, op="linear", scale=1 + 2.0**-9)
    yield made("mean_tenth_bits", "narrow", "sums times a bfloat16 reciprocal", lambda a, b: good(a, b) * a.shape[1] * bfloat16(
        np.float64(1 / a.shape[1])), op="mean")
    yield made("mean_padded", "wrong", "divided by the next multiple of 8", lambda a, b: good(a, b) * (
        a.shape[1] / (-(-a.shape[1] // 8) * 8)), op="mean")
