"""The adversary as a backend: one process serves every kernel. A case's name begins with the kernel's, then two underscores;
the knob kernel=NAME serves one kernel for all cases. With keep=FOLDER the inputs of each case are kept there, for the score.
"""

import os
import sys

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # the knob threads=1, set before NumPy loads its BLAS
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import kernels
import numpy
from kernel import Call
from ulpscope_adapter import Adapter, Result, Unsupported, serve
from ulpscope_adapter.tensor import write_safetensors


class Adversary(Adapter):
    def __init__(self):
        self.kernels, self.calls, self.knobs = kernels.load(), {}, {}

    def configure(self, backend, device, knobs):
        self.knobs = knobs

    def capabilities(self):
        return {
            "name": "adversary",
            "backends": ["adversary"],
            "versions": {"numpy": numpy.__version__},
            "knobs": {"threads": ["1"], "kernel": ["by_case", *self.kernels], "keep": [self.knobs.get("keep", "no")]},
            "dtypes": ["float32", "float16", "bfloat16"],
            "ops": {"matmul": ["out_dtype"]}
        }

    def kernel(self, request):
        chosen = self.knobs.get("kernel", "by_case")
        if chosen == "by_case":
            chosen = request.case.rpartition("/")[2].partition("__")[0]
        if chosen not in self.kernels:
            raise Unsupported(f"no kernel is called {chosen}: a case is named KERNEL__CELL")
        return self.kernels[chosen]

    def run(self, request):
        kernel = self.kernel(request)
        values = {tensor.name: tensor.numpy() for tensor in request.tensors}
        before = self.calls.get(request.case, 0)
        self.calls[request.case] = before + 1
        if before == 0 and "keep" in self.knobs:
            write_safetensors(os.path.join(self.knobs["keep"], request.case.rpartition("/")[2] + ".safetensors"),
                              {tensor.name: tensor.tensor for tensor in request.tensors})
        for step in request.steps:
            if step.op != kernel.op:
                raise Unsupported(f"{kernel.name} serves {kernel.op}, not {step.op}")
            operands = tuple(step.operands(values))
            dtype = step.attrs.get("out_dtype", operands[0].dtype.name)
            call = Call(operands=operands, dtype=dtype, attrs=dict(step.attrs), count=before)
            values[step.name] = kernel.run(call)
        return Result({name: values[name] for name in request.observe})

    def read_back(self):
        return {"threads": "1", "kernel": self.knobs.get("kernel", "by_case")}


if __name__ == "__main__":
    serve(Adversary())
