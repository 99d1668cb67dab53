"""CUDA devices, found without paying for torch where there is none."""

import ctypes

from ulpscope_adapter import Unsupported


def require_device(device):
    """Asks the driver, before torch is imported: Unsupported, beginning "no CUDA device", without one."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise Unsupported("no CUDA device: there is no NVIDIA driver (libcuda.so.1)") from None
    count = ctypes.c_int(0)
    error = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if error:
        raise Unsupported(f"no CUDA device: the driver answers error {error}")
    index = device.partition(":")[2]
    if count.value <= int(index or 0):
        raise Unsupported(f"no CUDA device {device}: the driver sees {count.value}")


def require_torch(device):
    """Asks torch itself, which may be built without CUDA or for another driver."""
    import torch
    if torch.version.cuda is None:
        raise Unsupported(f"no CUDA device: torch {torch.__version__} is built without CUDA")
    if not torch.cuda.is_available():
        raise Unsupported("no CUDA device: torch sees none")
    torch.cuda.set_device(torch.device(device))
