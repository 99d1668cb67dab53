"""The floating-point environment of this thread: MXCSR, and whether subnormals survive.

A library that leaves flush-to-zero on, or another rounding mode, changes the results of every later case in
the process. The harness compares the environment before and after each case.
"""

import ctypes
import platform

_X86_64_GLIBC_MXCSR = 28  # offset of __mxcsr in glibc's fenv_t on x86-64, after the 28 bytes of x87 state
_STICKY_FLAGS = 0x3F  # which exceptions have occurred: state of the past, not a mode


def _mxcsr_reader():
    if platform.machine() != "x86_64":
        return lambda: 0
    try:
        libm = ctypes.CDLL("libm.so.6")
    except OSError:
        return lambda: 0
    environment = ctypes.create_string_buffer(64)

    def read():
        libm.fegetenv(environment)
        return int.from_bytes(environment.raw[_X86_64_GLIBC_MXCSR:_X86_64_GLIBC_MXCSR + 4], "little")

    return read


_read_mxcsr = _mxcsr_reader()


def subnormals_kept():
    """False when a multiplication flushes its result (FTZ) or reads a subnormal as zero (DAZ)."""
    smallest_normal, half, quantum = float.fromhex("0x1p-1022"), 0.5, float.fromhex("0x1p-1074")
    return smallest_normal * half != 0.0 and quantum * (1.0 / float.fromhex("0x1p-1022")) != 0.0


def fp_environment(threads):
    """The wire's `fp.before` and `fp.after`; mxcsr is 0 if it cannot be read."""
    return {
        "mxcsr": _read_mxcsr() & ~_STICKY_FLAGS,
        "subnormals_kept": subnormals_kept(),
        "threads": int(threads)
    }
