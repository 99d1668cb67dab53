"""Starts an adapter as the harness does and talks to it: what the adapter tests stand on.

Programs are written as the wire carries them (backends/PROTOCOL.md); tensors are (dtype, shape, bytes).
"""

import atexit
import functools
import json
import os
import random
import struct
import sys
import tempfile
from fractions import Fraction

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "backends", "python"), os.path.join(ROOT, "tests", "support")]

from adapter_process import AdapterProcess  # noqa: E402
from programs import BIN, call  # noqa: E402
from ulpscope_adapter.tensor import Tensor, read_safetensors, write_safetensors  # noqa: E402

PYTHON = sys.executable
XLA_PYTHON = os.path.join(ROOT, ".venv-torch-xla", "bin", "python")  # ci/setup --with torch-xla
_FOLDERS = {"jax": "jax", "torch-xla": "torch_xla"}
# That of the harness (harness/run/environment.cc): what tests and runs both need is compiled once, the header of all kernels first.
_CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ.get("HOME") or tempfile.gettempdir(), ".cache")
_INDUCTOR_CACHE = os.path.join(_CACHE, "ulpscope", "inductor")


def redundant(nodes, casts):
    """For each cast of an answer, whether the harness finds in the trace that it changes no value."""
    found = call(BIN / "mark_redundant", input=json.dumps({"nodes": nodes, "casts": casts}))
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


class Adapter(AdapterProcess):
    """A running adapter. `hello` holds its answer to the hello."""
    def __init__(self, command, backend, knobs=None, device="cpu", env=None, stay_on_error=False):
        super().__init__(command, {"TORCHINDUCTOR_CACHE_DIR": _INDUCTOR_CACHE, **(env or {})})
        self.hello = self.say_hello(backend, device, knobs or {})
        if self.hello["error"] and not stay_on_error:
            raise AssertionError("hello: " + self.hello["error"])

    write_inputs = staticmethod(write_safetensors)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.exit_code = self.end()

    def run(self, tensors, steps, observe, requires_grad=(), strides=None, trace=True, knobs=None):
        """The answer of one run, with the output tensors under "values"."""
        answer, outputs = self.ask_run(tensors, steps, observe, requires_grad, strides, trace, knobs or {})
        answer["values"] = read_safetensors(outputs) if answer["outcome"]["kind"] == "completed" else {}
        expected = set(observe) - set(answer["observations"])
        if answer["outcome"]["kind"] == "completed":
            assert set(answer["values"]) == expected, (set(answer["values"]), expected)
        return answer


def start(backend, **options):
    """An adapter for a backend in Python."""
    folder = next((f for prefix, f in _FOLDERS.items() if backend.startswith(prefix)), "torch_compile")
    python = XLA_PYTHON if folder == "torch_xla" else PYTHON
    return Adapter([python, os.path.join(ROOT, "backends", folder, "adapter.py")], backend, **options)


@functools.lru_cache(maxsize=None)
def warm(backend):
    """The one worker of a backend that the tests of a file share; it ends with the tests."""
    adapter = start(backend)
    atexit.register(adapter.__exit__)
    return adapter


def step(op, *of, out="", name="", **attrs):
    """A step as the wire carries it; a number is a scalar operand, `steps` the body of a scope."""
    body = attrs.pop("steps", None)
    message = {
        "op": op,
        "of": [o if isinstance(o, str) else {
            "scalar": o
        } for o in of],
        "out": out,
        "as": name,
        "attrs": attrs
    }
    return message if body is None else {**message, "steps": body}


def bfloat16(value):
    """The bits of a float rounded to the nearest bfloat16, ties to even; from the bits of float32."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def normal(dtype, shape, seed):
    """A tensor of standard normal deviates in float32 or bfloat16."""
    generator = random.Random(seed)
    count = 1
    for extent in shape:
        count *= extent
    values = [generator.gauss(0, 1) for _ in range(count)]
    if dtype == "bfloat16":
        data = b"".join(struct.pack("<H", bfloat16(value)) for value in values)
    else:
        data = struct.pack(f"<{count}{'d' if dtype == 'float64' else 'f'}", *values)
    return Tensor(dtype, tuple(shape), data)


def values(tensor):
    """The elements as Python floats, exactly."""
    if tensor.dtype == "bfloat16":
        widened = b"".join(b"\0\0" + tensor.data[i:i + 2] for i in range(0, len(tensor.data), 2))
        return list(struct.unpack(f"<{len(widened) // 4}f", widened))
    code = {"float32": ("f", 4), "float64": ("d", 8), "float16": ("e", 2), "int64": ("q", 8), "int32": ("i", 4)}[tensor.dtype]
    return list(struct.unpack(f"<{len(tensor.data) // code[1]}{code[0]}", tensor.data))


def count_bfloat16_valued(tensor):
    """How many float32 elements have their low 16 bits zero."""
    assert tensor.dtype == "float32", tensor.dtype
    return sum(tensor.data[i:i + 2] == b"\0\0" for i in range(0, len(tensor.data), 4))


def exact_matmul(a, b):
    """The exact products of two matrices, or of two equal stacks of them, as Fractions in row-major order."""
    left, right = [Fraction(v) for v in values(a)], [Fraction(v) for v in values(b)]
    m, k = a.shape[-2:]
    n = b.shape[-1]
    batches = len(left) // (m * k)
    return [
        sum(left[(s * m + i) * k + l] * right[(s * k + l) * n + j]
            for l in range(k))
        for s in range(batches)
        for i in range(m)
        for j in range(n)
    ]


def worst_relative_error(tensor, exact):
    """max |value - exact| / max |exact|"""
    scale = max(abs(e) for e in exact)
    return float(max(abs(Fraction(v) - e) for v, e in zip(values(tensor), exact, strict=True)) / scale)


def is_product_rounded(tensor, a, b):
    """True for a float32 a @ b with bfloat16-valued elements, False for an unrounded one; anything else fails.

    The bounds are those of sums of some 50 products of random data, relative to the largest result.
    """
    elements = len(tensor.data) // 4
    zero_tails, error = count_bfloat16_valued(tensor), worst_relative_error(tensor, exact_matmul(a, b))
    assert elements == a.shape[-2] * b.shape[-1] and elements >= 1000
    if zero_tails == elements:
        assert error > 2.0**-11, error
        return True
    assert zero_tails * 20 < elements and error < 1e-6, (zero_tails, error)
    return False


def main(namespace):
    """Runs every test_* function of a module: `python3 tests/adapters/test_x.py` needs no pytest."""
    tests = [(name, f) for name, f in namespace.items() if name.startswith("test_") and callable(f)]
    failed = 0
    for name, test in tests:
        try:
            test()
            print(f"ok   {name}", flush=True)
        except Exception as error:  # report and go on
            failed += 1
            import traceback
            traceback.print_exc()
            print(f"FAIL {name}: {type(error).__name__}: {error}", flush=True)
    print(f"{len(tests) - failed} passed, {failed} failed")
    sys.exit(1 if failed or not tests else 0)
