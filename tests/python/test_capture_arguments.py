#!/usr/bin/env python3
"""Arguments that a graph leaves out, lists of tensors, and whatever goes wrong inside: captured bit by bit, or an error with op and line."""
import pathlib
import sys
import unittest
from unittest import mock

sys.path[:0] = [str(pathlib.Path(__file__).parent)]

import op_database  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import ulpscope  # noqa: E402
from ulpscope import adapters, capturing, decomposing, faithful, vocabulary  # noqa: E402
from ulpscope.case import Case, Input, Step  # noqa: E402

LINK = None


def setUpModule():
    global LINK
    LINK = adapters.Link("torch-eager").__enter__()
    unittest.addModuleCleanup(LINK.__exit__)


def bits(tensor):
    flat = torch.empty(tensor.numel(), dtype=tensor.dtype).copy_(tensor.reshape(-1))
    return tensor.dtype, tuple(tensor.shape), flat.view(torch.uint8).tolist()


class Kinds(unittest.TestCase):
    def captured(self, f, *args):
        """The case of f, which gives f's own bits on torch-eager, and by the Python adapters' table; and which the harness reads."""
        own = f(*args)
        case = ulpscope.capture(f, args, name="case", verify=())
        faithful.read(case)
        named = dict(zip(case.results, own if isinstance(own, (tuple, list)) else [own]))
        for found in (LINK.run(case), op_database.by_python(case)):
            self.assertEqual({name: bits(found[name].detach()) for name in case.observe}, {name: bits(each.detach()) for name, each in named.items()})
        return case

    def test_what_an_operand_could_be_taken_for_is_said(self):
        x, mask = torch.randn(3, 8), torch.randn(3, 8) > 0
        case = self.captured(lambda m, first: torch.diff(m, prepend=first), mask, mask[:, :1].clone())
        self.assertEqual([(step.op, step.attrs) for step in case.steps], [("aten::diff", {"n": 1, "dim": -1})])
        case = self.captured(lambda m, last: torch.diff(m, append=last, dim=0), mask, mask[:1].clone())
        self.assertEqual(case.steps[0].attrs, {"n": 1, "dim": 0, "prepend": None})
        case = self.captured(lambda x: torch.histc(x, max=2), x)
        self.assertEqual((case.steps[0].of, case.steps[0].attrs), (("x", ), {"max": 2}))
        self.captured(lambda x: torch.linalg.norm(x, dim=0, keepdim=True, ord=1), x)

    def test_differences_are_words(self):
        at = torch.arange(8)[None]
        case = self.captured(lambda at, x: x * (torch.diff(at, prepend=at[:, :1] - 1, dim=-1) == 1), at, torch.randn(1, 8))
        self.assertEqual([op for op in case.ops() if op.startswith("aten::")], [])
        self.captured(lambda x, a: torch.diff(x, append=a, dim=0), torch.randn(4, 3).bfloat16(), torch.randn(2, 3).bfloat16())

    def test_an_argument_without_a_default_stands_there(self):
        x, w, b = torch.randn(4, 3, 5), torch.randn(3), torch.randn(3)
        case = self.captured(lambda x, w, b: F.batch_norm(x, None, None, w, b, True, 0.1, 1e-5), x, w, b)
        self.assertIs(case.steps[0].attrs["training"], True)
        self.assertIn("cudnn_enabled", case.steps[0].attrs)
        self.captured(lambda x, b: F.batch_norm(x, None, None, None, b, True), x, b)

    def test_statistics_that_a_module_keeps_are_as_they_were_afterwards(self):
        norm = torch.nn.BatchNorm1d(3)
        case = ulpscope.capture(norm, (torch.randn(4, 3, 5), ))
        self.assertEqual(case.ops(), ["aten::batch_norm"])
        self.assertEqual([norm.running_mean.tolist(), norm.running_var.tolist(), int(norm.num_batches_tracked)], [[0] * 3, [1] * 3, 0])

    def test_eps_of_a_norm_that_names_none_is_the_one_that_pytorch_takes(self):
        for dtype in (torch.float32, torch.bfloat16, torch.float64):
            x = torch.randn(3, 16).mul(1e-3).to(dtype)
            case = self.captured(lambda x: F.rms_norm(x, [16]), x)
            self.assertEqual(case.ops(), ["rms_norm"])
            # By its definition: (x / y) ** 2 is the mean square and the epsilon. A bfloat16 y gives it to a few parts in a hundred.
            wide, y = x.double(), F.rms_norm(x, [16]).double()
            eps = ((wide / y).square() - wide.square().mean(-1, keepdim=True)).mean().item()
            said = case.steps[0].attrs["eps"]
            if dtype == torch.float64:  # 2e-16 beside 1e-6: more than its own would show
                self.assertLess(abs(eps), 1e-12)
                self.assertLess(said, 1e-12)
            else:
                self.assertAlmostEqual(eps / said, 1, delta=0.5 if dtype == torch.bfloat16 else 0.01)

    def test_a_norm_whose_epsilon_is_no_formats_own_stays_the_dispatchers_op(self):
        real = torch.rms_norm
        with mock.patch.object(torch, "rms_norm", lambda x, shape, weight=None, eps=None: real(x, shape, weight, 0.5 if eps is None else eps)), \
                mock.patch.object(decomposing.Decompositions, "steps", return_value=None):
            case = ulpscope.capture(lambda x: torch.ops.aten.rms_norm(x, [16]), (torch.randn(3, 16), ), verify=())
        self.assertEqual([(step.op, step.attrs) for step in case.steps], [("aten::rms_norm", {"normalized_shape": [16]})])

    def test_the_overload_without_a_name_has_one_beside_others(self):
        case = self.captured(lambda x: torch.max(x) * 2, torch.randn(4, 8))
        self.assertEqual(case.steps[0].op, "aten::max.default")

    def test_lists_of_tensors(self):
        x = torch.randn(4, 6, 2)
        for f in (lambda x: torch.vsplit(x, 2)[1] * 2, lambda x: torch.hsplit(x, [1, 4])[1] + 1, lambda x: torch.dsplit(x, 2)[1].exp(),
                  lambda x: torch.split_with_sizes_copy(x, [1, 3])[1] * 2, lambda x: torch.unbind_copy(x), lambda x: torch.split_copy(x, 2)[1] * 2,
                  lambda x: torch.meshgrid(x[0, 0], x[0, :, 0], indexing="ij")[1] * 2, lambda x: torch.gradient(x, dim=1)[0] * 2,
                  lambda x: torch.broadcast_tensors(x[:, :1], x[:1])[1] * 2, lambda x: torch.broadcast_tensors(x, x[:1]),
                  lambda x: torch.atleast_2d(x[0, 0], x[0])[0] * 2):
            self.captured(f, x)
        case = self.captured(lambda a, b: F.l1_loss(a, b) + F.huber_loss(a, b), x, x.flip(0))
        self.assertEqual(case.ops(), ["add", "huber_loss", "l1_loss"])

    def test_dimensions_of_a_sum_that_keeps_them_all(self):
        x = torch.randn(4, 6)
        case = self.captured(lambda x: (torch.sum(x, None, keepdim=True), torch.mean(x, None, keepdim=True, dtype=torch.float64)), x)
        self.assertEqual([step.attrs["dim"] for step in case.steps], [[0, 1], [0, 1]])

    def test_attributes_that_are_lists_or_are_called_as_a_helper_calls_its_own(self):
        x = torch.randn(4, 6)
        self.captured(lambda x, y: torch.select_scatter(x, y, dim=0, index=1), x, torch.randn(6))
        self.captured(lambda x: torch.roll(x, (1, 2), (0, 1)) + F.pad(x, (1, 1, 2, 2), mode="constant", value=3.0)[2:6, 1:7], x)

    def test_operands_of_two_ranks(self):
        x, y = torch.randn(3, 4, 5), torch.randn(4, 5)
        self.captured(lambda x, y: F.cosine_similarity(x, y, dim=-1), x, y)
        self.captured(lambda x, y: F.cosine_similarity(x, y, dim=0), y, x)

    def test_a_single_element_of_any_stride(self):
        self.captured(lambda x: x * 2, torch.randn(1).expand(1, 1).as_strided((1, 1), (0, 0)))
        self.captured(lambda x: x.expand(1, 1), torch.randn(()))

    def test_gradients_of_an_embedding_keep_what_it_pads(self):
        table, rows = torch.randn(5, 3), torch.tensor([1, 0, 4])
        self.assertEqual(self.captured(lambda rows, table: F.embedding(rows, table, padding_idx=0), rows, table).ops(), ["embedding"])
        case = ulpscope.capture(lambda rows, table: F.embedding(rows, table, padding_idx=0), (rows, table.requires_grad_()), backward=True)
        self.assertEqual(case.ops(), ["aten::embedding", "backward"])


class Refused(unittest.TestCase):
    def refused(self, f, *args, says, verify=()):
        with self.assertRaises(ulpscope.CaptureError) as caught:
            ulpscope.capture(f, args, name="case", verify=verify)
        self.assertRegex(str(caught.exception), says)
        self.assertRegex(str(caught.exception), rf"at \S*{pathlib.Path(__file__).name}:\d+: ")

    def test_results_that_no_case_has(self):
        x = torch.randn(4, 6)
        self.refused(lambda x: torch.fft.fft(x), x, says="op fft_fft: it gives dtype complex64")
        self.refused(lambda x: torch.linalg.eig(x)[0], x[:, :4], says="op linalg_eig: it gives dtype complex64")
        self.refused(lambda x: x.to_sparse(), x, says=r"op to_sparse: it gives a tensor that is not dense \(sparse_coo\)")
        self.refused(lambda x: torch.empty_like(x), x, says="op empty: nothing is written into this memory")
        self.refused(lambda x: torch.linalg.lstsq(x, x)[1], x, says="op linalg_lstsq: how large its result is depends on the values")

    def test_a_place_that_a_tensor_says(self):
        self.refused(lambda x, i: torch.narrow(x, 0, i, 2), torch.randn(4, 6), torch.tensor(1), says="depends on the values of a tensor")

    def test_arguments_that_no_step_has(self):
        x = torch.randn(4, 6)
        self.refused(lambda x: torch.histogramdd(x[:, :2], bins=[3, 3])[0], x, says="op histogramdd: a list of tensors among several results")
        self.refused(lambda x, y: torch.searchsorted(x, y, sorter=x.argsort()), x, x, says="the tensor sorter= cannot be named")
        self.refused(lambda x: x * 1j, x, says=r"op mul.*complex")
        self.refused(lambda x, i: torch.ops.aten._unsafe_masked_index(x, i > 0, [None, i], 0), x, torch.tensor([0, 1]),
                     says="indices is a list of tensors that may have gaps")

    def test_what_goes_wrong_inside_names_the_op_and_its_line(self):
        with mock.patch.object(vocabulary, "as_word", side_effect=IndexError("string index out of range")):
            self.refused(lambda x: x.tril(), torch.randn(3, 3), says=r"op tril: .*a fault of ulpscope's own \(IndexError: string index out of range\)")

    def test_a_step_that_the_adapter_refuses_is_named(self):
        real = vocabulary.as_aten

        def spoilt(node, arguments):
            op, of, attrs = real(node, arguments)
            return op, of, {**attrs, "no_such": 1} if op == "aten::cummax" else attrs

        with mock.patch.object(vocabulary, "as_aten", spoilt):
            self.refused(lambda x: torch.cummax(x.exp(), 0)[0].sin().cos(), torch.randn(3, 3), verify=("torch-eager", ),
                         says="op aten::cummax: the function runs and the case does not: .*no argument 'no_such'")

    def test_what_the_harness_refuses_is_refused_here(self):
        real = vocabulary.as_word

        def spoilt(name, arguments, **options):
            said = real(name, arguments, **options)
            return (*said[:2], {}) if said and said[0] == "softmax" else said

        with mock.patch.object(vocabulary, "as_word", spoilt):
            self.refused(lambda x: x.exp().softmax(0) * 2, torch.randn(3, 3), verify=("torch-eager", ),
                         says="op softmax: the harness refuses it in a case: missing key 'dim'")

    def test_the_harness_reads_a_case_without_the_values_of_its_tensors(self):
        case = Case("case", "?", [Input("x", torch.randn(3), beside=True)], [Step("neg", ("x", ), "y")], ["y"])
        faithful.read(case)
        self.assertTrue(case.inputs[0].beside)
        with self.assertRaisesRegex(ulpscope.CaptureError, "op relu: the harness refuses it in a case"):
            faithful.read(Case("case", "?", case.inputs, [Step("relu", ("z", ), "y")], ["y"]))

    def test_arguments_that_no_case_has(self):
        for value, says in ((torch.randn(3, dtype=torch.complex64), "x has dtype complex64"), (torch.eye(3).to_sparse(), "x is a tensor that is not dense")):
            with self.assertRaisesRegex(ulpscope.CaptureError, says):
                capturing.capture(lambda x: x * 2, (value, ), verify=())


if __name__ == "__main__":
    unittest.main()
