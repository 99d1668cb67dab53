"""The PyTorch/XLA backends on XLA's CPU client: torch-xla (lazy tensors), torch-xla-dynamo (torch.compile).

XLA sees whole graphs and may keep more precision than they state. One worker serves one set of XLA's options, which are read when its
client starts.
"""

import os
import sys
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

import session  # noqa: E402
from ulpscope_adapter import Adapter, Unsupported, serve  # noqa: E402
from ulpscope_adapter.knobs import offered, reasons  # noqa: E402

_STACK = "*** Begin stack trace"


class TorchXla(Adapter):
    """One worker serves one of the two backends."""
    def configure(self, backend, device, knobs):
        self._backend = backend
        self._knobs = knobs
        self._session = None
        session.set_before_import(knobs)
        warnings.filterwarnings("ignore", message=".*torch_xla.*deprecated.*")

    def capabilities(self):
        import numpy
        import torch
        import torch_xla
        from ulpscope_torch import ops
        served = ops.served(reasons(self._backend, "cpu"))
        return {
            "name": "torch_xla",
            "backends": ["torch-xla", "torch-xla-dynamo"],
            "versions": {
                "torch": torch.__version__,
                "torch_xla": torch_xla.__version__,
                "numpy": numpy.__version__
            },
            "knobs": offered(self._backend, "cpu"),
            **served,
            "capabilities": ["autograd", "out", "aten"],
            "observations": ["grad", "grad_metadata_dtype"] +
                            ["grad_dtype"] * hasattr(torch.Tensor, "grad_dtype"),
            "reasons": {
                **served["reasons"],
                "strides": "XLA's tensors have no strides",
                "peak_bytes": "PyTorch/XLA's client on a CPU tells nothing of its memory",
                "grad_dtype": f"torch {torch.__version__} has no grad_dtype"
            }
        }

    def prepare(self, request):
        # The options are read once, and whether the graphs are to be written to files is one of them.
        if self._session is None:
            from ulpscope_torch import ops
            self._session = session.Session(dumps=request.trace)
            ops.use_device(str(self._session.device), asked="cpu")
            if self._backend == "torch-xla-dynamo":
                import torch._dynamo
                # A scalar of the program is a constant, as written.
                torch._dynamo.config.specialize_float = True

    def run(self, request):
        import runs
        if self._backend == "torch-xla":
            run = runs.LazyRun(request, self._session)
            run.execute()
            return run.result()
        return self._dynamo(request, runs)

    def _dynamo(self, request, runs):
        import torch._dynamo
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        run = runs.DynamoRun(request, self._session)
        try:
            run.execute()
        except torch._dynamo.exc.Unsupported as error:
            if self.root_cause(error) is error:
                raise Unsupported(f"not compiled: {str(error).splitlines()[0]}") from None
            raise
        run.require_compiled()
        return run.result()

    def read_back(self):
        values = {"threads": str(self.threads())} if self.threads() else {}
        if self._session is not None and self._session.excess_precision():
            values["xla_allow_excess_precision"] = self._session.excess_precision()
        return values

    def threads(self):
        """The threads that XLA's client started for computing, counted; 0: their number is not understood."""
        return self._session.threads if self._session is not None else 0

    def root_cause(self, error):
        while error.__cause__ or getattr(error, "inner_exception", None):
            error = error.__cause__ or error.inner_exception
        return error

    def error_text(self, error):
        # XLA appends where in its own libraries it stood, dynamo where in this adapter.
        return str(error).partition(_STACK)[0].partition("\n\nfrom user code:")[0]


if __name__ == "__main__":
    serve(TorchXla())
