#!/usr/bin/env python3
"""The exact reference of a cast to whole numbers loses the fraction, and of one to booleans every number but 0 is true; that of squeeze
drops each of several dimensions."""
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/support")]
from programs import ULPSCOPE, call  # noqa: E402

CASE = """about: What is left of a number that becomes a whole one?
cases:
  - name: casts
    tensors:
      x: {dtype: float32, shape: [6], fill: {values: [1.5, -1.5, 2.75, 0.25, -0.5, 0]}}
    program:
      - {op: cast, of: [x], dtype: int64, as: whole}
      - {op: cast, of: [whole], dtype: float32, as: wide}
      - {op: sub, of: [x, whole], as: fraction}
      - {op: cast, of: [x], dtype: bool, as: condition}
      - {op: cast, of: [condition], dtype: float32, as: truth}
      - {op: reshape, of: [x], shape: [1, 2, 1, 3], as: apart}
      - {op: squeeze, of: [apart], dim: [0, -2], as: both}
      - {op: squeeze, of: [apart], dim: 0, as: one}
      - {op: sum, of: [both], dim: 0, as: rows}
      - {op: sum, of: [one], dim: 1, as: columns}
    observe: [wide, fraction, truth, rows, columns]
"""


class Casts(unittest.TestCase):
    def test_whole_numbers_and_booleans(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "casts.yaml")
            file.write_text(CASE, encoding="utf-8")
            call(ULPSCOPE, "run", file, "-b", "torch-eager", "-o", pathlib.Path(folder, "run"), "--no-steps")
            values = json.loads(pathlib.Path(folder, "run", "report.json").read_text(encoding="utf-8"))["results"][0]["values"]
        self.assertEqual({name: (value["checked"], value["max_ulp"]) for name, value in values.items()},
                         {"rows": (3, 0.0), **dict.fromkeys(("wide", "fraction", "truth", "columns"), (6, 0.0))})


if __name__ == "__main__":
    unittest.main()
