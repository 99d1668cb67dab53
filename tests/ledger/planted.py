"""Plain PyTorch in float32 as a backend; the result of the step that the knob `at` names is rounded to bfloat16 and widened again. What a
cast that the knob `fused` names is given is what later steps read: they were fused with it."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch
from again import TORCH, compute
from ulpscope_adapter import Adapter, Result, serve
from ulpscope_torch.values import to_wire


class Planted(Adapter):
    def __init__(self):
        self.at = self.fused = "no"

    def configure(self, backend, device, knobs):
        self.at, self.fused = knobs.get("at", "no"), knobs.get("fused", "no")

    def capabilities(self):
        attributes = {"softmax": ["dim"], "layer_norm": ["normalized_shape", "eps"], "cast": ["dtype"]}
        steps = ["no", *(f"v{i}" for i in range(12))]
        return {"name": "planted", "backends": ["planted"], "versions": {"torch": torch.__version__},
                "knobs": {"threads": ["1"], "at": steps, "fused": steps}, "dtypes": ["float32", "bfloat16"],
                "ops": {name: attributes.get(name, []) for name in TORCH}}

    def run(self, request):
        values = {tensor.name: torch.from_numpy(tensor.numpy().copy()) for tensor in request.tensors}
        stored = {}
        for step in request.steps:
            value = compute(step, values)
            values[step.name] = stored[step.name] = value.to(torch.bfloat16).to(torch.float32) if step.name == self.at else value
            if step.name == self.fused:
                values[step.name] = values[step.of[0]]
        return Result({name: to_wire(stored[name]) for name in request.observe})

    def read_back(self):
        return {"threads": "1", "at": self.at, "fused": self.fused}


if __name__ == "__main__":
    serve(Planted())
