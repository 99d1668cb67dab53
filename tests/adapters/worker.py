"""Starts an adapter as the harness does and talks to it: what the adapter tests stand on.

The process gets a whitelisted environment, one end of a socket pair, and pipes for stdout and stderr.
Programs are written as the wire carries them (backends/PROTOCOL.md); tensors are (dtype, shape, bytes).
"""

import atexit
import functools
import json
import os
import random
import socket
import struct
import subprocess
import sys
import tempfile
from fractions import Fraction

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "backends", "python"))

from ulpscope_adapter.tensor import Tensor, read_safetensors, write_safetensors  # noqa: E402

PYTHON = sys.executable
XLA_PYTHON = os.path.join(ROOT, ".venv-torch-xla", "bin", "python")  # ci/setup --with torch-xla
_FOLDERS = {"jax": "jax", "torch-xla": "torch_xla"}
_KEPT = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL")
_INDUCTOR_CACHE = os.path.join(tempfile.gettempdir(), f"ulpscope-test-inductor-{os.getuid()}")


def redundant(nodes, casts):
    """For each cast of an answer, whether the harness finds in the trace that it changes no value."""
    found = subprocess.run([os.path.join(ROOT, "build/release/bin/mark_redundant")], text=True, check=True,
                           capture_output=True, input=json.dumps({"nodes": nodes, "casts": casts}))
    return json.loads(found.stdout)


class Adapter:
    """A running adapter. `hello` holds its answer to the hello."""
    def __init__(self, command, backend, knobs=None, device="cpu", env=None, stay_on_error=False):
        ours, theirs = socket.socketpair()
        environment = {key: os.environ[key] for key in _KEPT if key in os.environ}
        environment.update(ULPSCOPE_FD=str(theirs.fileno()), TORCHINDUCTOR_CACHE_DIR=_INDUCTOR_CACHE,
                           **(env or {}))
        self._folder = tempfile.TemporaryDirectory(prefix="ulpscope-test-")
        self._stdout = open(os.path.join(self._folder.name, "stdout"), "wb+")
        self._stderr = open(os.path.join(self._folder.name, "stderr"), "wb+")
        self._process = subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()],
                                         stdin=subprocess.DEVNULL, stdout=self._stdout, stderr=self._stderr,
                                         cwd=self._folder.name)
        theirs.close()
        ours.settimeout(300)
        self._link, self._lines, self._next = ours, ours.makefile("rb"), 1
        self.hello = self.ask({
            "verb": "hello",
            "protocol": 1,
            "backend": backend,
            "device": device,
            "knobs": knobs or {}
        })
        if self.hello["error"] and not stay_on_error:
            raise AssertionError("hello: " + self.hello["error"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._link.sendall(b'{"verb": "bye"}\n')
        except OSError:
            pass
        self._link.close()
        try:
            self.exit_code = self._process.wait(timeout=60)
        finally:
            self._process.kill()
            self._stdout.close()
            self._stderr.close()
            self._folder.cleanup()

    @property
    def pid(self):
        return self._process.pid

    def ask(self, message):
        self._link.sendall(json.dumps(message).encode() + b"\n")
        line = self._lines.readline()
        if not line:
            raise AssertionError("the adapter went away; its stderr:\n" + self.stderr())
        return json.loads(line)

    def stderr(self):
        with open(self._stderr.name, "r", errors="replace") as file:
            return file.read()

    def stdout(self):
        with open(self._stdout.name, "r", errors="replace") as file:
            return file.read()

    def run(self, tensors, steps, observe, requires_grad=(), strides=None, trace=True, knobs=None):
        """The answer of one run, with the output tensors under "values"."""
        inputs, outputs = (os.path.join(self._folder.name, f"{self._next}.{end}") for end in ("in", "out"))
        write_safetensors(inputs, tensors)
        specs = [{
            "name": name,
            "dtype": t.dtype,
            "shape": list(t.shape),
            "strides": (strides or {}).get(name, []),
            "requires_grad": name in requires_grad
        } for name, t in tensors.items()]
        answer = self.ask({
            "verb": "run",
            "id": self._next,
            "case": "test",
            "seed": 0,
            "trace": trace,
            "program": {
                "tensors": specs,
                "steps": steps,
                "observe": observe
            },
            "inputs": inputs,
            "outputs": outputs,
            "knobs": knobs or {},
            "poison": True
        })
        assert answer["id"] == self._next
        self._next += 1
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
    code = {"float32": ("f", 4), "float64": ("d", 8), "float16": ("e", 2)}[tensor.dtype]
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
