#!/usr/bin/env python3
"""Ops outside of the case language by PyTorch's decompositions; reasons of refusals; gradients that are zero or that there are none of."""
import pathlib
import sys
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "harness/python"), str(ROOT / "backends/python")]

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import ulpscope  # noqa: E402
from ulpscope import adapters, decomposing, faithful  # noqa: E402
from ulpscope.refusals import Reason  # noqa: E402

LINK = None


def setUpModule():
    global LINK
    torch.manual_seed(0)
    LINK = adapters.Link("torch-eager").__enter__()
    unittest.addModuleCleanup(LINK.__exit__)


def captured(test, f, *args, **options):
    """The case of f, which has f's bits on torch-eager, and which the harness reads."""
    case = ulpscope.capture(f, args, name="case", verify=(), **options)
    faithful.read(case)
    own, found = faithful.results(f, args, {}, case), LINK.run(case)
    test.assertEqual([faithful.difference(own[name], found[name]) for name in case.observe], [""] * len(case.observe))
    return case


class Decomposed(unittest.TestCase):
    def test_composites_are_words(self):
        for dtype in (torch.float32, torch.bfloat16):
            x, y = torch.randn(4, 6).to(dtype), torch.randn(4, 6).to(dtype)
            for f in (torch.subtract, torch.divide, torch.inner, lambda x, y: torch.vstack([x, y]), lambda x, y: torch.trapezoid(x, y),
                      lambda x, y: torch.meshgrid(x[0], y[0], indexing="ij")[1] * 2, lambda x, y: F.pairwise_distance(x, y),
                      lambda x, y: torch.movedim(x, 0, 1) + y.t(), lambda x, y: torch.broadcast_to(x, (2, 4, 6)) * y):
                case = captured(self, f, x, y)
                self.assertEqual([op for op in case.ops() if op.startswith("aten::")], [], case.ops())

    def test_composites_with_gradients_are_words(self):
        x, y = (torch.rand(4, 6).add(0.5).requires_grad_() for _ in range(2))
        case = captured(self, lambda x, y: torch.divide(torch.subtract(x, y), torch.vstack([x[:2], y[2:]])), x, y, backward=True)
        self.assertEqual([op for op in case.ops() if op.startswith("aten::")], [])
        self.assertEqual(case.observe[1:], ["x.grad", "y.grad"])

    def test_a_kernel_with_the_bits_of_its_decomposition_is_words_where_no_gradient_is_asked_for(self):
        x = torch.randn(4, 6)
        self.assertEqual(captured(self, torch.isnan, x).ops(), ["ne"])
        self.assertEqual([op for op in captured(self, F.hardswish, x.bfloat16()).ops() if op.startswith("aten::")], [])
        case = captured(self, lambda x: F.hardswish(x), x.requires_grad_(), backward=True)
        self.assertEqual(case.ops(), ["aten::hardswish", "backward"])

    def test_a_decomposition_of_other_bits_or_another_layout_is_not_taken(self):
        x = torch.randn(4, 6)
        for other in (lambda x: x * ((x + 3).clamp(0, 6) / 6.0000005), lambda x: (x * (x + 3).clamp(0, 6) / 6).t().contiguous().t()):
            with mock.patch.object(decomposing, "_decomposition", return_value=other):
                self.assertEqual(captured(self, F.hardswish, x).ops(), ["aten::hardswish"])

    def test_a_case_that_its_decompositions_make_unfaithful_is_captured_without_them(self):
        with mock.patch.object(decomposing, "_decomposition", return_value=lambda x: x * 2), \
                mock.patch.object(decomposing.Decompositions, "_same", return_value=True):
            self.assertEqual(ulpscope.capture(F.hardswish, (torch.randn(4, 6), ), verify=()).ops(), ["mul"])
            self.assertEqual(ulpscope.capture(F.hardswish, (torch.randn(4, 6), )).ops(), ["aten::hardswish"])

    def test_an_op_stays_where_its_decomposition_is_no_words_or_stands_under_autocast(self):
        x = torch.randn(4, 6)
        self.assertEqual(captured(self, lambda x: torch.special.i0e(x), x).ops(), ["aten::special_i0e"])

        def under_autocast(x):
            with torch.autocast("cpu"):
                return torch.inner(x, x)

        self.assertIn("aten::inner", captured(self, under_autocast, x).ops())

    def test_a_composite_that_gives_its_operand(self):
        x = torch.randn(4, 6)
        self.assertEqual(captured(self, lambda x: torch.atleast_2d(x) * 2, x).ops(), ["mul"])
        self.assertEqual(captured(self, torch.atleast_2d, x).ops(), ["aten::atleast_2d.default"])


class Families(unittest.TestCase):
    def test_a_word_of_one_dimension_takes_no_list(self):
        for x in (torch.randn(3, 4, 5), torch.randn(3, 4, 5).bfloat16()):
            captured(self, lambda x: torch.logsumexp(x, (0, 2)), x)
            self.assertEqual(captured(self, lambda x: torch.logsumexp(x, (1, )), x).ops(), ["logsumexp"])

    def test_a_dimension_of_a_single_number(self):
        for f in (lambda x: torch.logsumexp(x, 0), lambda x: torch.softmax(x, -1), lambda x: torch.cumsum(x, 0), lambda x: torch.sum(x, 0),
                  lambda x: torch.amax(x, -1, keepdim=True), lambda x: torch.index_select(x, 0, torch.zeros(1, dtype=torch.int64))):
            captured(self, f, torch.randn(()))

    def test_an_equation_of_one_operand(self):
        self.assertEqual(captured(self, lambda x: torch.einsum("ij->ji", x), torch.randn(2, 3)).ops(), ["einsum"])

    def test_an_image_or_a_signal_without_a_batch(self):
        image, signal = torch.randn(3, 8, 8), torch.randn(3, 8)
        for f, x in ((lambda x: F.adaptive_avg_pool2d(x, 4), image), (lambda x: F.avg_pool2d(x, 2), image), (lambda x: F.max_pool2d(x, 2), image),
                     (lambda x: F.adaptive_avg_pool1d(x, 4), signal), (lambda x: F.avg_pool1d(x, 2), signal), (lambda x: F.max_pool1d(x, 2), signal),
                     (lambda x: F.conv2d(x, torch.ones(2, 3, 3, 3)), image), (lambda x: F.conv1d(x, torch.ones(2, 3, 3)), signal)):
            captured(self, f, x)

    def test_a_truth_value_fills(self):
        x = torch.randn(2, 3)
        for f in (lambda x: torch.fill(x, True), lambda x: torch.full((2, 3), True) & (x > 0), lambda x: torch.where(torch.full((2, 3), False), x, 2 * x)):
            captured(self, f, x)

    def test_statistics_stay_where_decompositions_are_tried(self):
        norm = torch.nn.BatchNorm1d(3)
        x = torch.randn(4, 3, 5)
        captured(self, lambda x: norm(x) * torch.isnan(x), x)
        self.assertEqual([norm.running_mean.tolist(), norm.running_var.tolist()], [[0] * 3, [1] * 3])

    def test_an_argument_that_no_gradient_reaches(self):
        x, y = torch.randn(2, 1, requires_grad=True), torch.randn(2, 3, requires_grad=True)
        case = captured(self, lambda x, y: torch.broadcast_tensors(x, y)[0], x, y, backward=True)
        self.assertEqual(case.observe[1:], ["x.grad"])

    def test_a_gradient_of_zeros_without_memory(self):
        x = torch.randn(4, requires_grad=True)
        torch.sgn(x).sum().backward()
        self.assertTrue(x.grad._is_zerotensor())
        for backend in ("torch-eager", "torch-aot-eager"):
            case = ulpscope.capture(torch.sgn, (x.detach().requires_grad_(), ), name="case", verify=(backend, ), backward=True)
            self.assertEqual(case.observe[1:], ["arg_0.grad"])

    def test_reasons(self):
        x = torch.randn(4, 6)
        for reason, f in ((Reason.RANDOM, torch.rand_like), (Reason.DATA_DEPENDENT, lambda x: x[x > 0]), (Reason.COMPLEX, torch.fft.fft),
                          (Reason.DATA_DEPENDENT, lambda x: x * 2 if x.sum() > 0 else x), (Reason.LAYOUT, lambda x: x.to_sparse()),
                          (Reason.EMPTY, lambda x: x[:0] * 2), (Reason.UNWRITTEN_MEMORY, torch.empty_like), (Reason.NOTHING_COMPUTED, lambda x: x),
                          (Reason.LIST_FORM, lambda x: torch.histogramdd(x[:, :2], bins=[3, 3])[0]), (Reason.DTYPE, lambda x: x.to(torch.uint16)),
                          (Reason.KEYWORD_TENSOR, lambda x: torch.searchsorted(x, x, sorter=x.argsort()))):
            with self.assertRaises(ulpscope.CaptureError) as caught:
                ulpscope.capture(f, (x, ), verify=())
            self.assertIs(caught.exception.reason, reason, caught.exception)
        with self.assertRaises(TypeError):
            ulpscope.CaptureError("a refusal without a reason")

    def test_an_argument_without_elements(self):
        with self.assertRaises(ulpscope.CaptureError) as caught:
            ulpscope.capture(lambda x: x * 2, (torch.randn(0, 3), ), verify=())
        self.assertIs(caught.exception.reason, Reason.EMPTY)


if __name__ == "__main__":
    unittest.main()
