# Findings on a compiled program without instrumentation hold: every way to leave out its roundings is computed here, and the best ones
# agree.
"""usage: test_asked.py

Programs whose steps torch.compile fuses otherwise when they are observed. The harness reports which intermediates inductor rounds; here the
program is computed in float32 with each subset of its intermediates rounded, by PyTorch, op by op.
"""

import itertools
import json
import pathlib
import re
import sys
import tempfile
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "support")]
from programs import ULPSCOPE, call  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

# name: (dtype, tensors, steps); a step: (op, operands, name, attributes).
PROGRAMS = {
    "geglu": (
        "float16",
        {"x": (16, 64), "wg": (64, 128), "wu": (64, 128), "wd": (128, 64), "res": (16, 64)},
        [
            ("matmul", ["x", "wg"], "gate", {}),
            ("gelu", ["gate"], "active", {"approximate": "tanh"}),
            ("matmul", ["x", "wu"], "up", {}),
            ("mul", ["active", "up"], "h", {}),
            ("matmul", ["h", "wd"], "down", {}),
            ("add", ["down", "res"], "result", {}),
        ],
    ),
    "cosine": (
        "bfloat16",
        {"a": (256, 32), "b": (256, 32)},
        [
            ("mul", ["a", "b"], "ab", {}),
            ("sum", ["ab"], "dot", {"dim": -1}),
            ("mul", ["a", "a"], "aa", {}),
            ("sum", ["aa"], "na", {"dim": -1}),
            ("mul", ["b", "b"], "bb", {}),
            ("sum", ["bb"], "nb", {"dim": -1}),
            ("mul", ["na", "nb"], "square", {}),
            ("sqrt", ["square"], "norm", {}),
            ("div", ["dot", "norm"], "result", {}),
        ],
    ),
    "rms": (
        "bfloat16",
        {"x": (16, 128), "w": (128,)},
        [
            ("mul", ["x", "x"], "xx", {}),
            ("mean", ["xx"], "ms", {"dim": -1, "keepdim": True}),
            ("rsqrt", ["ms"], "inverse", {}),
            ("mul", ["x", "inverse"], "scaled", {}),
            ("mul", ["scaled", "w"], "result", {}),
        ],
    ),
}


def compute(steps, tensors, dtype, rounded):
    """The result with the intermediates in `rounded` rounded where they are read, everything else in float32."""
    values = {name: tensor.float() for name, tensor in tensors.items()}
    ops = {"matmul": torch.matmul, "mul": torch.mul, "add": torch.add, "div": torch.div, "sum": torch.sum, "mean": torch.mean,
           "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "gelu": torch.nn.functional.gelu}
    for op, operands, name, attributes in steps:
        value = ops[op](*[values[operand] for operand in operands], **attributes)
        values[name] = value.to(dtype).float() if name in rounded or name == "result" else value
    return values["result"].to(dtype)


def best_subsets(steps, tensors, dtype, observed):
    """Sets of rounded intermediates that give as many results bit by bit as the best one, but for a hundredth."""
    names = [name for _, _, name, _ in steps if name != "result"]
    shares = {}
    for count in range(len(names) + 1):
        for rounded in itertools.combinations(names, count):
            same = compute(steps, tensors, dtype, set(rounded)) == observed
            shares[frozenset(rounded)] = same.float().mean().item()
    best = max(shares.values())
    return best, [rounded for rounded, share in shares.items() if share >= best - 0.01]


def listed(text):
    return re.findall("`(.*?)`", text)


@unittest.skipUnless(torch, "needs torch")
class Asked(unittest.TestCase):
    def test_what_is_said_holds_of_every_best_subset(self):
        told = checked = 0
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            generator = torch.Generator().manual_seed(7)
            given, cases = {}, []
            for name, (dtype, shapes, steps) in PROGRAMS.items():
                scale = {"wg": 0.125, "wu": 0.125, "wd": 0.09}
                given[name] = {each: (torch.randn(shape, generator=generator) * scale.get(each, 1)).to(getattr(torch, dtype))
                               for each, shape in shapes.items()}
                cases.append({
                    "name": name,
                    "tensors": {each: {"dtype": dtype, "shape": list(tensor.shape), "fill": {"values": tensor.double().flatten().tolist()}}
                                for each, tensor in given[name].items()},
                    "program": [{"op": op, "of": of, "as": as_, **attributes} for op, of, as_, attributes in steps],
                    "observe": ["result"],
                })
            # JSON is YAML.
            (folder / "asked.yaml").write_text(json.dumps({"about": "What does a compiled program round?", "cases": cases}, indent=0), encoding="utf-8")
            done = call(ULPSCOPE, "run", folder / "asked.yaml", "-b", "torch-eager,torch-inductor", "-o", folder / "run", "--no-trace", cwd=folder)
            self.assertIn(done.returncode, (0, 1), done.stderr[-3000:])
            report = json.loads((folder / "run/report.json").read_text(encoding="utf-8"))
            for result in report["results"]:
                name = result["id"].rpartition("/")[2]
                if result["backend"] != "torch-inductor" or "result" not in result["values"]:
                    continue
                label = result["values"]["result"]["label"]
                says = re.match(r"(rounds no intermediate|rounds no intermediate but (?P<but>.*?)|does not round (?P<no>.*?));", label)
                if not says:
                    continue
                told += 1
                dtype, _, steps = PROGRAMS[name]
                observed = torch.compile(lambda tensors, steps=steps, dtype=dtype: run_as_written(steps, tensors))(given[name])
                share, best = best_subsets(steps, given[name], getattr(torch, dtype), observed)
                self.assertGreaterEqual(share, 0.98, name)
                for rounded in best:
                    if says["but"]:
                        self.assertLessEqual(set(listed(says["but"])), rounded, f"{name}: {label}")
                    if says["no"]:
                        self.assertFalse(set(listed(says["no"])) & rounded, f"{name}: {label}, yet {sorted(rounded)}")
                    checked += 1
                if says[0].startswith("rounds nothing on"):
                    self.assertIn(frozenset(), best, f"{name}: {label}")
        self.assertGreater(told, 0, f"nothing was said of any program: {done.stdout[-3000:]}")
        print(f"{told} programs of {len(PROGRAMS)}, {checked} subsets of roundings that give the same bits")


def run_as_written(steps, tensors):
    values = dict(tensors)
    ops = {"matmul": torch.matmul, "mul": torch.mul, "add": torch.add, "div": torch.div, "sum": torch.sum, "mean": torch.mean,
           "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "gelu": torch.nn.functional.gelu}
    for op, operands, name, attributes in steps:
        values[name] = ops[op](*[values[operand] for operand in operands], **attributes)
    return values["result"]


if __name__ == "__main__":
    unittest.main()
