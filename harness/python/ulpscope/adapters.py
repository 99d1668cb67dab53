"""Queries a started adapter directly: programs on tensors that Python holds, values back as torch tensors
(backends/PROTOCOL.md)."""

import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile

from ulpscope import places

places.find_sdk()
from ulpscope_adapter.tensor import Tensor, read_safetensors, write_safetensors  # noqa: E402


class AdapterFailed(RuntimeError):
    """The adapter did not answer, or answered that it cannot; the text is its own."""


def parsed(backend):
    """(name, device, knobs) of NAME[@DEVICE][:knob=value,...]; a device may have a number (cuda:1)."""
    name, device, knobs = re.fullmatch(r"([^@:]*)(?:@([^@:]*(?::\d+)?))?(?::(.*))?", backend, re.DOTALL).groups()
    return name, device or "cpu", dict(each.split("=", 1) for each in (knobs or "").split(",") if each)


def device_of(values):
    """The device of the torch tensors among `values`, as in a backend's name: "cpu", "cuda", "cuda:1"; that of the
    first tensor that is not on the CPU."""
    import torch
    for each in values:
        if isinstance(each, torch.Tensor) and each.device.type != "cpu":
            return each.device.type + (f":{each.device.index}" if each.device.index else "")
    return "cpu"


def on(backends, device):
    """Names of backends, those without a device on `device`."""
    if device == "cpu":
        return tuple(backends)
    heads = [each.partition(":") for each in backends]
    return tuple(each if "@" in head else f"{head}@{device}{colon}{knobs}" for each, (head, colon, knobs) in zip(backends, heads))


class Link:
    """An adapter's process. `with Link("torch-eager") as link: link.run(case)`."""

    def __init__(self, backend):
        self.backend = backend
        self._runs = 0

    def __enter__(self):
        name, device, knobs = parsed(self.backend)
        self._knobs = knobs
        self._folder = tempfile.TemporaryDirectory(prefix="ulpscope-")
        ours, theirs = socket.socketpair()
        variables = {**places.environment(), "ULPSCOPE_FD": str(theirs.fileno()), "PYTHONDONTWRITEBYTECODE": "1",
                     "PYTHONPATH": str(places.root() / "backends/python"), "TORCHINDUCTOR_CACHE_DIR": _inductor_cache(),
                     "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        for each in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            variables[each] = knobs.get("threads", "1")
        log = open(os.path.join(self._folder.name, "log"), "wb")
        with theirs, log:
            self._process = subprocess.Popen(places.adapter_command(name), env=variables, pass_fds=[theirs.fileno()],
                                             cwd=self._folder.name, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        ours.settimeout(600)
        self._socket, self._lines = ours, ours.makefile("rb")
        asked = {"threads": "1", **knobs}
        hello = self._ask({"verb": "hello", "protocol": 1, "backend": name, "device": device, "knobs": asked})
        if hello["error"]:
            raise AdapterFailed(f"{self.backend}: {hello['error']}")
        return self

    def __exit__(self, *_):
        try:
            self._socket.sendall(b'{"verb": "bye"}\n')
        except OSError:
            pass
        self._lines.close()
        self._socket.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()

    def run(self, case, observe=None):
        """name -> torch tensor (None: no gradient) of what `case` observes, on the tensors that it holds."""
        self._runs += 1
        inputs, outputs = (os.path.join(self._folder.name, f"{self._runs}.{end}") for end in ("in", "out"))
        write_safetensors(inputs, {each.name: to_wire(each.tensor) for each in case.inputs})
        answer = self._ask({"verb": "run", "id": self._runs, "case": case.name, "seed": 0, "trace": False, "poison": False,
                            "program": case.wire_program(observe), "inputs": inputs, "outputs": outputs, "knobs": self._knobs})
        outcome = answer["outcome"]
        if outcome["kind"] != "completed":
            raise AdapterFailed(f"{self.backend}: {outcome['kind']}: {outcome['class']} {outcome['text']}".rstrip())
        found = {name: from_wire(tensor) for name, tensor in read_safetensors(outputs).items()}
        return {**dict.fromkeys(answer["observations"]), **found}

    def _ask(self, message):
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
            line = self._lines.readline()
        except OSError as error:
            line = b""
            del error
        if not line.endswith(b"\n"):
            log = pathlib.Path(self._folder.name, "log").read_text(encoding="utf-8", errors="replace")
            raise AdapterFailed(f"{self.backend}: the adapter went away: {log[-1000:]}")
        return json.loads(line)


def _inductor_cache():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ.get("HOME", "/tmp"), ".cache")
    return os.path.join(cache, "ulpscope", "inductor")


def row_major(tensor):
    """The elements of a torch tensor side by side. A single element may claim any stride, which contiguous() leaves as it is."""
    import torch
    if tensor._is_zerotensor():  # a gradient of zeros may have no memory
        tensor = torch.zeros(tensor.shape, dtype=tensor.dtype)
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.as_strided(flat.shape, (1, ))


def to_wire(tensor):
    """The bits of a torch tensor, row-major."""
    import torch
    flat = row_major(tensor)
    data = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    return Tensor(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), data)


def from_wire(tensor):
    """A torch tensor of these bits."""
    import torch
    dtype = getattr(torch, tensor.dtype)
    if not tensor.data:
        return torch.empty(tensor.shape, dtype=dtype)
    return torch.frombuffer(bytearray(tensor.data), dtype=torch.uint8).view(dtype).reshape(tensor.shape)
