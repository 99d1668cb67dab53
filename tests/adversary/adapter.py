"""The adversary as a backend: one process serves every kernel. A case's name begins with the kernel's, then two underscores;
the knob kernel=NAME serves one kernel for all cases. With keep=FOLDER the inputs of each case are kept there, for the score.
"""

import os
import sys

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # the knob threads=1, set before NumPy loads its BLAS
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import kernels
import numpy
import ops
from kernel import Call
from products import Recipe
from ulpscope_adapter import Adapter, Result, Unsupported, serve
from ulpscope_adapter.tensor import write_safetensors
OPS = {
    "matmul": ["out_dtype"],
    "linear": [],
    "backward": ["grad"],
    "sum": ["dim", "dtype"],
    "mean": ["dim", "dtype"],
    "softmax": ["dim", "dtype"],
    "layer_norm": ["normalized_shape", "eps"],
    "rms_norm": ["normalized_shape", "eps"],
    "gelu": [],
    "silu": [],
    "tanh": []
}


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
            "knobs": {"threads": ["1"], "kernel": ["by_case", *self.kernels], "keep": ["no", *filter(os.path.isdir, [self.knobs.get("keep", "")])]},
            "dtypes": ["float32", "float16", "bfloat16"],
            "capabilities": ["autograd"],
            "observations": ["grad"],
            "ops": OPS
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
        if before == 0 and self.knobs.get("keep", "no") != "no":
            write_safetensors(os.path.join(self.knobs["keep"], request.case.rpartition("/")[2] + ".safetensors"),
                              {tensor.name: tensor.tensor for tensor in request.tensors})
        for step in request.steps:
            if step.op == "backward":
                self.gradients(request, step, values, before)
            elif kernel.op == "backward":
                values[step.name] = ops.apply(step.op, Recipe(), self.call(step, step.operands(values), before))
            elif step.op != kernel.op:
                raise Unsupported(f"{kernel.name} serves {kernel.op}, not {step.op}")
            else:
                values[step.name] = kernel.run(self.call(step, step.operands(values), before))
        return Result({name: values[name] for name in request.observe})

    def call(self, step, operands, before):
        wanted = [step.attrs[name] for name in ("out_dtype", "dtype") if name in step.attrs]
        return Call(operands=tuple(operands), dtype=wanted[0] if wanted else operands[0].dtype.name, attrs=dict(step.attrs),
                    count=before)

    def gradients(self, request, step, values, before):
        """The gradients of the linear layer whose result `step` starts from, the weight's by the kernel."""
        layer = next(each for each in request.steps if each.name == step.of[0])
        x, w = layer.operands(values)[:2]
        g = values[step.attrs["grad"]]
        values[f"{layer.of[1]}.grad"] = self.kernel(request).run(Call(operands=(x, g), dtype=w.dtype.name, attrs={},
                                                                      count=before))

    def read_back(self):
        return {"threads": "1", "kernel": self.knobs.get("kernel", "by_case")}


if __name__ == "__main__":
    serve(Adversary())
