"""torch-eager where LibTorch's adapter is not: the ops of a program called from Python, one by one, as they stand.

An installed package holds no adapter that was built against its user's torch (cmake/install.cmake names this one instead). The computation
is the same: the ops are PyTorch's own either way. There is no trace of dispatched ops.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

import knobs as knob_table  # noqa: E402
from ulpscope_adapter import Adapter, Trace, serve  # noqa: E402
from ulpscope_adapter.knobs import offered, reasons  # noqa: E402
from ulpscope_torch import cuda, memory, profiled, regions  # noqa: E402
from ulpscope_torch.execution import Execution  # noqa: E402


class _Run(Execution):
    """One execution of one program: a single part that no compiler is given."""
    def cut(self, placed):
        return [regions.Part("eager", list(placed))]


class TorchEager(Adapter):
    def configure(self, backend, device, knobs):
        self._backend, self._device, self._knobs = backend, device, knobs
        if device.startswith("cuda"):
            cuda.require_device(device)
        knob_table.set_before_import(knobs)

    def capabilities(self):
        import torch
        from ulpscope_torch import ops
        return {
            "name": "torch_eager",
            "backends": ["torch-eager"],
            "versions": {
                "torch": torch.__version__
            },
            "devices": ["cpu", "cuda"] if not self._device.startswith("cuda") else ["cpu", self._device],
            "knobs": offered(self._backend, self._device),
            **ops.served(reasons(self._backend, self._device))
        }

    def start(self):
        from ulpscope_torch import ops
        if self._device.startswith("cuda"):
            cuda.require_torch(self._device)
        ops.use_device(self._device)
        knob_table.apply(self._backend, self._device, self._knobs)

    def run(self, request):
        run = _Run(request, device=self._device)
        run.execute()
        result = run.result()
        schedule = request.schedule or ((0, 1, 1) if request.timed and self._device.startswith("cuda") else ())
        if request.trace and schedule:
            trace = Trace()
            result.notes += profiled.add_profile(run, schedule, trace)
            result.nodes = trace.nodes
        if memory.WORD in request.observe:
            result.observations[memory.WORD] = memory.peak_bytes(run)
        return result

    def read_back(self):
        return knob_table.read_back(self._backend, self._device)

    def threads(self):
        import torch
        return torch.get_num_threads()


if __name__ == "__main__":
    serve(TorchEager())
