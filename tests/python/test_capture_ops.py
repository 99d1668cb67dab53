#!/usr/bin/env python3
"""The capture gate: every op of PyTorch's own database, forward and with gradients, is captured with the function's bits, or refused for a
reason from a closed list that the program bears out; exact references agree with float64.

A fixed sample runs always and is held against the counts in tests/golden/capture_gate.json (`--update` writes them anew); `--all`, or
ULPSCOPE_NIGHTLY=1 in the environment, takes every op. `--json FILE` writes counts and rows.
"""
import contextlib
import dataclasses
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path[:0] = [str(pathlib.Path(__file__).parent)]

import capture_gate  # noqa: E402
import capture_references  # noqa: E402
import op_database  # noqa: E402
import torch  # noqa: E402
from ulpscope import capturing  # noqa: E402
from ulpscope.refusals import CaptureError, Reason  # noqa: E402

OPTIONS = capture_gate.options(sys.argv, os.environ)
# Ops whose arguments or results are of a kind that few others have.
OF_A_KIND = ("atleast_3d", "diff", "histc", "broadcast_tensors", "vsplit", "unbind_copy", "nn.functional.batch_norm", "nn.functional.rms_norm",
             "linalg.norm", "gradient", "histogramdd", "sgn", "tensor_split", "masked.logsumexp", "subtract", "empty", "to_sparse", "hash_tensor")
EACH = 48  # of the others every so many-eth


class EveryOp(unittest.TestCase):
    def test_is_captured_or_refused_for_a_listed_reason(self):
        parts = 16 if OPTIONS.every else 1  # so that few cases lie in the temporary folder at once
        rows, wrong, compared = [], [], 0
        for part in range(parts):
            with capture_references.References() as references:
                def keep(row, case, program, own):
                    if OPTIONS.every or row.sample == 0:
                        op_database.keep_reference(references, row, case, program, own)  # noqa: B023

                rows += op_database.outcomes(lambda op, number: self.chosen(op, number) and number % parts == part, keep=keep)  # noqa: B023
                wrong += references.lint()
                compared += references.compared()
        capture_gate.judge(self, "torch", rows, wrong, compared, OPTIONS)

    def chosen(self, op, number):
        return OPTIONS.every or op.name in OF_A_KIND or number % EACH == 0


class Op:
    name, variant_test_name = "planted", ""

    def __init__(self, function):
        self.op = function


@dataclasses.dataclass
class Sample:
    input: torch.Tensor
    args: tuple = ()
    kwargs: dict = dataclasses.field(default_factory=dict)

    def output_process_fn_grad(self, found):
        return found


class Planted(unittest.TestCase):
    """Faults that the gate has to find, each planted once."""

    def outcome(self, function, x=None, direction="forward", **options):
        asked = op_database.Asked()
        self.addCleanup(asked.close)
        sample = Sample(torch.ones(3, requires_grad=direction == "backward") if x is None else x)
        return op_database.outcome(Op(function), torch.float32, 0, sample, asked, direction, **options)

    def test_a_wrong_bit(self):
        calls = []

        def other_each_time(value):
            calls.append(value)
            return value * (1.0 if len(calls) < 3 else 2.0)

        row = self.outcome(other_each_time)
        self.assertEqual(row.outcome, "fault", row)
        self.assertIn("3 of 3 elements differ", row.text)

    def test_an_error_that_is_no_refusal(self):
        with mock.patch.object(capturing.names, "rename", side_effect=KeyError("planted")):
            row = self.outcome(lambda x: x * 2)
        self.assertEqual((row.outcome, row.text), ("fault", "KeyError: 'planted'"))

    def test_a_reason_that_is_not_true(self):
        for reason in (Reason.RANDOM, Reason.COMPLEX, Reason.EMPTY, Reason.DATA_DEPENDENT, Reason.MUTATION, Reason.UNWRITTEN_MEMORY, Reason.LAYOUT,
                       Reason.NOTHING_COMPUTED, Reason.FOREIGN_OP, Reason.KEYWORD_TENSOR, Reason.LIST_FORM, Reason.INDEX_FORM, Reason.DTYPE):
            with mock.patch.object(capturing, "capture", side_effect=CaptureError("planted", reason)):
                row = self.outcome(lambda x: x * 2)
            self.assertEqual(row.outcome, "fault", row)
            self.assertIn(f"the reason {reason.name} is not true", row.text)

    def test_a_reason_that_is_a_fault(self):
        with mock.patch.object(capturing, "capture", side_effect=CaptureError("planted", Reason.EXPORT)):
            self.assertEqual(self.outcome(lambda x: x * 2).outcome, "fault")

    def test_true_reasons(self):
        for reason, function, x in ((Reason.RANDOM, torch.rand_like, None), (Reason.COMPLEX, torch.fft.fft, None),
                                    (Reason.EMPTY, lambda x: x[:0] * 2, None), (Reason.DATA_DEPENDENT, lambda x: x[x > 0], None),
                                    (Reason.NOTHING_COMPUTED, lambda x: x, None), (Reason.LAYOUT, torch.Tensor.to_sparse, torch.eye(3)),
                                    (Reason.UNWRITTEN_MEMORY, torch.empty_like, None), (Reason.DTYPE, lambda x: x.to(torch.uint16), None)):
            row = self.outcome(function, x)
            self.assertEqual((row.outcome, row.reason), ("refused", reason.name), row)

    def test_a_wrong_reference(self):
        """A float64 computation that is off by eight units in the last place of float32, and an index that is off by one."""
        x = torch.linspace(0.1, 3, 7)
        for function, planted in ((torch.exp, lambda value: value * (1 + 2.0**-20)), (lambda x: torch.argmax(x), lambda value: value - 1)):
            for change, found in ((lambda value: value, []), (planted, ["wrong"])):
                with capture_references.References() as references:
                    def keep(row, case, program, own):
                        results, _ = program.in_float64()
                        references.add(row, case, {case.results[0]: change(results[0])}, own)  # noqa: B023

                    row = self.outcome(function, x, keep=keep)
                    self.assertEqual(row.outcome, "captured", row)
                    self.assertEqual(references.compared(), 0 if found else 1)
                self.assertEqual(["wrong" for _ in capture_gate.wrong_references([row])], found, row)

    def test_a_gate_that_compares_nothing_or_has_other_counts(self):
        rows = [self.outcome(lambda x: x * 2)]
        chosen = capture_gate.Options(every=False, update=True, json="", left=[])
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(capture_gate, "GOLDEN", pathlib.Path(folder, "golden.json")), \
                contextlib.redirect_stdout(io.StringIO()):
            with self.assertRaisesRegex(AssertionError, "0 not greater than 0"):
                capture_gate.judge(self, "torch", rows, [], 0, chosen)
            capture_gate.judge(self, "torch", rows, [], 1, chosen)
            chosen.update, chosen.json = False, str(pathlib.Path(folder, "rows.json"))
            capture_gate.judge(self, "torch", rows, [], 1, chosen)
            self.assertEqual(json.loads(pathlib.Path(chosen.json).read_text(encoding="utf-8"))["rows"][0]["op"], "planted")
            for other in ([], [*rows, *rows]):
                with self.assertRaises(AssertionError):
                    capture_gate.judge(self, "torch", other, [], 1, chosen)


if __name__ == "__main__":
    unittest.main(argv=OPTIONS.left)
