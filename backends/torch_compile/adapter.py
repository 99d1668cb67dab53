"""The torch.compile backends: torch-aot-eager, torch-inductor, and torch-custom for any other by its name.

A program is cut (ulpscope_torch/regions.py), its compilable part becomes one straight-line function, which
torch.compile takes whole (fullgraph, no dynamic shapes) or not at all. A result is given only with proof that
it was compiled (evidence.py).
"""

import os
import sys
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

import knobs as knob_table  # noqa: E402
import tuned  # noqa: E402
from failures import innermost  # noqa: E402
from ulpscope_adapter import Adapter, Trace, Unsupported, serve  # noqa: E402
from ulpscope_adapter.knobs import offered, reasons  # noqa: E402
from ulpscope_adapter.request import STORED  # noqa: E402
from ulpscope_torch import cuda, memory, profiled, regions  # noqa: E402
from ulpscope_torch.execution import Execution  # noqa: E402

BACKENDS = {"torch-aot-eager": "aot_eager", "torch-inductor": "inductor", "torch-custom": None}


class TorchCompile(Adapter):
    """One worker serves one of the backends."""
    def configure(self, backend, device, knobs):
        self._backend = backend
        self._compiler = BACKENDS.get(backend)  # what torch.compile takes: a name, or the function itself
        self._device = device
        self._times_kernels = self._compiler == "inductor" and device.startswith("cuda")
        self._knobs = knobs
        if device.startswith("cuda"):
            cuda.require_device(device)
        knob_table.set_before_import(knobs)
        # Inductor's first use of old TorchScript helpers warns many times; nothing else is silenced.
        warnings.filterwarnings("ignore", message=".*torch.jit.script.*")

    def capabilities(self):
        import numpy
        import torch
        from ulpscope_torch import ops
        knobs = offered(self._backend, self._device)
        if self._backend == "torch-custom":
            import custom
            name = self._knobs.get("backend_name", custom.example_backend.NAME)
            self._compiler = custom.resolve(name)
            knobs["backend_name"] = [name]
        served = ops.served(reasons(self._backend, self._device))
        if self._backend == "torch-inductor":
            served["observations"] = [*served["observations"], STORED]
        return {
            "name": "torch_compile",
            "backends": list(BACKENDS),
            "versions": {
                "torch": torch.__version__,
                "numpy": numpy.__version__
            },
            "devices": ["cpu", "cuda"] if not self._device.startswith("cuda") else ["cpu", self._device],
            "knobs": knobs,
            **served
        }

    def start(self):
        import torch
        import torch._dynamo
        import torch._functorch.config
        import torch._inductor.config
        import evidence
        from ulpscope_torch import ops
        if self._device.startswith("cuda"):
            cuda.require_torch(self._device)
        ops.use_device(self._device)
        knob_table.apply(self._backend, self._device, self._knobs)
        # Graphs are rebuilt for every case, so that their evidence exists; kernels come from the cache by source text. A kept graph may
        # also be another knob's: the caches' keys leave out which kernels of attention are enabled (torch 2.13.0: a graph made for flash
        # came back when math was requested).
        torch._inductor.config.fx_graph_cache = False
        torch._functorch.config.enable_autograd_cache = False
        torch._inductor.config.compile_threads = 1
        torch._dynamo.config.specialize_float = True  # a scalar of the program is a constant, as written
        torch._functorch.config.donated_buffer = False  # else retain_graph is refused
        if self._backend != "torch-aot-eager":
            _keep_precompiled_headers()
        self._recorder = evidence.Recorder()
        self._recorder.attach()

    def run(self, request):
        import evidence
        import torch._dynamo.exc
        self._recorder.clear(request.trace)
        if self._times_kernels:
            tuned.forget_loaded()
        if self._backend == "torch-custom":
            import custom
            custom.clear()
        try:
            run = _Run(request, self._compiler, self._device, self._knobs.get("freezing") == "true")
            run.execute()
        except torch._dynamo.exc.Unsupported as error:
            if innermost(error) is error:
                raise Unsupported(f"not compiled: {str(error).splitlines()[0]}") from None
            raise
        except torch._dynamo.exc.BackendCompilerFailed as error:
            if isinstance(innermost(error), ImportError):  # of another vendor's backend: what it needs
                raise Unsupported(f"the backend is not installed: {innermost(error)}") from None
            raise
        evidence.require_compiled(self._recorder, run.graphs, self._backend)
        result = run.result()
        if self._times_kernels:
            result.notes += tuned.notes(tuned.kernels())
        if request.trace:
            trace = Trace()
            result.notes += evidence.add_trace(self._recorder, run.graphs, trace)
            run.engine.add_to(trace)
            schedule = request.schedule or ((0, 1, 1) if request.timed and self._device.startswith("cuda") else ())
            if schedule:
                result.notes += profiled.add_profile(run, schedule, trace)
            result.nodes, result.casts = trace.nodes, trace.casts
        if self._backend == "torch-custom":
            import custom
            result.notes += custom.describe_graphs()
        if STORED in request.observe:
            result.observations[STORED] = ",".join(self._recorder.stored)
        if memory.WORD in request.observe:
            result.observations[memory.WORD] = memory.peak_bytes(run)
        return result

    def read_back(self):
        values = knob_table.read_back(self._backend, self._device)
        if self._backend == "torch-custom":
            import custom
            values["backend_name"] = custom.name_of(self._compiler)
        return values

    def threads(self):
        import torch
        return torch.get_num_threads()

    def root_cause(self, error):
        return innermost(error)

    def error_text(self, error):
        # Dynamo appends where in the traced function it stood: that is this adapter's source, not the case.
        return str(error).partition("\n\nfrom user code:")[0]


def _keep_precompiled_headers():
    """Inductor keeps the header of its C++ kernels, which takes four seconds to compile, in a folder of TMPDIR, which is this run's
    own; beside the kernels it outlives the run. Its file is named by what it was compiled from, with which flags."""
    import os
    import torch._inductor.codecache as codecache
    if os.environ.get("TORCHINDUCTOR_CACHE_DIR") and hasattr(codecache, "_HEADER_DIR"):
        codecache._HEADER_DIR = os.path.join(codecache.cache_dir(), "precompiled_headers")
        codecache._HEADER_LOCK_DIR = os.path.join(codecache._HEADER_DIR, "locks")


class _Run(Execution):
    """One execution of one program, its regions compiled by one backend of torch.compile."""
    def __init__(self, request, backend, device, freezing):
        import engine_casts
        import fsdp
        self._backend = backend
        self._freezing = freezing
        self._frozen = []
        self._sharded = fsdp.ShardedLinears(backend)
        self.engine = engine_casts.EngineCasts(request.trace)
        super().__init__(request, device=device)
        self.require_region()

    @property
    def graphs(self):
        """How many graphs the compiler has to have taken."""
        return self.regions + len(self._sharded)

    def region(self, part, bound, index):
        self._inputs = regions.interface(part, self.parts[index + 1:], self.request.observe)[0]
        self._part = part
        super().region(part, bound, index)

    def compiled(self, region):
        import torch
        if self._freezing:
            return lambda *tensors: self._run_frozen(region, tensors)
        return torch.compile(region, fullgraph=True, dynamic=False, backend=self._backend)

    def _run_frozen(self, region, tensors):
        import freezing
        import torch
        if any(tensor.requires_grad for tensor in tensors):
            self._frozen.append("freezing: a region whose inputs require gradients is not frozen")
            return torch.compile(region, fullgraph=True, dynamic=False, backend=self._backend)(*tensors)
        names = freezing.weights(self._part, self._inputs)
        self._frozen.append("freezing: held as parameters: " + (", ".join(names) or "nothing"))
        held = [position for position, name in enumerate(self._inputs) if name in names]
        return freezing.run(region, held, self._backend, tensors)

    def notes(self):
        return super().notes() + self._frozen

    def sharded(self, step):
        return self._sharded.layer(step, self.env)

    def walks(self, name, loss):
        self.engine.walks(name, loss)

    def watch(self, what):
        return self.engine.watch(what)


if __name__ == "__main__":
    serve(TorchCompile())
