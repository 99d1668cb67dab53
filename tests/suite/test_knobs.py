#!/usr/bin/env python3
"""The sweep of knobs on what is installed: every value is probed, and the knobs of known effect show it.

Behaviour that depends on the processor (which kernels a core type or a precision picks) is not asserted: only that it is probed.
"""
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from adapter_process import AVX512  # noqa: E402
from programs import ulpscope  # noqa: E402

# (backend, knob, value) -> (effect, a part of what differed)
KNOWN = {
    ("torch-eager", "deterministic", "on"): ("acts", "raised RuntimeError"),
    ("torch-eager", "flush_denormal", "on"): ("acts", "bits of result"),
    ("torch-eager", "sdpa_backend", "math"): ("acts", "bits of result"),
    ("torch-eager", "float32_matmul_precision", "high"): ("no_effect", ""),
    ("jax", "jax_enable_x64", "false"): ("acts", "float32[256] instead of float64[256]"),
    ("jax", "jax_numpy_dtype_promotion", "strict"): ("acts", "raised TypePromotionError"),
    ("jax", "xla_allow_excess_precision", "false"): ("acts", "bits of result"),
    ("jax", "jax_matmul_precision", "F16_F16_F16"): ("acts", ""),
    ("jax", "jax_matmul_precision", "BF16_BF16_F32"): ("acts", "knobs/products/float64"),
    ("jax", "jax_matmul_precision", "TF32_TF32_F32"): ("acts", "raised"),
}
# Accepted, shown in the graph, and without effect on any value, which read-back alone would never show.
IGNORED = [("jax", "jax_matmul_precision", preset) for preset in ("highest", "bfloat16", "tensorfloat32")]


def installed(names):
    listed = ulpscope("list", "backends", "--json")
    states = {row["backend"]: row["state"] for row in json.loads(listed.stdout)}
    return [name for name in names if states.get(name) == "installed"]


class Knobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.backends = installed(["torch-eager", "jax", "openblas", "onednn", "blis"])
        with tempfile.TemporaryDirectory() as folder:
            cls.done = ulpscope("run", "--knob-sweep", "-b", ",".join(cls.backends), "-o", folder + "/run", timeout=1500)
            cls.report = json.loads((pathlib.Path(folder) / "run/report.json").read_text(encoding="utf-8"))
        cls.rows = {(row["backend"], row["knob"], row["asked"]): row for row in cls.report["knobs"]}

    def test_no_value_goes_without_a_probe(self):
        self.assertGreater(len(self.rows), 5 * len(self.backends))
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        self.assertNotIn("no case probes", self.done.stderr)
        if "torch-eager" in self.backends:
            self.assertIn("not queried: torch-eager: reduced_precision_reduction acts on @cuda alone", self.done.stderr)
        self.assertEqual([key for key, row in self.rows.items() if row["effect"] == "not_compared"], [])
        probed = {backend for backend, _, _ in self.rows}
        self.assertEqual(probed, set(self.backends), "each has a knob at least")

    def test_known_effects_show(self):
        checked = 0
        for key, (effect, part) in KNOWN.items():
            if key[0] not in self.backends:
                continue
            with self.subTest(knob=key):
                self.assertEqual(self.rows[key]["effect"], effect, self.rows[key])
                self.assertIn(part, f"{self.rows[key].get('case')}: {self.rows[key].get('what')}")
                checked += 1
        self.assertGreater(checked, 0)

    def test_ignored_presets_are_findings(self):
        if "jax" not in self.backends:
            self.skipTest("jax is not installed")
        for key in IGNORED:
            with self.subTest(knob=key):
                self.assertIn(self.rows[key]["effect"], ("no_effect", "trace_only"), self.rows[key])
                self.assertEqual(self.rows[key]["read_back"], "as_asked")

    def test_what_a_processor_lacks_is_a_reason(self):
        backends = installed(["openblas", "blis"])
        masked = {"ULPSCOPE_CPU_WITHOUT": AVX512}
        with tempfile.TemporaryDirectory() as folder:
            done = ulpscope("run", "--knob-sweep", "-b", ",".join(backends), "-o", folder + "/run", beside=masked)
            report = json.loads((pathlib.Path(folder) / "run/report.json").read_text(encoding="utf-8"))
        self.assertEqual(done.returncode, 0, done.stderr)
        refused = {row["asked"]: row["what"] for row in report["knobs"] if row["effect"] == "refused"}
        for value in ["SkylakeX"] * ("openblas" in backends) + ["skx"] * ("blis" in backends):
            self.assertIn(f"{value}: this processor lacks {AVX512}", refused[value])

    def test_read_back_is_as_asked_or_refused(self):
        differing = [key for key, row in self.rows.items() if row["read_back"] == "differs"]
        self.assertEqual(differing, [])


if __name__ == "__main__":
    unittest.main()
