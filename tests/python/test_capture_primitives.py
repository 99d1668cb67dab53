#!/usr/bin/env python3
"""The capture gate for JAX: every harness primitive of lax is captured with the function's bits, or refused for a reason from a closed list.

As test_capture_ops.py has it for PyTorch: a fixed sample with golden counts, every primitive with `--all` or ULPSCOPE_NIGHTLY=1.
"""
import os
import pathlib
import sys
import unittest
from unittest import mock

sys.path[:0] = [str(pathlib.Path(__file__).parent)]
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import capture_gate  # noqa: E402
import capture_references  # noqa: E402
import jax_primitives  # noqa: E402
from ulpscope import capturing_jax  # noqa: E402
from ulpscope.refusals import CaptureError, Reason  # noqa: E402

OPTIONS = capture_gate.options(sys.argv, os.environ)
SAMPLE = ("add", "argmax", "clamp", "cumprod", "dot_general", "dynamic_slice", "exp", "fft", "pad", "random_uniform", "reduce_window_mul", "rem",
          "rev", "sort", "stop_gradient", "top_k")


class EveryPrimitive(unittest.TestCase):
    def test_is_captured_or_refused_for_a_listed_reason(self):
        with capture_references.References() as references:
            def keep(row, case, program):
                jax_primitives.keep_reference(references, row, case, program)

            rows = list(jax_primitives.outcomes(samples=2 if OPTIONS.every else 1, primitives=None if OPTIONS.every else SAMPLE,
                                                directions=("forward", "backward") if OPTIONS.every else ("forward", ), keep=keep))
            wrong, compared = references.lint(), references.compared()
        capture_gate.judge(self, "jax", rows, wrong, compared, OPTIONS)

    def test_a_wrong_bit_and_an_untrue_reason_are_faults(self):
        harness, dtype, number = next(jax_primitives.chosen(1, ("exp", )))
        asked = {backend: jax_primitives.Asked(backend) for backend in capturing_jax.BACKENDS}
        for each in asked.values():
            self.addCleanup(each.close)
        with mock.patch.object(capturing_jax, "differences", return_value={"x": "1 of 1 elements differ"}):
            row = jax_primitives.outcome(harness, dtype, number, asked)
        self.assertEqual(row.outcome, "fault", row)
        for reason in (Reason.RANDOM, Reason.CONTROL_FLOW, Reason.COMPLEX, Reason.EMPTY, Reason.NOTHING_COMPUTED, Reason.NO_WORD, Reason.DTYPE):
            with mock.patch.object(capturing_jax, "capture_jax", side_effect=CaptureError("planted", reason)):
                row = jax_primitives.outcome(harness, dtype, number, asked)
            self.assertEqual(row.outcome, "fault", row)


if __name__ == "__main__":
    unittest.main(argv=OPTIONS.left)
