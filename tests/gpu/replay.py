"""Backend `h100`: products that an NVIDIA H100 computed (h100/*.safetensors: a, b, product), answered for the very inputs that it was
given, bit for bit, and for no others. The knob selects the record: two libraries got the same operands.
"""

import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parents[1] / "backends/python"))

from ulpscope_adapter import Adapter, Result, Unsupported, serve  # noqa: E402
from ulpscope_adapter.tensor import read_safetensors  # noqa: E402

RECORDS = sorted(path.stem for path in (FOLDER / "h100").glob("*.safetensors"))


class Replay(Adapter):
    def configure(self, backend, device, knobs):
        self._record = knobs.get("record", "none")

    def capabilities(self):
        return {
            "name": "h100",
            "backends": ["h100"],
            "versions": {"device": "NVIDIA H100 80GB HBM3 sm_90", "cublas": "13.1.0"},
            "devices": ["cuda"],
            "knobs": {"record": ["none", *RECORDS], "threads": ["1"]},
            "dtypes": ["float32", "bfloat16", "float16", "float8_e4m3fn"],
            "ops": {"mm": ["out_dtype"]}
        }

    def run(self, request):
        if self._record == "none":
            raise Unsupported("record=NAME says which product is meant: " + ", ".join(RECORDS))
        record = read_safetensors(FOLDER / "h100" / f"{self._record}.safetensors")
        step = request.steps[0]
        given = {tensor.name: tensor.tensor for tensor in request.tensors}
        for name, operand in zip("ab", step.of):
            if given[operand].data != record[name].data:
                raise Unsupported(f"operand {operand} is not that of record {self._record}, bit for bit")
        return Result({step.name: record["product"].numpy()}, notes=[f"replayed from record {self._record}, nothing was computed"])

    def read_back(self):
        return {"record": self._record, "threads": "1"}


if __name__ == "__main__":
    serve(Replay())
