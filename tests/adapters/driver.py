"""Drives one adapter process with nothing but the standard library, safetensors included: code that shares nothing with the C++ SDK checks
the adapter's answers."""

import json
import os
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from adapter_process import AVX512, AdapterProcess  # noqa: E402,F401

ITEM = {
    "float64": ("F64", "d"),
    "float32": ("F32", "f"),
    "float16": ("F16", "e"),
    "bfloat16": ("BF16", None),
    "int64": ("I64", "q"),
    "int32": ("I32", "i"),
    "bool": ("BOOL", "?"),
}
NAME = {short: long for long, (short, _) in ITEM.items()}


def bfloat16_bits(value):
    """The bits of `value` rounded once to bfloat16 (nearest even) from binary64; normal results only."""
    if value == 0:
        return 0
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    keep = 52 - 7
    half = 1 << (keep - 1)
    rest = bits & ((1 << keep) - 1)
    bits >>= keep
    if rest > half or (rest == half and bits & 1):
        bits += 1
    rounded = struct.unpack("<d", struct.pack("<Q", bits << keep))[0]
    return struct.unpack("<I", struct.pack("<f", rounded))[0] >> 16


def bfloat16(value):
    return struct.unpack("<f", struct.pack("<I", bfloat16_bits(value) << 16))[0]


def float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def elements(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


class Tensor:
    """dtype (long name), shape, flat list of values."""

    def __init__(self, dtype, shape, values):
        assert len(values) == elements(shape), (shape, len(values))
        self.dtype, self.shape, self.values = dtype, list(shape), list(values)

    def encode(self):
        if self.dtype == "bfloat16":
            return struct.pack(f"<{len(self.values)}H", *map(bfloat16_bits, self.values))
        return struct.pack(f"<{len(self.values)}{ITEM[self.dtype][1]}", *self.values)

    @staticmethod
    def decode(dtype, shape, data):
        count = elements(shape)
        if dtype == "bfloat16":
            halves = struct.unpack(f"<{count}H", data)
            return Tensor(
                dtype, shape, [struct.unpack("<f", struct.pack("<I", half << 16))[0] for half in halves]
            )
        return Tensor(dtype, shape, struct.unpack(f"<{count}{ITEM[dtype][1]}", data))

    def __repr__(self):
        return f"{self.dtype}{self.shape} {self.values[:8]}"


def write_safetensors(path, tensors):
    header, blob = {}, b""
    for name, tensor in tensors.items():
        data = tensor.encode()
        header[name] = {
            "dtype": ITEM[tensor.dtype][0],
            "shape": tensor.shape,
            "data_offsets": [len(blob), len(blob) + len(data)],
        }
        blob += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + blob)


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header, blob = json.loads(file.read(length)), file.read()
    return {
        name: Tensor.decode(NAME[entry["dtype"]], entry["shape"], blob[slice(*entry["data_offsets"])])
        for name, entry in header.items()
        if name != "__metadata__"
    }


def step(op, *of, out="", name="", steps=None, **attrs):
    entry = {
        "op": op,
        "of": [operand if isinstance(operand, str) else {"scalar": operand} for operand in of],
        "out": out,
        "as": name,
        "attrs": attrs,
    }
    if steps is not None:
        entry["steps"] = steps
    return entry


class Reply:
    def __init__(self, message, tensors):
        self.message, self.tensors = message, tensors
        self.kind = message["outcome"]["kind"]
        self.error_class, self.text = message["outcome"]["class"], message["outcome"]["text"]
        self.observations, self.parts, self.casts = (
            message["observations"],
            message["parts"],
            message["casts"],
        )
        self.notes, self.knobs = message["notes"], message["knobs"]

    def __repr__(self):
        return f"{self.message} {self.tensors}"


class Adapter(AdapterProcess):
    """One worker. `environment` is all that it inherits beside what every worker does."""

    def __init__(self, command, backend, knobs=None, environment=None):
        super().__init__(command if isinstance(command, list) else [command], environment or {})
        self.knobs = knobs or {}
        self.hello = self.say_hello(backend, "cpu", self.knobs)

    write_inputs = staticmethod(write_safetensors)

    def run(self, tensors, steps, observe, requires_grad=(), strides=None, trace=True, poison=True):
        message, outputs = self.ask_run(tensors, steps, observe, requires_grad, strides, trace, self.knobs, poison)
        return Reply(message, read_safetensors(outputs) if os.path.exists(outputs) else {})

    def close(self):
        code = self.end()
        assert code == 0, f"exit code {code} after bye"
