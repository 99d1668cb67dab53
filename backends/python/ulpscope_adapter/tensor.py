"""Tensors as bits: dtype name, shape, row-major little-endian bytes; and safetensors files of them.

Values are never converted in transit: a framework gets the bytes and reinterprets them. A bfloat16 that travelled through float32 or
float64 would already have been through arithmetic that this project measures.
"""

import contextlib
import json
import os
import re
import struct
from dataclasses import dataclass

from ulpscope_adapter.dtypes import DTYPES

_LONG_NAMES = {row["safetensors"]: name for name, row in DTYPES.items()}
_MAX_HEADER = 16 << 20


def element_bytes(dtype):
    """Bytes of an element; for a dtype that is none of DTYPES, those of the number that ends its name (or 0)."""
    if dtype in DTYPES:
        return DTYPES[dtype]["bytes"]
    bits = re.search(r"\d+$", dtype)
    return int(bits[0]) // 8 if bits else 0


@dataclass(frozen=True)
class Tensor:
    """Row-major elements of `dtype` (a long name) as little-endian bytes."""

    dtype: str
    shape: tuple
    data: bytes

    def numpy(self):
        """A writable array over a copy of the bytes; needs the package ml_dtypes for bfloat16 and float8."""
        import numpy
        return numpy.frombuffer(bytearray(self.data), dtype=numpy_dtype(self.dtype)).reshape(self.shape)

    @staticmethod
    def of(array):
        """From anything that NumPy can view: an ndarray or a jax.Array."""
        import numpy
        array = numpy.asarray(array)
        if array.dtype.name not in DTYPES:
            raise TypeError(f"dtype {array.dtype.name} cannot be carried to the harness")
        return Tensor(array.dtype.name, tuple(array.shape), array.tobytes(order="C"))


def numpy_dtype(name):
    """The NumPy dtype of a long name."""
    import numpy
    if hasattr(numpy, name) or name == "bool":
        return numpy.dtype(name)
    import ml_dtypes  # the types that NumPy lacks
    return numpy.dtype(getattr(ml_dtypes, name))


def poison_bytes(dtype, count):
    """`count` elements with the bytes FF FA A5 A5 ..., most significant first: a NaN in every format."""
    return (b"\xff\xfa" + b"\xa5" * 6)[:DTYPES[dtype]["bytes"]][::-1] * count


def read_safetensors(path):
    """name -> Tensor. Raises ValueError when the file does not match its header."""
    with open(path, "rb") as file:
        blob = file.read()
    if len(blob) < 8:
        raise ValueError(f"{len(blob)} bytes are no safetensors file")
    (size,) = struct.unpack_from("<Q", blob)
    if size > _MAX_HEADER or 8 + size > len(blob):
        raise ValueError(f"safetensors header of {size} bytes in a file of {len(blob)}")
    tensors = {}
    for name, entry in json.loads(blob[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        dtype, shape = _LONG_NAMES[entry["dtype"]], tuple(entry["shape"])
        data = blob[8 + size + begin:8 + size + end]
        _check_size(name, dtype, shape, data)
        tensors[name] = Tensor(dtype, shape, data)
    return tensors


def write_safetensors(path, tensors):
    """Writes name -> Tensor, in the order of the names."""
    header, offset = {}, 0
    for name in sorted(tensors):
        tensor = tensors[name]
        _check_size(name, tensor.dtype, tensor.shape, tensor.data)
        end = offset + len(tensor.data)
        header[name] = {
            "dtype": DTYPES[tensor.dtype]["safetensors"],
            "shape": list(tensor.shape),
            "data_offsets": [offset, end]
        }
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the format aligns the data to 8 bytes
    try:
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for name in sorted(tensors):
                file.write(tensors[name].data)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(path)  # half a file only fills the memory that the next one needs
        raise


def _check_size(name, dtype, shape, data):
    count = 1
    for extent in shape:
        count *= extent
    size = count * DTYPES[dtype]["bytes"]
    if len(data) != size:
        raise ValueError(f"{name}: {dtype}{list(shape)} needs {size} bytes, has {len(data)}")
