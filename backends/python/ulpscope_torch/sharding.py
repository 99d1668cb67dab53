"""`fsdp_linear`, whatever the framework's FSDP: the wrapped layers of one program, by the names of their parameters."""

import torch

from ulpscope_adapter import Unsupported
from ulpscope_torch import ops


class ShardedLinears:
    """A weight that is used again goes through the layer it has."""
    def __init__(self):
        self._layers = {}  # names of the parameters -> (attributes, wrapped layer)

    def __len__(self):
        return len(self._layers)

    def wrap(self, layer, names, compute, reduce):
        """(the wrapped layer, the parameters that it trains), for a torch.nn.Linear and two dtypes."""
        raise NotImplementedError

    def layer(self, step, env):
        """The wrapped layer of an `fsdp_linear` step; its parameters take their names in `env`."""
        names = tuple(step.of[1:])
        made = self._layers.get(names)
        if made is not None:
            if made[0] != step.attrs:
                raise Unsupported(f"fsdp_linear: {names[0]} is wrapped already, with other dtypes")
            return made[1]
        for name in names:
            if any(name in others for others in self._layers):
                raise Unsupported(f"fsdp_linear: {name} is a parameter of another layer already")
            if not (env[name].is_leaf and env[name].requires_grad):
                raise Unsupported(f"fsdp_linear: {name} is no leaf that requires a gradient")
        compute = ops.DTYPES[step.attrs["compute_dtype"]]
        reduce = ops.DTYPES[step.attrs.get("reduce_dtype", step.attrs["compute_dtype"])]
        wrapped, parameters = self.wrap(_linear([env[name] for name in names]), names, compute, reduce)
        self._layers[names] = (step.attrs, wrapped)
        env.update(zip(names, parameters))
        return wrapped


def _linear(parameters):
    rows, columns = parameters[0].shape
    layer = torch.nn.Linear(columns, rows, bias=len(parameters) == 2, device="meta")
    layer.weight = torch.nn.Parameter(parameters[0].detach())
    if len(parameters) == 2:
        layer.bias = torch.nn.Parameter(parameters[1].detach())
    return layer
