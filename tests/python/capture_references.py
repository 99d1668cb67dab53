"""Exact references of captured cases beside computations in float64 that share nothing with the oracle.

Each result of the computation in float64, rounded to the dtype that the case stores, is handed to the harness as what a backend of its
own computed. The judge's distance of it from the exact reference is then a fraction of a unit in the last place, or the reference is wrong.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "harness/python"), str(ROOT / "backends/python")]

import torch  # noqa: E402
from ulpscope import adapters, places  # noqa: E402
from ulpscope_adapter import Adapter, Result, serve, words  # noqa: E402
from ulpscope_adapter.tensor import read_safetensors, write_safetensors  # noqa: E402

# A number that is rounded once, to the nearest, is half a unit away at most, and one that is rounded from a float64 a little more.
MOST_ULP = 1.0
# Rounding errors of one computation grow with the unit roundoff: 2^-53 of float64 beside 2^-24 of float32 (2^-8 of bfloat16). Sums in
# another order are left a factor of 2^9.
NOISE = 2.0**-20


class Replay(Adapter):
    """Answers a case with the values that were written for it."""

    def __init__(self, folder):
        self._folder = pathlib.Path(folder)

    def capabilities(self):
        return {"name": "float64", "backends": ["float64"], "versions": {"torch": torch.__version__}, "knobs": {"threads": ["1"]},
                "dtypes": list(words.WORDS["dtypes"]), "ops": {**dict.fromkeys(words.OPS), "aten::*": None, "torch.*": None},
                "scopes": ["autocast", "no_grad", "enable_grad"], "capabilities": ["autograd", "out", "strides", "aten"],
                "observations": ["grad"]}

    def run(self, request):
        values = read_safetensors(str(self._folder / request.case.rpartition('/')[2]))
        return Result({name: values.get(name) for name in request.observe})


class References:
    """`add()` takes cases with the float64 results of their programs, `compared()` runs the harness on all of them at once."""

    def __init__(self):
        self._made = tempfile.TemporaryDirectory(prefix="ulpscope-")
        self._folder = pathlib.Path(self._made.name)
        (self._folder / "cases").mkdir()
        self._rows, self._largest = {}, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._made.cleanup()

    def add(self, row, case, wide, own):
        """`wide`: name -> the value as float64 computes it (None: no gradient), `own`: as the function gives it."""
        wide = {name: value for name, value in wide.items() if value is not None}
        if not wide or any(value.shape != own[name].shape for name, value in wide.items()):
            return
        case.name = f"{case.name[:40]}_{len(self._rows)}"  # long names are cut, and each has to be one case's
        for folder, of in (("plain", lambda name: wide[name]), ("told", lambda name: _told(wide[name], own[name], _scale(case, wide)))):
            (self._folder / folder).mkdir(exist_ok=True)
            write_safetensors(str(self._folder / folder / case.name), {name: adapters.to_wire(_stored(of(name), own[name].dtype)) for name in wide})
        case.save(self._folder / "cases" / f"{case.name}.yaml")
        self._rows[case.name] = row
        self._largest[case.name] = {name: _largest(value) for name, value in wide.items()}

    def lint(self):
        """Lines in which the harness calls one of the cases wrong; they are faults, and are compared no more."""
        done = subprocess.run([str(places.binary()), "lint", str(self._folder / "cases")], env=places.environment(), capture_output=True, text=True,
                              check=False)
        lines = (done.stdout + done.stderr).splitlines()
        wrong = [line for line in lines if ".yaml:" in line and " note" not in line and (" warning" not in line or "do not go together" in line)]
        for line in wrong:
            row = self._rows.pop(pathlib.Path(line.partition(".yaml:")[0]).name, None)
            if row is not None:
                row.ended("fault", f"the harness refuses the case: {line.partition('.yaml:')[2]}")
        return wrong

    def compared(self):
        """Fills `references` of the rows; how many values were compared. Values that do not agree are compared once more without the
        elements that float64 does not distinguish from zero."""
        self._judge("plain", sorted(self._rows))
        again = [name for name, row in self._rows.items() if any(text not in ("agrees", "none") for text in row.references.values())]
        first = {name: dict(self._rows[name].references) for name in again}
        self._judge("told", again)
        for name in again:
            self._rows[name].references.update({value: text for value, text in first[name].items() if text == "agrees"})
        return sum(text in AGREES for row in self._rows.values() for text in row.references.values())

    def _judge(self, values, names):
        if not names:
            return
        adapter, asked, out = (self._folder / f"{each}-{values}" for each in ("float64", "asked", "run"))
        adapter.write_text(f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\n"
                           f"import capture_references\ncapture_references.main({str(self._folder / values)!r})\n", encoding="utf-8")
        adapter.chmod(0o755)
        asked.mkdir()
        for name in names:
            for file in (self._folder / "cases").glob(f"{name}.*"):
                (asked / file.name).symlink_to(file)
        done = subprocess.run([str(places.binary()), "run", str(asked), "-b", "float64", "--adapter", str(adapter), "-o", str(out), "--no-steps",
                               "--no-trace", "-q", "-j", str(len(os.sched_getaffinity(0)))], env=places.environment(), capture_output=True,
                              text=True, check=False)
        report = out / "report.json"
        if not report.is_file():
            raise RuntimeError(f"the harness gives no report (exit {done.returncode}): {(done.stderr or done.stdout)[-2000:]}")
        for result in json.loads(report.read_text(encoding="utf-8"))["results"]:
            name = result["id"].rpartition("/")[2]
            said = {value: _said(found, self._largest[name].get(value, 0.0)) for value, found in result.get("values", {}).items()}
            self._rows[name].references = said or {"*": f"no value is judged: {result['status']}: {result['reason']}"}


def _stored(value, dtype):
    """A value as `dtype` holds it, rounded once: PyTorch rounds a double to float32 first, then to 16 bits."""
    if value.dtype != torch.float64 or dtype not in (torch.bfloat16, torch.float16):
        return value.to(dtype)
    return _odd(value).to(dtype)


def _odd(value):
    """Doubles as floats that round to 16 bits as the doubles do: what is lost leaves the last bit odd."""
    narrow = value.to(torch.float32)
    bits = narrow.view(torch.int32)
    beyond = narrow.double().abs() > value.abs()
    lost = (narrow.double() != value) & value.isfinite() & narrow.isfinite()
    cut = torch.where(beyond & lost, bits - 1, bits)
    return torch.where(lost, cut | 1, bits).view(torch.float32)


def _told(value, own, scale):
    """`value` with zeros where float64 does not distinguish it from zero: below the noise of its own roundings, or the remainder of numbers
    of `scale` that cancel."""
    if not value.is_floating_point():
        return value
    noise = max(NOISE * _largest(own.detach().double() - value), 2.0**-50 * scale)
    return torch.where(value.abs() < noise, torch.zeros_like(value), value)


def _scale(case, wide):
    """The largest number that goes into a computation or comes out of it."""
    return max([1.0, *(_largest(each.tensor) for each in case.inputs), *(_largest(each) for each in wide.values())])


def _largest(value):
    finite = value.detach().double()[value.detach().double().isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0


def _said(value, largest):
    """How a value's reference compares: element by element, or by the error at the largest element where numbers cancel beside it."""
    if value.get("classification") == "no_reference" or not value.get("checked"):
        return "none"
    if value["classification"] == "not_floating":
        return "agrees" if value["label"].startswith("exact: ") else value["label"]
    far, absolute = value.get("max_ulp"), value.get("max_abs")
    if far is not None and far <= MOST_ULP:
        return "agrees"
    if absolute is not None and absolute <= largest * _ROUNDING.get(value["dtype"], 0.0):
        return "agrees at the largest"
    return f"{far} ulp away ({absolute} beside {largest}; {value.get('checked')} of {value.get('elements')} elements checked)"


# Half a unit in the last place of the number 1; results in float64 are compared as float32 has them.
_ROUNDING = {"float64": 2.0**-24, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
AGREES = ("agrees", "agrees at the largest")


def main(folder):
    serve(Replay(folder))
