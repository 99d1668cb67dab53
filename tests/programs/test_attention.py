# Findings on attention as one op hold: PyTorch's kernel rounds the exponentials that weigh the values, JAX's the probabilities.
"""usage: test_attention.py

The program is computed here in NumPy from the recorded inputs, with nothing rounded inside, with the exponentials of the numerator rounded
to bfloat16, and with the probabilities rounded to it. One of the three, the one that the harness names, gives every result: at once if a
row is shorter than a vector of the processor, and else with the exponential that PyTorch's vectors take, whose relative error of 1.1e-4
moves some of them to the other neighbour in bfloat16.
"""

import json
import pathlib
import sys
import tempfile
import unittest

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parents[1] / "backends/python")]
from programs import ULPSCOPE, call  # noqa: E402

try:
    import ml_dtypes
    from ulpscope_adapter.tensor import read_safetensors
except ImportError:
    ml_dtypes = None

WIDTH, HEADS, SHARED = 16, 4, 2
SHORT, LONG = 7, 24
CASES = """# Attention as models call it: causal, heads of key and value shared.
about: What does attention round inside?
contract: {status: unspecified, accept: any}
cases:
"""
CASE = f"""  - name: of_LENGTH
    tensors:
      q: {{dtype: bfloat16, shape: [1, {HEADS}, LENGTH, {WIDTH}], fill: normal}}
      k: {{dtype: bfloat16, shape: [1, {SHARED}, LENGTH, {WIDTH}], fill: normal}}
      v: {{dtype: bfloat16, shape: [1, {SHARED}, LENGTH, {WIDTH}], fill: normal}}
    program:
      - {{op: scaled_dot_product_attention, of: [q, k, v], is_causal: true, enable_gqa: true, as: y}}
    observe: [y, q, k, v]
"""
NAMED = {"exponentials": "the exp in numerator inside rounded to bfloat16", "probabilities": "the probabilities inside rounded to bfloat16"}
TRUE = {"torch-eager": "exponentials", "torch-inductor": "exponentials", "jax": "probabilities", "jax-eager": "probabilities"}


def fast_exp(x):
    """The exponential of PyTorch's vectors for 16-bit attention (fexp_u20 in its vector headers), float32 of float32."""
    def fma(a, b, c):
        return (a.astype(np.float64) * np.float64(b) + np.float64(c)).astype(np.float32)

    with np.errstate(invalid="ignore"):
        scaled = x * np.float32(1.44269504)
        rest = scaled - np.floor(scaled)
        curve = np.float32(-0.079204240219773236)
        for number in (-0.22433836478672356, 0.30354260500649682, 0.00010703434948458272):
            curve = fma(rest, curve, np.float32(number))
        bits = fma(scaled - curve, 2.0**23, 127 * 2.0**23)
    small = ~(x >= np.float32(-87.3365447))
    return np.where(small, np.float32(0), np.where(small, 0, bits).astype(np.int32).view(np.float32))


def lanes():
    """How many exponentials PyTorch takes at once here."""
    import torch
    return {"AVX2": 8, "AVX512": 16}.get(torch.backends.cpu.get_cpu_capability())


def computed(tensors, vector=0):
    """form -> the results in bfloat16, each product and sum in float64 and rounded to float32 once; exponentials `vector` at a time."""
    def single(x):
        return x.astype(np.float32).astype(np.float64)

    def half(x):
        return x.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float64)

    q, k, v = (tensors[name] for name in "qkv")
    k, v = (np.repeat(x, HEADS // SHARED, 1) for x in (k, v))
    length = q.shape[2]
    scores = single(q @ k.swapaxes(-1, -2) / np.sqrt(WIDTH))
    scores = np.where(np.tril(np.ones((length, length), bool)), scores, -np.inf)
    shifted = single(scores - scores.max(-1, keepdims=True))
    exp = single(np.exp(shifted))
    whole = length // vector * vector if vector else 0
    exp[..., :whole] = fast_exp(shifted[..., :whole].astype(np.float32))
    total = single(exp.sum(-1, keepdims=True))
    return {"nothing": half(exp @ v / total), "exponentials": half(half(exp) @ v / total), "probabilities": half(half(exp / total) @ v)}


@unittest.skipIf(ml_dtypes is None, "ml_dtypes is not installed")
class Attention(unittest.TestCase):
    def check(self, length, backends):
        """For each backend looked at, how many results the C library's exponential does not give; `length` is that of a row."""
        told = []
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            (folder / "attention.yaml").write_text(CASES + CASE.replace("LENGTH", str(length)))
            call(ULPSCOPE, "run", folder / "attention.yaml", "-b", ",".join(backends), "--no-trace", "-q", "-o", folder / "run")
            said = {each["backend"]: each["values"]["y"] for each in
                    json.loads((folder / "run/report.json").read_text())["results"] if "y" in each["values"]}
            for line in (folder / "run/journal.jsonl").read_text().splitlines():
                record = json.loads(line)["record"]
                if record.get("type") != "result" or not record.get("tensors") or "~" in record["case"]:
                    continue
                tensors = {name: each.numpy().astype(np.float64) for name, each in
                           read_safetensors(folder / "run" / record["tensors"]["file"]).items()}
                backend = record["backend"]
                vector = lanes() if length == LONG else 0
                forms, plain = computed(tensors, vector), computed(tensors)
                same = {form: int((forms[form] == tensors["y"]).sum()) for form in forms}
                with self.subTest(backend, same=same):
                    self.assertIn(NAMED[TRUE[backend]], said[backend]["label"])
                    self.assertEqual("fexp_u20" in " ".join(said[backend].get("notes") or []), vector > 0)
                    self.assertEqual(same[TRUE[backend]], tensors["y"].size)
                    self.assertLess(max(n for form, n in same.items() if form != TRUE[backend]), 0.9 * tensors["y"].size)
                told.append(tensors["y"].size - int((plain[TRUE[backend]] == tensors["y"]).sum()))
        self.assertGreater(len(told), 0)
        print(f"{len(told)} backends, rows of {length}; results that another exponential gives: {told}")
        return told

    def test_what_is_named_gives_every_result(self):
        self.assertEqual(set(self.check(SHORT, list(TRUE))), {0})

    def test_with_the_exponential_of_vectors(self):
        if lanes() is None:
            self.skipTest("PyTorch's vectors are of another size here")
        self.assertGreater(min(self.check(LONG, ["torch-eager"])), 0)


if __name__ == "__main__":
    unittest.main()
