"""Tensors of a program as torch tensors, and back; what the autograd engine holds about them."""

import torch

from ulpscope_adapter import Tensor, Unsupported, poison_bytes
from ulpscope_torch import ops


def from_spec(spec, parameter, device):
    """The tensor of a TensorSpec on `device`, its bits reinterpreted, in the requested layout."""
    dtype = ops.DTYPES[spec.dtype]
    # Not a view of the bytes: set_data on a view of a float32 base leaves a tensor that no compiler accepts.
    tensor = torch.empty(spec.shape, dtype=dtype)
    fill_bits(tensor, spec.tensor.data)
    if spec.strides:
        tensor = laid_out(tensor, spec.strides)
    tensor = tensor.to(device)
    if parameter:
        return torch.nn.Parameter(tensor, requires_grad=spec.requires_grad)
    return tensor.requires_grad_() if spec.requires_grad else tensor


def fill_bits(tensor, data):
    """Overwrites a contiguous tensor with row-major bytes."""
    if data:
        tensor.reshape(-1).view(torch.uint8).copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))


def laid_out(tensor, strides):
    """A copy of a tensor with other strides."""
    result = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype)
    written = result
    for dim, stride in enumerate(strides):
        if stride == 0 and tensor.shape[dim] > 1:  # one element shown many times: written once
            written, tensor = written.narrow(dim, 0, 1), tensor.narrow(dim, 0, 1)
    written.copy_(tensor)
    return result


def buffer(step, poison, device):
    """An `empty` buffer, poisoned; a bool has no pattern that is no value."""
    dtype = step.attrs["dtype"]
    tensor = torch.empty(step.attrs["shape"], dtype=ops.DTYPES[dtype])
    if poison and dtype != "bool":
        fill_bits(tensor, poison_bytes(dtype, tensor.numel()))
    return tensor.to(device)


def to_wire(tensor):
    """The bits of a tensor, as the wire carries them."""
    tensor = local(tensor)
    if tensor._is_zerotensor():  # a gradient of zeros may have no memory
        tensor = torch.zeros(tensor.shape, dtype=tensor.dtype)
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    flat = flat.as_strided(flat.shape, (1, ))  # a single element may claim any stride
    data = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    return Tensor(ops.dtype_name(tensor.dtype), tuple(tensor.shape), data)


def local(tensor):
    """The tensor, or at world size 1 the whole of a sharded one."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def module_to(tensor, dtype, overwrite):
    """nn.Module.to on a module that holds `tensor` as its one parameter: what `w` is afterwards."""
    module = torch.nn.Module()
    module.register_parameter("w", tensor)
    before = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(overwrite)
    try:
        return module.to(dtype).w
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(before)


def metadata_dtype(tensor):
    """The dtype for which the autograd engine would take a gradient of `tensor` now, or "none"."""
    if not tensor.requires_grad:
        return "none"
    edge = torch.autograd.graph.get_gradient_edge(tensor)
    return ops.dtype_name(edge.node._input_metadata[edge.output_nr].dtype)


def grad_dtype(tensor):
    """The dtype that the engine demands of a leaf's gradient; "any" when it demands none."""
    if not tensor.requires_grad:
        return "none"
    if not tensor.is_leaf:
        raise Unsupported("grad_dtype of a tensor that is no leaf: Python has no way to read it")
    return "any" if tensor.grad_dtype is None else ops.dtype_name(tensor.grad_dtype)
