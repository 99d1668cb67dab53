"""The knob `freezing`: inductor folds and packs what it knows to be constant, which are a module's parameters.

So the operands in a weight's place become parameters of a module, and nothing requires a gradient: that is
what a model in inference is to inductor. Without this the knob would be accepted and do nothing.
"""

import torch

# Which operands of an op are weights: positions.
_WEIGHTS = {
    "linear": (1, 2),
    "layer_norm": (1, 2),
    "rms_norm": (1, ),
    "matmul": (1, ),
    "mm": (1, ),
    "bmm": (1, ),
    "addmm": (0, 2),
    "baddbmm": (0, 2),
    "aten::linear": (1, 2),
    "aten::conv1d": (1, 2),
    "aten::conv2d": (1, 2),
    "aten::batch_norm": (1, 2, 3, 4)
}


def weights(part, inputs):
    """The inputs of a region that only ever stand in a weight's place."""
    found, elsewhere = set(), set()
    for item in part.placed:
        places = _WEIGHTS.get(item.step.op, ())
        for position, operand in enumerate(item.step.of):
            (found if position in places else elsewhere).add(operand)
        elsewhere.add(item.step.out)
    return [name for name in inputs if name in found - elsewhere]


class Frozen(torch.nn.Module):
    """A region over its inputs, those at the positions `held` being parameters."""
    def __init__(self, region, held, tensors):
        super().__init__()
        self._region = region
        self._held = held
        self._count = len(tensors)
        for position in held:
            self.register_parameter(f"weight{position}",
                                    torch.nn.Parameter(tensors[position].detach(), requires_grad=False))

    def forward(self, *others):
        others = iter(others)
        return self._region(*[
            getattr(self, f"weight{position}") if position in self._held else next(others)
            for position in range(self._count)
        ])


def run(region, held, backend, tensors):
    """The region's results, compiled over everything but the weights."""
    frozen = Frozen(region, held, tensors)
    compiled = torch.compile(frozen, fullgraph=True, dynamic=False, backend=backend)
    with torch.no_grad():
        return compiled(*[tensor for position, tensor in enumerate(tensors) if position not in held])
