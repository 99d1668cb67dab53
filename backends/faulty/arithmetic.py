"""Arithmetic of the Python faulty adapter when it behaves: float32 products and sums in order, each rounded; casts to bfloat16."""

import struct

from ulpscope_adapter import Tensor, Unsupported


def floats(tensor):
    """The elements, widened."""
    if tensor.dtype == "bfloat16":
        halves = struct.unpack(f"<{len(tensor.data) // 2}H", tensor.data)
        return [struct.unpack("<f", struct.pack("<I", half << 16))[0] for half in halves]
    return list(struct.unpack(f"<{len(tensor.data) // 4}f", tensor.data))


def tensor_of(values, dtype, shape):
    """A Tensor of floats that are float32 already; bfloat16 rounds them to nearest, ties to even."""
    if dtype == "float32":
        return Tensor(dtype, tuple(shape), struct.pack(f"<{len(values)}f", *values))
    halves = []
    for value in values:
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
        halves.append(bits >> 16 | 0x40 if value != value else (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
    return Tensor(dtype, tuple(shape), struct.pack(f"<{len(halves)}H", *halves))


def float32(value):
    """Rounded once: a product of two float32 is exact in float64, and a sum of two rounds to the same twice as once.

    struct.pack refuses what overflows float32; no case here comes near.
    """
    return struct.unpack("<f", struct.pack("<f", value))[0]


def matmul(a, b):
    if not isinstance(a, Tensor) or not isinstance(b, Tensor) or a.dtype != b.dtype:
        raise Unsupported("matmul of operands of two dtypes")
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[0]:
        raise Unsupported(f"matmul of {list(a.shape)} and {list(b.shape)}")
    (rows, inner), columns = a.shape, b.shape[1]
    left, right, out = floats(a), floats(b), []
    for i in range(rows):
        for j in range(columns):
            total = 0.0
            for k in range(inner):
                total = float32(total + float32(left[i * inner + k] * right[k * columns + j]))
            out.append(total)
    return tensor_of(out, a.dtype, (rows, columns))


def add(a, b):
    if not isinstance(a, Tensor) or not isinstance(b, Tensor) or (a.dtype, a.shape) != (b.dtype, b.shape):
        raise Unsupported("add of operands that differ in dtype or shape")
    return tensor_of([float32(x + y) for x, y in zip(floats(a), floats(b), strict=True)], a.dtype, a.shape)


def cast(a, dtype):
    return tensor_of(floats(a), dtype, a.shape)


OPS = {"matmul": matmul, "add": add, "cast": cast}
