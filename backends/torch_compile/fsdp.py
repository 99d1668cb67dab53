"""`fsdp_linear`: a linear layer under PyTorch's own fully sharded data parallelism, at world size 1.

The layer is compiled by the backend and then wrapped by `fully_shard`, the order that training code uses. So
the product is the backend's and every cast around it is FSDP's: eager hooks cast the input and the shard to
the compute dtype before the layer runs, and the gradient to the dtype of the reduction after it.
"""

import torch

from ulpscope_torch import sharding


class ShardedLinears(sharding.ShardedLinears):
    """Layers compiled by one backend of torch.compile."""
    def __init__(self, backend):
        super().__init__()
        self._backend = backend

    def wrap(self, layer, names, compute, reduce):
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
        compiled = torch.compile(layer, fullgraph=True, dynamic=False, backend=self._backend)
        wrapped = fully_shard(compiled, mesh=_mesh(),
                              mp_policy=MixedPrecisionPolicy(param_dtype=compute, reduce_dtype=reduce))
        return wrapped, [wrapped.weight, *([wrapped.bias] if len(names) == 2 else [])]


def _mesh():
    """A mesh of this process alone; the process group is made once and lives as long as the worker."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    if not dist.is_initialized():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    return init_device_mesh("cpu", (1, ))
