"""A started adapter, as the harness starts one: a socket pair, a whitelisted environment, a folder of its own.

Derived classes define how tensors are written and read, so that code that shares nothing with the SDK of an adapter can check the adapter's
answers.
"""
import json
import os
import socket
import subprocess
import tempfile

# The second line masks the processor: with it, one machine stands in for a lesser one.
KEPT = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL",
        "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "ULPSCOPE_CPU_WITHOUT")
AVX512 = "avx512bw avx512cd avx512dq avx512f avx512vl"  # what a processor with AVX2 alone lacks, for ULPSCOPE_CPU_WITHOUT


class AdapterProcess:
    def __init__(self, command, environment):
        ours, theirs = socket.socketpair()
        variables = {key: os.environ[key] for key in KEPT if key in os.environ}
        variables.update(environment, ULPSCOPE_FD=str(theirs.fileno()))
        self.folder = tempfile.TemporaryDirectory(prefix="ulpscope-test-")
        with theirs, self._log("stdout", "wb") as stdout, self._log("stderr", "wb") as stderr:
            self.process = subprocess.Popen(command, env=variables, pass_fds=[theirs.fileno()], cwd=self.folder.name,
                                            stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)
        ours.settimeout(300)
        self.link, self.lines, self.runs = ours, ours.makefile("rb"), 0

    def _log(self, name, mode):
        return open(os.path.join(self.folder.name, name), mode)

    def said(self, name):
        """Its output on "stdout" or "stderr"."""
        with self._log(name, "rb") as file:
            return file.read().decode(errors="replace")

    def ask(self, message):
        self.link.sendall(json.dumps(message).encode() + b"\n")
        line = self.lines.readline()
        assert line.endswith(b"\n"), "the adapter went away; its stderr:\n" + self.said("stderr")
        return json.loads(line)

    def say_hello(self, backend, device, knobs):
        return self.ask({"verb": "hello", "protocol": 1, "backend": backend, "device": device, "knobs": knobs})

    def ask_run(self, tensors, steps, observe, requires_grad, strides, trace, knobs, poison=True):
        """The answer, and the file that the values lie in. `tensors` have a dtype and a shape; write_inputs() writes them."""
        self.runs += 1
        inputs, outputs = (os.path.join(self.folder.name, f"{self.runs}.{end}") for end in ("in", "out"))
        self.write_inputs(inputs, tensors)
        specs = [{
            "name": name,
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "strides": (strides or {}).get(name, []),
            "requires_grad": name in requires_grad
        } for name, tensor in tensors.items()]
        answer = self.ask({
            "verb": "run",
            "id": self.runs,
            "case": "test",
            "seed": 0,
            "trace": trace,
            "poison": poison,
            "program": {"tensors": specs, "steps": steps, "observe": observe},
            "inputs": inputs,
            "outputs": outputs,
            "knobs": knobs
        })
        assert answer["id"] == self.runs
        return answer, outputs

    def end(self):
        """Says bye and waits; the exit code."""
        try:
            self.link.sendall(b'{"verb": "bye"}\n')
        except OSError:
            pass
        self.lines.close()
        self.link.close()
        try:
            return self.process.wait(timeout=60)
        finally:
            self.process.kill()
            self.folder.cleanup()
