"""The emulator of programs as a backend: each name of plans.BACKENDS plants its own fault in every program that it is given.

A case runs opened under its id and `~opened`: the plan follows from the id without that, so observing more changes no bits, but in the
family opened_changes. With keep=FOLDER the inputs of each program are kept there, for the truth.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import emulator
import numpy
import plans
from arithmetic import OPS, VIEWS
from ulpscope_adapter import Adapter, Result, serve
from ulpscope_adapter.tensor import write_safetensors

ATTRIBUTES = {"softmax": ["dim", "dtype"], "layer_norm": ["normalized_shape", "eps"], "sum": ["dim", "keepdim", "dtype"],
              "mean": ["dim", "keepdim", "dtype"], "cast": ["dtype"], "gelu": ["approximate"], "transpose": ["dim0", "dim1"],
              "reshape": ["shape"], "unsqueeze": ["dim"]}


class Emulator(Adapter):
    def __init__(self):
        self.backend, self.knobs = "honest", {}

    def configure(self, backend, device, knobs):
        self.backend, self.knobs = backend, knobs

    def capabilities(self):
        folder = self.knobs.get("keep", "")
        return {
            "name": "program-emulator",
            "backends": list(plans.BACKENDS),
            "versions": {"numpy": numpy.__version__},
            "knobs": {"threads": ["1"], "keep": ["no", *filter(os.path.isdir, [folder])]},
            "dtypes": ["float64", "float32", "float16", "bfloat16"],
            "ops": {name: ATTRIBUTES.get(name, []) for name in (*OPS, *VIEWS)}
        }

    def run(self, request):
        name = plans.program_of(request.case)
        chosen = plans.plan(self.backend, name, request.steps, {tensor.name: tensor.dtype for tensor in request.tensors})
        if plans.is_opened(request.case):
            chosen = chosen.opened()
        self.keep(name, request)
        values = emulator.run(request.steps, {tensor.name: tensor.numpy() for tensor in request.tensors}, chosen)
        return Result({name: values[name].array() for name in request.observe})

    def keep(self, name, request):
        folder = self.knobs.get("keep", "no")
        path = os.path.join(folder, f"{name}.safetensors")
        if folder != "no" and not os.path.exists(path):
            part = f"{path}.{os.getpid()}"  # several workers may write the same inputs at a time
            write_safetensors(part, {tensor.name: tensor.tensor for tensor in request.tensors})
            os.replace(part, path)

    def read_back(self):
        return {"threads": "1", "keep": self.knobs.get("keep", "no")}


if __name__ == "__main__":
    serve(Emulator())
