"""CUDA devices as torch sees them."""

from ulpscope_adapter import Unsupported
from ulpscope_adapter.cuda import require_device


__all__ = ["require_device", "require_torch"]


def require_torch(device):
    """Asks torch itself, which may be built without CUDA or for another driver."""
    import torch
    if torch.version.cuda is None:
        raise Unsupported(f"no CUDA device: torch {torch.__version__} is built without CUDA")
    if not torch.cuda.is_available():
        raise Unsupported("no CUDA device: torch sees none")
    torch.cuda.set_device(int(device.partition(":")[2] or 0))  # a device without an index is refused here
