"""Faults inside a run: deaths, silences, memory, noise, numbers, and what is left changed behind (run_faults.cc in Python)."""

import ctypes
import os
import signal
import struct
import sys
import time

from arithmetic import floats, tensor_of
from ulpscope_adapter import Cast, Tensor, TraceNode, poison_bytes

_LIBM = ctypes.CDLL("libm.so.6")
_FE_UPWARD = 0x800  # x86-64, as bits of the x87 control word; fesetround sets MXCSR too
_MXCSR = 28  # its offset in glibc's fenv_t
_FTZ_AND_DAZ = 0x8040


def hang():
    while True:
        signal.pause()


def die_of(number):
    def die(_runs):
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return die


def kill_self(_runs):
    os.kill(os.getpid(), signal.SIGKILL)


def stop(_runs):
    os.kill(os.getpid(), signal.SIGSTOP)
    hang()


def memory(_runs):
    kept = []
    # Bounded, so that a harness without a memory watch fails its test and not the machine.
    for _ in range(64):
        kept.append(bytearray(b"x") * (64 << 20))
        time.sleep(0.002)
    hang()


def child_memory(runs):
    if os.fork() == 0:
        memory(runs)
    hang()


def flood(descriptor):
    def write(_runs):
        block = b"x" * (1 << 20)
        for _ in range(1024):
            rest = memoryview(block)
            while rest:
                rest = rest[os.write(descriptor, rest):]
    return write


def orphan(_runs):
    """A process in a session of its own that keeps every descriptor open and never ends."""
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            hang()
        os._exit(0)
    os.waitpid(child, 0)


def orphan_then_die(runs):
    orphan(runs)
    die_of(signal.SIGSEGV)(runs)


def raise_error(_runs):
    raise RuntimeError("raised on request")


def raise_bytes(_runs):
    """As os.fsdecode makes it of a file name that is no UTF-8: text that no encoder takes."""
    raise RuntimeError("raised on request: \udcff\udcfe")


def out_of_memory(_runs):
    raise MemoryError("std::bad_alloc, as Python says it")


def die_unless_first(runs):
    if runs > 1:
        die_of(signal.SIGSEGV)(runs)


def temporary_files(_runs):
    with open(os.path.join(os.environ.get("TMPDIR", "."), "left-behind"), "w") as file:
        file.write("left behind\n")


def flush_subnormals(_runs):
    environment = ctypes.create_string_buffer(64)
    _LIBM.fegetenv(environment)
    (mxcsr,) = struct.unpack_from("<I", environment, _MXCSR)
    struct.pack_into("<I", environment, _MXCSR, mxcsr | _FTZ_AND_DAZ)
    _LIBM.fesetenv(environment)


def round_up(_runs):
    _LIBM.fesetround(_FE_UPWARD)


def each(result, change, dtypes=("float32", "bfloat16")):
    for name, tensor in sorted(result.values.items()):
        if tensor.dtype in dtypes:
            result.values[name] = change(tensor)


def with_data(tensor, data):
    return Tensor(tensor.dtype, tensor.shape, bytes(data))


def width(tensor):
    return 2 if tensor.dtype == "bfloat16" else 4


def spray_nan(result, _runs):
    each(result, lambda tensor: tensor_of([value if i % 2 else float("nan") for i, value in enumerate(floats(tensor))],
                                          tensor.dtype, tensor.shape))


def leave_last_unwritten(result, _runs):
    each(result, lambda tensor: with_data(tensor, tensor.data[:-width(tensor)] + poison_bytes(tensor.dtype, 1)))


def waver(result, runs):
    """Another last bit in every other run of this process."""
    if runs % 2:
        each(result, lambda tensor: with_data(tensor, bytes([tensor.data[0] ^ 1]) + tensor.data[1:]))


def answer_less(result, _runs):
    del result.values[min(result.values)]


def answer_more(result, _runs):
    result.values["unasked"] = result.values[min(result.values)]


def nan_duration(result, _runs):
    result.durations_ms["kernel"] = float("nan")


# Traces that lie, or that show what costs without need. Each stands for every float32 value of the result.


def add_node(result, kind, op, dtype, shape):
    number = len(result.nodes)
    result.nodes.append(
        TraceNode(number, "hlo", op, kind=kind, sources=(number - 1,) if number else (),
                  inputs=result.nodes[-1].outputs if number else (), outputs=((dtype, shape),)))


def add_convert(result, to, shape):
    source = result.nodes[-1].outputs[0][0]
    add_node(result, "convert", "convert", to, shape)
    result.casts.append(Cast(source, to, shape, "dot", "hlo", node=result.nodes[-1].id))


def show_rounding_that_is_none(result, _runs):
    def show(tensor):
        add_node(result, "input", "parameter", "bfloat16", tensor.shape)
        add_node(result, "product", "dot", "bfloat16", tensor.shape)
        add_convert(result, "float32", tensor.shape)
        return tensor
    each(result, show, ("float32",))


def hide_rounding(result, _runs):
    def hide(tensor):
        add_node(result, "input", "parameter", "float32", tensor.shape)
        add_node(result, "product", "dot", "float32", tensor.shape)
        rounded = floats(tensor_of(floats(tensor), "bfloat16", tensor.shape))
        return tensor_of(rounded, "float32", tensor.shape)
    each(result, hide, ("float32",))


def show_redundant_pair(result, _runs):
    def show(tensor):
        add_node(result, "input", "parameter", "bfloat16", tensor.shape)
        add_convert(result, "float32", tensor.shape)
        add_convert(result, "bfloat16", tensor.shape)
        return tensor
    each(result, show, ("float32",))


def show_node_in_itself(result, _runs):
    result.nodes = [TraceNode(1, "hlo", "fusion", parent=2), TraceNode(2, "hlo", "fusion", parent=1)]


# name: (before the run, after it), each or None
FAULTS = {
    "segv": (die_of(signal.SIGSEGV), None),
    "fpe": (die_of(signal.SIGFPE), None),
    "abort": (die_of(signal.SIGABRT), None),
    "sigkill": (kill_self, None),
    "exit0": (lambda _runs: os._exit(0), None),
    "exit3": (lambda _runs: sys.exit(3), None),
    "hang": (lambda _runs: hang(), None),
    "sigstop": (stop, None),
    "memory": (memory, None),
    "child_memory": (child_memory, None),
    "stdout_flood": (flood(1), None),
    "stderr_flood": (flood(2), None),
    "orphan": (orphan, None),
    "orphan_segv": (orphan_then_die, None),
    "raise": (raise_error, None),
    "raise_bytes": (raise_bytes, None),
    "bad_alloc": (out_of_memory, None),
    "order": (die_unless_first, None),
    "temporary_files": (temporary_files, None),
    "ftz": (flush_subnormals, None),
    "rounding": (round_up, None),
    "threads": (None, None),  # the adapter's threads() tells another number
    "nan": (None, spray_nan),
    "unwritten": (None, leave_last_unwritten),
    "nondeterministic": (None, waver),
    "answer_less": (None, answer_less),
    "answer_more": (None, answer_more),
    "nan_duration": (None, nan_duration),
    "trace_rounds": (None, show_rounding_that_is_none),
    "trace_hides": (None, hide_rounding),
    "trace_redundant": (None, show_redundant_pair),
    "trace_circle": (None, show_node_in_itself),
}
