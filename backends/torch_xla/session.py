"""The XLA client of one worker: how it is started, what it compiled, what fell back to the CPU.

Options are read once per process, when the client starts. The optimised HLO has no call of its own: XLA
writes it to a folder, where it is read and deleted after each graph. A graph that XLA compiled before is not
written again, so the texts are kept by the text of the graph before.
"""

import glob
import os
import re
import tempfile

from ulpscope_adapter import Unsupported, hlo, xla

# A float32 tensor would be bfloat16 on the device, and still be called float32.
_DOWNCASTS = ("XLA_USE_BF16", "XLA_DOWNCAST_BF16", "XLA_USE_FP16", "XLA_DOWNCAST_FP16", "XLA_USE_32BIT_LONG")
_BEFORE, _AFTER = ".before_optimizations.txt", ".cpu_after_optimizations.txt"
_MODULE = re.compile(r"module_(\d+)\.")


def set_before_import(knobs):
    """Sets the variables that torch_xla and XLA read when they are imported; `begin` adds the flags."""
    for name in _DOWNCASTS:
        os.environ.pop(name, None)
    os.environ["PJRT_DEVICE"] = "CPU"
    xla.set_before_import(knobs)


class Session:
    """Started once. `dumps` is whether the optimised graphs can be had."""
    def __init__(self, dumps):
        self.dumps = dumps
        self._known = {}  # text of a graph before -> its modules
        self._options = ""
        self._folder = tempfile.mkdtemp(prefix="xla-") if dumps else ""  # TMPDIR of a worker is on tmpfs
        if dumps:
            os.environ["XLA_FLAGS"] += f" --xla_dump_to={self._folder} --xla_dump_hlo_as_text"
        import torch_xla
        before = _tasks()
        self.device = torch_xla.device()
        self._check_parameter_types()
        # The client starts two pools of `threads` threads, and two threads more (seen with 1, 2, 3 and 5).
        pools = _tasks() - before - 2
        self.threads = pools // 2 if pools > 0 and pools % 2 == 0 else 0

    def sync(self):
        import torch_xla
        torch_xla.sync(wait=True)

    def compiled(self):
        """How many graphs were compiled since the last `clear`."""
        import torch_xla.debug.metrics as metrics
        return metrics.counter_value("UncachedCompile") or 0

    def clear(self):
        import torch_xla.debug.metrics as metrics
        metrics.clear_counters()
        self.modules("")

    def fallbacks(self):
        """Operators that ran in plain torch on the CPU since the last `clear`."""
        import torch_xla.debug.metrics as metrics
        return sorted(metrics.executed_fallback_ops())

    def modules(self, graph):
        """[(HLO before, HLO after)] of what was compiled since the last call, the last one for `graph`.

        For a graph that was compiled for an earlier program, the list has that one alone; if it is empty, the graph is not known.
        """
        written = {}
        for path in glob.glob(os.path.join(self._folder, "module_*")) if self._folder else []:
            number = int(_MODULE.search(os.path.basename(path))[1])
            for which, ending in enumerate((_BEFORE, _AFTER)):
                if path.endswith(ending):
                    with open(path) as file:
                        written.setdefault(number, ["", ""])[which] = file.read()
            if path.endswith(".debug_options"):
                with open(path) as file:
                    self._options = file.read()
            os.unlink(path)
        modules = [tuple(written[number]) for number in sorted(written)]
        if modules and graph:
            self._known[graph] = modules[-1:]
        return modules or self._known.get(graph, [])

    def excess_precision(self):
        """The option as XLA wrote it down when it last compiled; "" before that."""
        if not self._options:
            return ""
        return "false" if "xla_allow_excess_precision: false" in self._options else "true"

    def _check_parameter_types(self):
        import _XLAC
        import torch
        import torch_xla
        for dtype in (torch.float32, torch.float64):
            tensor = torch.ones(2, dtype=dtype).to(self.device)
            torch_xla.sync(wait=True)
            text = _XLAC._get_xla_tensors_hlo([tensor * tensor])
            require_parameters(text, str(dtype).removeprefix("torch."))


def _tasks():
    return len(os.listdir("/proc/self/task"))


def require_parameters(text, dtype):
    """Raises Unsupported unless a graph takes parameters of `dtype` alone."""
    found = hlo.parameter_dtypes(text)
    if set(found) != {dtype}:
        raise Unsupported(f"a {dtype} tensor is {' and '.join(found) or 'nothing'} on the device")
