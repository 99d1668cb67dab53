"""CUDA devices, found without paying for a framework where there is none."""

import ctypes

from ulpscope_adapter.request import Unsupported


def require_device(device):
    """Asks the driver, before a framework is imported: Unsupported, beginning "no CUDA device", without one."""
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
