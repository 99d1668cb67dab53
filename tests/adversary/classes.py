"""The class of a result, from numbers alone: the bits of a conforming order, an error like theirs, or visibly something else."""

import numpy as np

SAME, TWICE, VISIBLE = "same bits", "within twice", "visible"


def errors(y, head, tail):
    """|y - exact| where both are finite."""
    y = np.asarray(y).astype(np.float64)
    with np.errstate(all="ignore"):
        error = np.abs((y - head) - tail)
    return error[np.isfinite(y) & np.isfinite(head)]


def specials(y):
    """1 where an element is NaN, 2 and 3 where it is infinite, 0 elsewhere."""
    y = np.asarray(y).astype(np.float64)
    return np.where(np.isnan(y), 1, np.where(np.isinf(y), np.where(y > 0, 2, 3), 0))


def same_bits(y, other):
    """Equal bits, any NaN being equal to any other."""
    y, other = np.asarray(y), np.asarray(other)
    if y.dtype != other.dtype or y.shape != other.shape:
        return False
    nan = np.isnan(y.astype(np.float64))
    unsigned = f"uint{8 * y.itemsize}"
    same = np.ascontiguousarray(y).view(unsigned) == np.ascontiguousarray(other).view(unsigned)
    return bool((same | (nan & np.isnan(other.astype(np.float64)))).all())


def compare(y, honest, head, tail):
    """The class of y, and its errors in units of the worst honest order's."""
    facts = {"rms": 0.0, "max": 0.0}
    if any(same_bits(y, other) for other in honest):
        return {"class": SAME, **facts}
    if np.asarray(y).dtype != honest[0].dtype or np.asarray(y).shape != honest[0].shape:
        return {"class": VISIBLE, **facts}
    mine = specials(y)
    alike = np.any([specials(other) == mine for other in honest], axis=0).all()  # some order overflows there, another here
    worst_rms = max((_rms(errors(other, head, tail)) for other in honest), default=0.0)
    worst_max = max((errors(other, head, tail).max(initial=0.0) for other in honest), default=0.0)
    mine = errors(y, head, tail)
    facts = {"rms": _ratio(_rms(mine), worst_rms), "max": _ratio(mine.max(initial=0.0), worst_max)}
    within = bool(alike) and facts["rms"] <= 2.0 and facts["max"] <= 2.0
    return {"class": TWICE if within else VISIBLE, **facts}


def ulps(y, head, tail):
    """The largest error of float32 results, in units in the last place; infinite where one is no number and ought to be."""
    if (specials(y) != specials(head)).any():
        return np.inf
    finite = np.isfinite(np.asarray(y))
    unit = np.spacing(np.abs(np.asarray(head)[finite]).astype(np.float32)).astype(np.float64)
    return float((errors(y, head, tail) / unit).max(initial=0.0))


def _rms(error):
    """Without overflow or underflow in between."""
    largest = error.max(initial=0.0)
    return float(largest * np.sqrt(np.mean((error / largest)**2))) if largest > 0 else 0.0


def _ratio(mine, worst):
    return float(mine / worst) if worst > 0 else (0.0 if mine == 0 else float(np.finfo(np.float64).max))
