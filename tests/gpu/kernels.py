r"""Kernels of known arithmetic on a GPU, as a backend: a case's name begins with the kernel's (table.py), then two underscores.

  cases.py CASES.yaml && mkdir KEPT
  ULPSCOPE_PYTHON="$(command -v python3)" ulpscope run CASES.yaml --adapter tests/gpu/kernels.py \
    -b gpu-kernels@cuda:keep="$PWD/KEPT" --no-trace -j 4 --timeout 120 -o RUN
  score.py RUN --kept KEPT

With keep=FOLDER the inputs of each case are kept there, equal tensors once, for score.py. The device cpu is Triton's interpreter and
PyTorch on the CPU, for a look at the kernels without a GPU: its arithmetic is not that of the table.
"""

import hashlib
import importlib
import os
import re
import sys
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), "backends", "python")]

import table
from ulpscope_adapter import Adapter, Result, Tensor, Unsupported, serve
from ulpscope_adapter.tensor import write_safetensors

OPS = {"matmul": ["out_dtype"], "linear": [], "addmm": ["alpha", "out_dtype"], "sum": ["dim", "dtype"], "softmax": ["dim", "dtype"],
       "layer_norm": ["normalized_shape", "eps"], "rms_norm": ["normalized_shape", "eps"], "gelu": ["approximate"], "silu": []}


@dataclass(frozen=True)
class Call:
    """One step: operands are tensors of the device, dtype that of the result."""
    op: str
    operands: list
    dtype: object
    attrs: dict = field(default_factory=dict)


class Kernels(Adapter):
    def __init__(self):
        self.rows, self.device, self.knobs, self.torch, self.versions = table.load(), "cuda", {}, None, {}

    def configure(self, backend, device, knobs):
        self.device, self.knobs = device, knobs
        if device == "cpu":
            os.environ["TRITON_INTERPRET"] = "1"
        import torch  # where there is none, the hello says so
        import triton
        torch.set_num_threads(1)
        self.torch, self.versions = torch, {"torch": torch.__version__, "triton": triton.__version__}
        if device == "cuda" and torch.cuda.is_available():
            self.versions["device"] = torch.cuda.get_device_name()

    def capabilities(self):
        keep = self.knobs.get("keep", "no")
        return {
            "name": "gpu-kernels",
            "backends": ["gpu-kernels"],
            "versions": self.versions,
            "devices": ["cuda", "cpu"],
            "knobs": {"threads": ["1"], "keep": ["no", *filter(os.path.isdir, [keep])]},
            "dtypes": ["float32", "float16", "bfloat16", "float8_e4m3fn"],
            "ops": OPS
        }

    def prepare(self, request):
        if self.device == "cuda" and not self.torch.cuda.is_available():
            raise Unsupported("no CUDA device")

    def run(self, request):
        name = request.case.rpartition("/")[2].partition("__")[0]
        row = self.rows.get(name)
        if row is None:
            raise Unsupported(f"no kernel is called {name}: a case is named KERNEL__CELL")
        if self.device == "cpu" and not row.interpreted:
            raise Unsupported(f"{name}: not without a GPU")
        if self.knobs.get("keep", "no") != "no" and "~" not in request.case:  # what a proof adds is not scored
            self.keep(request)
        module, _, function = row.run.partition(":")
        function = getattr(importlib.import_module(module), function)
        values = {each.name: self.tensor(each.tensor) for each in request.tensors}
        for step in request.steps:
            if step.op != row.op:
                raise Unsupported(f"{name} serves {row.op}, not {step.op}")
            operands = step.operands(values)
            wanted = step.attrs.get("out_dtype") or step.attrs.get("dtype")
            dtype = getattr(self.torch, wanted) if wanted else operands[0].dtype
            with self.torch.no_grad():
                values[step.name] = function(Call(step.op, operands, dtype, dict(step.attrs)), **row.how)
        if self.device == "cuda":
            self.torch.cuda.synchronize()
        return Result({name: self.carried(values[name]) for name in request.observe})

    def tensor(self, tensor):
        torch = self.torch
        flat = torch.frombuffer(bytearray(tensor.data), dtype=torch.uint8).view(getattr(torch, tensor.dtype))
        return flat.reshape(tensor.shape).to(self.device)

    def carried(self, value):
        data = value.detach().contiguous().reshape(-1).view(self.torch.uint8).cpu().numpy().tobytes()
        return Tensor(str(value.dtype).removeprefix("torch."), tuple(value.shape), data)

    def keep(self, request):
        """CASE.txt lists which file holds which tensor: those that many cases share are there once."""
        lines = []
        for each in request.tensors:
            digest = hashlib.sha256(f"{each.dtype}{each.shape}".encode() + each.tensor.data).hexdigest()[:16]
            path = os.path.join(self.knobs["keep"], digest + ".safetensors")
            if not os.path.exists(path):
                write_safetensors(f"{path}.{os.getpid()}", {"value": each.tensor})
                os.replace(f"{path}.{os.getpid()}", path)
            lines.append(f"{each.name} {digest}\n")
        case = re.sub(r"[^\w.-]", "_", request.case.rpartition("/")[2])
        with open(os.path.join(self.knobs["keep"], case + ".txt"), "w", encoding="utf-8") as file:
            file.writelines(lines)

    def threads(self):
        return self.torch.get_num_threads() if self.torch else 1

    def read_back(self):
        return {"threads": str(self.threads()), "keep": self.knobs.get("keep", "no")}


if __name__ == "__main__":
    serve(Kernels())
