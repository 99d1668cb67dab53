# What is said of attention as one op holds: PyTorch's kernel rounds the exponentials that weigh the values, JAX's the probabilities.
"""usage: test_attention.py

The program is computed here in NumPy from the recorded inputs, with nothing rounded inside, with the exponentials of the numerator
rounded to bfloat16, and with the probabilities rounded to it. Of the three, the one that the harness names gives every result.
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

LENGTH, WIDTH, HEADS, SHARED = 7, 16, 4, 2
CASES = f"""# Attention as models call it: causal, heads of key and value shared.
about: What does attention round inside?
contract: {{status: unspecified, accept: any}}
cases:
  - name: attention
    tensors:
      q: {{dtype: bfloat16, shape: [2, {HEADS}, {LENGTH}, {WIDTH}], fill: normal}}
      k: {{dtype: bfloat16, shape: [2, {SHARED}, {LENGTH}, {WIDTH}], fill: normal}}
      v: {{dtype: bfloat16, shape: [2, {SHARED}, {LENGTH}, {WIDTH}], fill: normal}}
    program:
      - {{op: scaled_dot_product_attention, of: [q, k, v], is_causal: true, enable_gqa: true, as: y}}
    observe: [y, q, k, v]
"""
NAMED = {"exponentials": "the exp in numerator inside rounded to bfloat16", "probabilities": "the probabilities inside rounded to bfloat16"}
TRUE = {"torch-eager": "exponentials", "torch-inductor": "exponentials", "jax": "probabilities", "jax-eager": "probabilities"}


def computed(tensors):
    """form -> the results in bfloat16, each product and sum in float64 and rounded to float32 once."""
    def single(x):
        return x.astype(np.float32).astype(np.float64)

    def half(x):
        return x.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float64)

    q, k, v = (tensors[name] for name in "qkv")
    k, v = (np.repeat(x, HEADS // SHARED, 1) for x in (k, v))
    scores = single(q @ k.swapaxes(-1, -2) / np.sqrt(WIDTH))
    scores = np.where(np.tril(np.ones((LENGTH, LENGTH), bool)), scores, -np.inf)
    exp = single(np.exp(scores - scores.max(-1, keepdims=True)))
    total = single(exp.sum(-1, keepdims=True))
    return {"nothing": half(exp @ v / total), "exponentials": half(half(exp) @ v / total), "probabilities": half(half(exp / total) @ v)}


@unittest.skipIf(ml_dtypes is None, "ml_dtypes is not installed")
class Attention(unittest.TestCase):
    def test_what_is_named_gives_every_result(self):
        told = 0
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            (folder / "attention.yaml").write_text(CASES)
            call(ULPSCOPE, "run", folder / "attention.yaml", "-b", ",".join(TRUE), "--no-trace", "-q", "-o", folder / "run")
            labels = {each["backend"]: each["values"]["y"]["label"] for each in
                      json.loads((folder / "run/report.json").read_text())["results"] if "y" in each["values"]}
            for line in (folder / "run/journal.jsonl").read_text().splitlines():
                record = json.loads(line)["record"]
                if record.get("type") != "result" or not record.get("tensors") or "~" in record["case"]:
                    continue
                tensors = {name: each.numpy().astype(np.float64) for name, each in
                           read_safetensors(folder / "run" / record["tensors"]["file"]).items()}
                backend, forms = record["backend"], computed(tensors)
                same = {form: int((forms[form] == tensors["y"]).sum()) for form in forms}
                with self.subTest(backend, same=same):
                    self.assertIn(NAMED[TRUE[backend]], labels[backend])
                    self.assertEqual(same[TRUE[backend]], tensors["y"].size)
                    self.assertLess(max(n for form, n in same.items() if form != TRUE[backend]), 0.9 * tensors["y"].size)
                told += 1
        self.assertGreater(told, 0)
        print(f"{told} backends, {2 * HEADS * LENGTH * WIDTH} results each")


if __name__ == "__main__":
    unittest.main()
