"""`fsdp_linear` under XlaFullyShardedDataParallel, at world size 1 and without a process group.

A shard is flat and padded to a size that divides well, so what is observed of a weight is its part of the shard.
"""

import torch

from ulpscope_adapter import Unsupported
from ulpscope_torch import sharding


class ShardedLinears(sharding.ShardedLinears):
    """`whole` undoes what the shards' padding adds."""
    def __init__(self):
        super().__init__()
        self._shapes = {}  # name -> torch.Size of the whole

    def wrap(self, layer, names, compute, reduce):
        from torch_xla.distributed.fsdp import XlaFullyShardedDataParallel
        if reduce not in (compute, torch.float32):
            raise Unsupported("fsdp_linear: XlaFullyShardedDataParallel reduces in the compute dtype or in float32")
        self._shapes.update(zip(names, [parameter.shape for parameter in layer.parameters()]))
        wrapped = XlaFullyShardedDataParallel(layer, compute_dtype=compute, flatten_parameters=False,
                                              fp32_reduce_scatter=reduce == torch.float32)
        return wrapped, list(wrapped.sharded_params)

    def whole(self, name, tensor):
        """The parameter `name`, or its gradient, out of its shard; another value as it is."""
        shape = self._shapes.get(name)
        return tensor if shape is None else tensor.detach().flatten()[:shape.numel()].view(shape)
