"""`fsdp_linear`: a linear layer under PyTorch's own fully sharded data parallelism, at world size 1.

The layer is compiled by the backend and then wrapped by `fully_shard`, the order that training code uses. So
the product is the backend's and every cast around it is FSDP's: eager hooks cast the input and the shard to
the compute dtype before the layer runs, and the gradient to the dtype of the reduction after it.
"""

import torch

from ulpscope_adapter import Unsupported
from ulpscope_torch import ops


class ShardedLinears:
    """The wrapped layers of one program; a weight that is used again goes through the layer it has."""
    def __init__(self, backend):
        self._backend = backend
        self._layers = {}  # names of the parameters -> (attributes, wrapped layer)

    def __len__(self):
        return len(self._layers)

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
        wrapped = self._wrap(step, [env[name] for name in names])
        self._layers[names] = (step.attrs, wrapped)
        for name, parameter in zip(names, (wrapped.weight, wrapped.bias)):
            env[name] = parameter
        return wrapped

    def _wrap(self, step, parameters):
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
        compute = ops.DTYPES[step.attrs["compute_dtype"]]
        reduce = ops.DTYPES[step.attrs.get("reduce_dtype", step.attrs["compute_dtype"])]
        rows, columns = parameters[0].shape
        layer = torch.nn.Linear(columns, rows, bias=len(parameters) == 2, device="meta")
        layer.weight = torch.nn.Parameter(parameters[0].detach())
        if len(parameters) == 2:
            layer.bias = torch.nn.Parameter(parameters[1].detach())
        compiled = torch.compile(layer, fullgraph=True, dynamic=False, backend=self._backend)
        return fully_shard(compiled, mesh=_mesh(),
                           mp_policy=MixedPrecisionPolicy(param_dtype=compute, reduce_dtype=reduce))


def _mesh():
    """A mesh of this process alone; the process group is made once and lives as long as the worker."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    if not dist.is_initialized():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    return init_device_mesh("cpu", (1, ))
