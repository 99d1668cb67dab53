"""`fsdp_linear`: a layer under XlaFullyShardedDataParallel, at world size 1 and without a process group.

A shard is flat and padded to a size that divides well, so what is observed of a weight is its part of the shard.
"""

import torch

from ulpscope_adapter import Unsupported
from ulpscope_torch import ops


class ShardedLinears:
    """The wrapped layers of one program; a weight that is used again goes through the layer it has."""
    def __init__(self):
        self._layers = {}  # names of the parameters -> (attributes, wrapped layer)
        self._shapes = {}  # name -> torch.Size of the whole

    def layer(self, step, env):
        """The wrapped layer of an `fsdp_linear` step; its shards take the names of the parameters in `env`."""
        names = tuple(step.of[1:])
        if names in self._layers:
            attributes, wrapped = self._layers[names]
            if attributes != step.attrs:
                raise Unsupported(f"fsdp_linear: {names[0]} is wrapped already, with other dtypes")
            return wrapped
        for name in names:
            if name in self._shapes:
                raise Unsupported(f"fsdp_linear: {name} is a parameter of another layer already")
            if not (env[name].is_leaf and env[name].requires_grad):
                raise Unsupported(f"fsdp_linear: {name} is no leaf that requires a gradient")
        wrapped, shards = _wrap(step, [env[name] for name in names])
        self._layers[names] = (step.attrs, wrapped)
        for name, shard in zip(names, shards):
            self._shapes[name] = env[name].shape
            env[name] = shard
        return wrapped

    def whole(self, name, tensor):
        """The parameter `name`, or its gradient, out of its shard; another value as it is."""
        shape = self._shapes.get(name)
        return tensor if shape is None else tensor.detach().flatten()[:shape.numel()].view(shape)


def _wrap(step, parameters):
    from torch_xla.distributed.fsdp import XlaFullyShardedDataParallel
    compute = ops.DTYPES[step.attrs["compute_dtype"]]
    reduce = ops.DTYPES[step.attrs.get("reduce_dtype", step.attrs["compute_dtype"])]
    if reduce not in (compute, torch.float32):
        raise Unsupported("fsdp_linear: XlaFullyShardedDataParallel reduces in the compute dtype or in float32")
    rows, columns = parameters[0].shape
    layer = torch.nn.Linear(columns, rows, bias=len(parameters) == 2, device="meta")
    layer.weight = torch.nn.Parameter(parameters[0].detach())
    if len(parameters) == 2:
        layer.bias = torch.nn.Parameter(parameters[1].detach())
    wrapped = XlaFullyShardedDataParallel(layer, compute_dtype=compute, flatten_parameters=False,
                                          fp32_reduce_scatter=reduce == torch.float32)
    return wrapped, list(wrapped.sharded_params)
