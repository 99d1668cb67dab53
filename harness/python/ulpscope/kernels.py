"""backend(): your own functions as a backend. They run here, in the process and thread that made them.

The harness starts an adapter, as always; this one only hands over its end of the connection (a few lines of code in
a folder of its own), and the caller of check() answers the messages. So a kernel may be a lambda, hold a device, or
come from a notebook; a kernel that crashes the process crashes the caller's, as it would without ulpscope.
"""

import contextlib
import importlib
import os
import re
import select
import socket
import subprocess
import sys
import tempfile
import threading

from ulpscope import adapters, places

places.find_sdk()
from ulpscope_adapter import Adapter, Result, Unsupported, words  # noqa: E402
from ulpscope_adapter.serve import Conversation  # noqa: E402
from ulpscope_adapter.tensor import Tensor  # noqa: E402

_HAND_OVER = '''"""Hands the connection of an ulpscope adapter to the process that serves it, and ends when that closes its end."""
import os
import socket

link = socket.socket(socket.AF_UNIX)
link.connect({path!r})
socket.send_fds(link, [{name!r}.encode()], [int(os.environ["ULPSCOPE_FD"])])
os.close(int(os.environ["ULPSCOPE_FD"]))
link.recv(1)
'''


class Backend:
    """Functions by the words of the case language; made by backend()."""

    def __init__(self, name, ops, arrays="torch", device="cpu"):
        unknown = [op for op in ops if op not in words.OPS and not op.startswith("aten::")]
        if unknown:
            raise ValueError(f"no such op: {', '.join(unknown)} (`ulpscope list ops` names them)")
        if arrays not in ("torch", "numpy", "jax"):
            raise ValueError(f"arrays are torch, numpy or jax, not {arrays!r}")
        if device != "cpu" and arrays != "torch":
            raise ValueError(f"device says where torch tensors are handed over; arrays of {arrays} lie where {arrays} puts them")
        self.name, self.ops, self.arrays, self.device = name, dict(ops), arrays, device

    def adapter(self):
        """The adapter that answers the harness."""
        return _Adapter(self)

    def versions(self):
        """{module: its __version__} of the library whose arrays the functions take, and of the modules that they come from."""
        homes = [(getattr(each, "__module__", None) or type(each).__module__).partition(".")[0] for each in self.ops.values()]
        modules = [importlib.import_module(self.arrays), *(sys.modules.get(each) for each in homes)]
        return {each.__name__: str(each.__version__) for each in modules if hasattr(each, "__version__")}

    def __repr__(self):
        return f"ulpscope.backend({self.name!r}, {{{', '.join(map(repr, self.ops))}}})"


def backend(name, ops, arrays="torch", device="cpu"):
    """A backend called `name` that computes the steps named in `ops` ({"matmul": f}) by these functions, all others by
    PyTorch eager.

    A function takes the operands in the order of PyTorch's arguments, the attributes as keywords, and gives the
    result; `arrays` names their library ("torch", "numpy", "jax"), and `device` the device of the torch tensors
    ("cuda", for kernels of a GPU). `ulpscope list ops` lists the words.
    """
    return Backend(name, ops, arrays, device)


class _Adapter(Adapter):
    def __init__(self, made):
        self._made, self._told = made, set()

    def report_error(self, error):
        """A kernel that raises does so on every input: one traceback is enough."""
        if (type(error), str(error)) not in self._told:
            self._told.add((type(error), str(error)))
            super().report_error(error)

    def configure(self, backend_name, device, knobs):
        import torch
        torch.set_num_threads(int(knobs.get("threads", "1")))

    def threads(self):
        import torch
        return torch.get_num_threads()

    def capabilities(self):
        from ulpscope_torch import ops
        served = {**ops.OPS, "aten::*": None}
        served.update({op: words.OPS[op]["attributes"] for op in self._made.ops if op in words.OPS})
        return {"name": self._made.name, "backends": [self._made.name], "versions": self._made.versions(),
                "knobs": {"threads": ["1", "N"]}, "dtypes": list(ops.DTYPES), "ops": served,
                "scopes": ["autocast", "no_grad", "enable_grad"], "capabilities": ["strides", "caller"]}

    def run(self, request):
        import torch
        from ulpscope_torch import ops, regions, values
        placed, _ = regions.flatten(request.steps)
        env = {each.name: values.from_spec(each, parameter=False, device="cpu") for each in request.tensors}
        with torch.no_grad():
            for item in placed:
                step = item.step
                with ops.scopes_of(item):
                    if step.op in self._made.ops:
                        env[step.target] = self._by_kernel(step, env)
                    else:
                        ops.bind(step)(env)
        parts = {step.step.target: "kernel" if step.step.op in self._made.ops else "glue" for step in placed}
        return Result(values={name: values.to_wire(env[name]) for name in request.observe},
                      parts={name: parts[name] for name in request.observe if name in parts})

    def _by_kernel(self, step, env):
        operands = [given(each, self._made) for each in step.operands(env)]
        result = self._made.ops[step.op](*operands, **{key: _attribute(value, self._made.arrays) for key, value in step.attrs.items()})
        return _taken(result, step.op)


def given(value, made):
    """A torch tensor as an array of the kernel's library, by its bits, on the kernel's device."""
    import torch
    if not isinstance(value, torch.Tensor):
        return value
    if made.arrays == "torch":
        return value.to(made.device)
    array = adapters.to_wire(value).numpy()
    if made.arrays == "numpy":
        return array
    import jax.numpy
    return jax.numpy.asarray(array)


def _taken(result, op):
    """The kernel's result as a torch tensor of the same bits."""
    import torch
    if isinstance(result, torch.Tensor):
        return result.cpu()
    if not hasattr(result, "dtype"):
        raise TypeError(f"{op}: the kernel gave {type(result).__name__}, and an array was expected")
    return adapters.from_wire(Tensor.of(result))


def _attribute(value, arrays):
    import torch
    if not isinstance(value, str) or value not in words.WORDS["dtypes"]:
        return value
    if arrays == "torch":
        return getattr(torch, value)
    from ulpscope_adapter import numpy_dtype
    return numpy_dtype(value)


def library_of(array):
    """"torch", "numpy" or "jax", by the type of an array."""
    home = type(array).__module__.partition(".")[0]
    if home in ("torch", "numpy"):
        return home
    if home in ("jax", "jaxlib"):
        return "jax"
    raise TypeError(f"{type(array).__name__} is no array of torch, numpy or jax")


def as_torch(array):
    """An array of any of the libraries as a torch tensor of the same bits."""
    return array if library_of(array) == "torch" else adapters.from_wire(Tensor.of(array))


@contextlib.contextmanager
def served(made):
    """(paths of adapters for the harness, a function that serves them until a started process ends and gives its two outputs)."""
    if not made:
        yield [], subprocess.Popen.communicate
        return
    names = [each.name for each in made]
    if len(set(names)) < len(names):
        raise ValueError(f"two backends of one name: {', '.join(names)}")
    import torch
    threads = torch.get_num_threads()
    with tempfile.TemporaryDirectory(prefix="ulpscope-") as folder, socket.socket(socket.AF_UNIX) as listener:
        path = os.path.join(folder, "socket")
        listener.bind(path)
        listener.listen(16)
        scripts = []
        for each in made:
            scripts.append(os.path.join(folder, f"{each.name}.py"))
            with open(scripts[-1], "w", encoding="utf-8") as script:
                script.write(_HAND_OVER.format(path=path, name=each.name))
        try:
            yield scripts, lambda process: _serve(process, listener, {each.name: each for each in made})
        finally:
            torch.set_num_threads(threads)


def diagnostics(errors):
    """The messages in `errors` with a place in the style of compilers: FILE:LINE:COLUMN: TEXT."""
    return re.findall(r"(?m)^\S+:\d+:\d+: (.*)$", errors)


def called(command, backends, heard=None, seconds=None):
    """Starts `ulpscope` with the arguments `command`, -b `backends` and adapters for those that are made of functions;
    returns its exit code and its stdout and stderr. `heard` is called with each line of stderr as it comes, in
    another thread. After `seconds` the program is interrupted and reports what was judged by that time."""
    named = [each if isinstance(each, str) else each.name for each in backends]
    command = [str(places.binary()), *command, "-b", ",".join(named)]
    with served([each for each in backends if not isinstance(each, str)]) as (scripts, until_done):
        for script in scripts:
            command += ["--adapter", str(script)]
        ear, mouth = os.pipe()
        lines = []

        def listen():
            with open(ear, encoding="utf-8", errors="replace") as stderr:
                for line in stderr:
                    lines.append(line)
                    if heard is not None:
                        heard(line.rstrip())

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        try:
            process = subprocess.Popen(command, env=places.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=mouth,
                                       text=True)
        finally:
            os.close(mouth)
        late = threading.Timer(seconds, process.terminate) if seconds is not None else None
        if late is not None:
            late.start()
        try:
            printed = until_done(process)[0]
        finally:
            if late is not None:
                late.cancel()
        listener.join()
    return process.returncode, printed, "".join(lines)


def _serve(process, listener, made):
    """Answers every conversation, one message after the other, until `process` ends."""
    said, ended = [], os.pipe()

    def read():
        said.extend(process.communicate())
        os.write(ended[1], b".")

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    conversations = {}  # Conversation -> the socket that keeps its adapter's process alive
    try:
        while True:
            for ready in select.select([listener, ended[0], *conversations], [], [])[0]:
                if ready == ended[0]:
                    return said
                if ready is listener:
                    keeper, _ = listener.accept()
                    name, fds, _, _ = socket.recv_fds(keeper, 200, 1)
                    conversations[Conversation(made[name.decode()].adapter(), socket.socket(fileno=fds[0]))] = keeper
                elif ready in conversations and not _answered(ready):
                    ready.close()
                    conversations.pop(ready).close()
    finally:
        for conversation, keeper in conversations.items():
            conversation.close()
            keeper.close()
        if process.poll() is None:
            process.terminate()
        reader.join(timeout=10)
        for end in ended:
            os.close(end)


def _answered(conversation):
    try:
        return conversation.answer_one()
    except (SystemExit, OSError):
        return False


__all__ = ["Backend", "Unsupported", "as_torch", "backend", "given", "library_of", "served"]
