#!/usr/bin/env python3
"""A kernel of one's own is proved to accumulate as required, or refused with the element that proves the contrary; check() with it."""
import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "harness/python"), str(ROOT / "backends/python"), str(ROOT / "tests/support"), str(pathlib.Path(__file__).parent)]

import blocks  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
import ulpscope  # noqa: E402
from programs import call  # noqa: E402
from ulpscope import checking, places, reporting, splitting  # noqa: E402
from ulpscope.case import Step  # noqa: E402


def accumulate(x, w, total, keep):
    for k in range(x.shape[1]):
        total = keep(total + x[:, k:k + 1].astype("f4") * w[k:k + 1].astype("f4") if hasattr(x, "astype") else
                     total + x[:, k:k + 1].float() * w[k:k + 1].float())
    return total


def in_bfloat16(x, w):
    return accumulate(x, w, torch.zeros(x.shape[0], w.shape[1]), lambda total: total.bfloat16().float()).bfloat16()


def in_float32(x, w):
    return accumulate(x, w, torch.zeros(x.shape[0], w.shape[1]), lambda total: total).bfloat16()


def numpy_in_float16(x, w):
    zeros = numpy.zeros((x.shape[0], w.shape[1]), "f4")
    return accumulate(x, w, zeros, lambda total: total.astype("f2").astype("f4"))


def numpy_in_float32(x, w):
    return accumulate(x, w, numpy.zeros((x.shape[0], w.shape[1]), "f4"), lambda total: total)


def operands(dtype=torch.bfloat16):
    made = torch.Generator().manual_seed(11)
    return torch.randn(16, 48, generator=made).to(dtype), torch.randn(48, 16, generator=made).to(dtype)


def setUpModule():
    """Runs without a given folder go away with the tests."""
    made = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(made.cleanup)
    unittest.enterModuleContext(unittest.mock.patch.object(tempfile, "tempdir", made.name))


def short_total(x, dim):
    e = (x - x.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True).bfloat16().float()


def short_inverse(x, normalized_shape, eps):
    return x * (x.pow(2).mean(-1, keepdim=True) + eps).rsqrt().bfloat16().float()


def short_probabilities(q, k, v):
    s = q @ k.transpose(-1, -2) / q.shape[-1]**.5
    e = (s - s.amax(-1, keepdim=True)).exp()
    return e.bfloat16().float() @ v / e.sum(-1, keepdim=True)


def either_neighbour(x, w):
    bits = (x.double() @ w.double()).float().numpy().view("uint32").astype("uint64")
    noise = (numpy.arange(bits.size, dtype="uint64").reshape(bits.shape) * numpy.uint64(2654435761) >> numpy.uint64(9)) & numpy.uint64(0xFFFF)
    return torch.from_numpy((((bits + noise) >> numpy.uint64(16)) << numpy.uint64(16)).astype("uint32").view("float32")).bfloat16()


class AssertPrecision(unittest.TestCase):
    def refused(self, kernel, args, **asked):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(ulpscope.PrecisionError) as caught:
                ulpscope.assert_precision(kernel, args, keep=folder, **asked)
            explained = call(places.binary(), "explain", f"{caught.exception.report.results[0]['id']}@{kernels_name(kernel)}", "--run",
                             folder + "/run", beside=places.environment())
        self.assertIn("status     FAIL", explained.stdout)
        self.assertEqual(explained.returncode, 0, explained.stderr)
        return caught.exception

    def test_a_bfloat16_accumulator_is_refused_and_its_twin_passes(self):
        args = operands()
        error = self.refused(in_bfloat16, args, acc="float32")
        self.assertIn("violates its contract (acc at_least_float32, in as_is, mid none): accumulated in bfloat16", str(error))
        witness = error.witness
        i, j = witness["element"]
        got, exact = in_bfloat16(*args)[i, j].item(), (args[0][i].double() @ args[1][:, j].double()).item()
        self.assertEqual(witness["observed"], got)
        self.assertAlmostEqual(witness["exact"], exact, places=12)
        self.assertFalse(witness["low"] <= got <= witness["high"])
        self.assertTrue(witness["low"] <= in_float32(*args)[i, j].item() <= witness["high"])
        self.assertTrue(torch.equal(witness["operands"][0], args[0][i]) and torch.equal(witness["operands"][1], args[1][:, j]))
        proof = ulpscope.assert_precision(in_float32, args, acc="float32")
        self.assertEqual(proof.matrix["result"]["in-float32"], "accumulated in float32 or wider, stored bfloat16")
        self.assertFalse(proof.run_dir.exists(), "the run of a proof is left behind")

    def test_numpy_and_jax_kernels(self):
        args = tuple(each.float().numpy() for each in operands())
        self.assertIn("accumulated in float16", str(self.refused(numpy_in_float16, args, acc="float32")))
        ulpscope.assert_precision(numpy_in_float32, args, acc="float32")
        import jax.numpy
        args = tuple(jax.numpy.asarray(each) for each in args)
        ulpscope.assert_precision(jax.numpy.matmul, args, acc="float32", mid="none")

    def test_a_kernel_is_reported_under_the_version_of_its_library(self):
        args = tuple(each.float().numpy() for each in operands())
        proof = ulpscope.assert_precision(numpy_in_float32, args, acc="float32")
        self.assertEqual(proof.data["run"]["versions"], {"numpy-in-float32": {"numpy": numpy.__version__}})
        both = ulpscope.backend("mine", {"matmul": numpy.matmul, "add": torch.add})
        self.assertEqual(both.versions(), {"torch": torch.__version__, "numpy": numpy.__version__})

    def test_other_facets_and_ops(self):
        x, w = operands(torch.float32)

        def rounds_operands(x, w):
            return x.bfloat16().float() @ w.bfloat16().float()

        # A float32 sum of operands that were rounded is one, and not what is meant by a product in float32.
        self.assertIn("in as_is", str(self.refused(rounds_operands, (x, w), acc="float32")))
        ulpscope.assert_precision(rounds_operands, (x, w), acc="float32", operands=None)
        self.assertIn("(in.w as_is, in.x as_is)", str(self.refused(rounds_operands, (x, w), operands={"x": "as_is", "w": "as_is"})))
        ulpscope.assert_precision(lambda x, dim: x.sum(dim), (x, ), op="sum", attrs={"dim": 1}, acc="float32")

    def test_what_is_rounded_inside_an_op_is_no_float32_throughout(self):
        """A total, an inverse deviation, probabilities in bfloat16, in float32 ops: each is 1,000 times as far off as float32 is."""
        torch.manual_seed(0)
        x, (q, k, v) = torch.randn(16, 64), (torch.randn(1, 1, n, 16) for n in (12, 40, 40))
        for op, kernel, args, attrs in (("softmax", short_total, (x, ), {"dim": -1}),
                                        ("rms_norm", short_inverse, (x, ), {"normalized_shape": [64], "eps": 1e-5}),
                                        ("scaled_dot_product_attention", short_probabilities, (q, k, v), {})):
            with self.subTest(op=op):
                exact = getattr(torch.nn.functional, op)(*(each.double() for each in args), **attrs)
                off = (kernel(*args, **attrs).double() - exact).abs().max() / exact.abs().max()
                self.assertGreater(off, 1000 * 2**-24)
                with self.assertRaises(AssertionError):
                    ulpscope.assert_precision(kernel, args, op=op, attrs=attrs, acc="float32")
        # If the rounding is allowed, the sums before it are tested, and hidden by it.
        with self.assertRaises(ulpscope.NotProved) as caught:
            ulpscope.assert_precision(short_total, (x, ), op="softmax", attrs={"dim": -1}, acc="float32", mid=None)
        self.assertIn("seen only behind", str(caught.exception))
        ulpscope.assert_precision(torch.nn.functional.softmax, (x, ), op="softmax", attrs={"dim": -1}, acc="float32")

    def test_a_store_that_nobody_asked_about_violates_nothing(self):
        """Float32 sums, correctly rounded, each stored as one of its two neighbours in bfloat16."""
        x, w = operands()
        exact = x.double() @ w.double()
        off = (either_neighbour(x, w).double() - exact).abs()
        self.assertTrue(bool((off <= exact.abs() * 2**-7).all()))
        self.assertFalse(torch.equal(either_neighbour(x, w), exact.bfloat16()))
        with self.assertRaises(ulpscope.NotProved):
            ulpscope.assert_precision(either_neighbour, (x, w), acc="float32")
        with self.assertRaises(ulpscope.PrecisionError):
            ulpscope.assert_precision(either_neighbour, (x, w), acc="float32", out="bfloat16_rne")

    def test_an_op_without_a_sum_meets_any_accumulator_and_proves_nothing(self):
        x = operands(torch.float32)[0]
        with self.assertRaises(ulpscope.NotProved) as caught:
            ulpscope.assert_precision(torch.mul, (x, x + 1), op="mul", acc="float32")
        self.assertIn("mul has no sum: any acc meets that", str(caught.exception))

    def test_what_proves_nothing_has_a_name_of_its_own(self):
        """One term to a sum: any accumulator gives these bits, so a pass would be a lie."""
        x, w = operands()
        with self.assertRaises(ulpscope.NotProved) as caught:
            ulpscope.assert_precision(in_bfloat16, (x[:, :1], w[:1]), acc="float32")
        self.assertEqual(caught.exception.status, "INCONCLUSIVE")
        self.assertNotIsInstance(caught.exception, ulpscope.PrecisionError)
        self.assertIn("not proved", str(caught.exception))

    def test_a_word_of_another_language_is_one_line_that_says_ours(self):
        for asked, found, ours in (({"acc": "fp32"}, "fp32", "float32"), ({"acc": ["float32", "bf16"]}, "bf16", "bfloat16"),
                                   ({"mid": "half"}, "half", "float16"), ({"operands": "TF32", "acc": "float32"}, "TF32", "tf32_rne")):
            with self.assertRaises(ValueError) as caught:
                ulpscope.assert_precision(in_float32, operands(), **asked)
            text = str(caught.exception)
            self.assertNotIsInstance(caught.exception, AssertionError)
            self.assertEqual(len(text.splitlines()), 1, text)
            self.assertRegex(text, rf"found '{found}', expected .*did you mean '{ours}'\?")
            self.assertTrue(caught.exception.__suppress_context__, "one traceback, of the call")
        with self.assertRaises(ValueError) as caught:
            ulpscope.check(torch.matmul, operands(), backends=["torch-eager"], progress=False,
                           contract={"status": "specified", "accept": {"result": {"acc": "fp32"}}})
        self.assertIn("did you mean 'float32'?", str(caught.exception))

    def test_a_dtype_may_be_given_as_one(self):
        report = ulpscope.assert_precision(in_float32, operands(), acc=torch.float32)
        self.assertEqual(report.case.contract["accept"]["result"]["acc"], "at_least_float32")

    def test_what_repeats_a_result_names_no_file_that_is_gone(self):
        narrow = ulpscope.backend("narrow", {"matmul": in_bfloat16})
        with tempfile.TemporaryDirectory() as folder:
            case = ulpscope.capture(torch.matmul, operands(), name="product")
            case.contract = {"status": "specified", "accept": {case.observe[0]: {"acc": "float32"}}}
            report = ulpscope.check(case, backends=[narrow, "torch-eager"], progress=False, out=folder)
            repeats = {each["backend"]: each["repro"] for each in report.results}
            self.assertFalse(report.ok)
            self.assertNotIn("--adapter", str(report) + " ".join(repeats.values()))
            self.assertRegex(repeats["narrow"], "^# call again what called ulpscope: narrow is made of its functions")
            self.assertRegex(repeats["torch-eager"], "^ulpscope run .*product.yaml -k .* -b torch-eager --seed 0$")

    def test_an_error_of_the_kernels_own_is_raised_as_its_own(self):
        def broken(x, w):
            raise ZeroDivisionError("of my own")

        with self.assertRaisesRegex(ZeroDivisionError, "of my own"):
            ulpscope.assert_precision(broken, operands(), acc="float32")
        with self.assertRaisesRegex(ValueError, "nothing is asked"):
            ulpscope.assert_precision(in_float32, operands())
        with self.assertRaisesRegex(ValueError, "no such op: matmull"):
            ulpscope.backend("mine", {"matmull": in_float32})

    def test_a_result_of_another_shape_is_refused(self):
        def transposed(x, w):
            return in_float32(x, w).T.contiguous()

        x, w = operands()
        with self.assertRaises(ulpscope.PrecisionError) as caught:
            ulpscope.assert_precision(transposed, (x[:8], w), acc="float32")
        self.assertIn("result is of shape bfloat16[16, 8], where the program has bfloat16[8, 16]", str(caught.exception))

    def test_a_kernel_that_fails_on_other_inputs_is_not_proved(self):
        """It runs once on the caller's own, and raises when the harness runs it."""
        calls = []

        def once(x, w):
            calls.append(x)
            if len(calls) > 1:
                raise RuntimeError("only once")
            return in_float32(x, w)

        with self.assertRaisesRegex(ulpscope.NotProved, "only once"), contextlib.redirect_stderr(io.StringIO()):
            ulpscope.assert_precision(once, operands(), acc="float32")


class Check(unittest.TestCase):
    def test_a_kernel_inside_a_block(self):
        """The kernel's steps part from PyTorch's, by name; every other step is PyTorch's own. Both are this process's."""
        torch.manual_seed(3)
        block, x = blocks.SwiGlu(), torch.randn(6, 16).bfloat16()
        seen = []

        def linear(x, weight):
            seen.append(os.getpid())
            return in_bfloat16(x, weight.t())

        threads = torch.get_num_threads()
        with tempfile.TemporaryDirectory() as folder:
            report = ulpscope.check(block, (x, ), backends=["torch-eager", ulpscope.backend("mine", {"linear": linear})], out=folder)
        self.assertEqual(torch.get_num_threads(), threads)
        self.assertEqual(set(seen), {os.getpid()})
        self.assertTrue(any("mine likely accumulates `g_linear` in bfloat16" in each for each in report.findings), report.findings)
        steps = {value: label for value, _, label in report.steps("mine")}
        self.assertEqual(steps["h_mul"], dict((value, label) for value, _, label in report.steps("torch-eager"))["h_mul"])
        self.assertEqual(report.own, {"torch-eager": {"result": ""}})
        self.assertRegex(str(report), r"\Aevery difference is rounding: .* all of it\n  1  precision: ")
        self.assertIn("<td>result</td>", report._repr_html_())

    def test_a_wrong_place_fails_though_nothing_is_asked(self):
        """Whole numbers have no precision: those that the program does not give are wrong."""

        def of_the_largest_size(x, dim):
            return torch.argmax(x.abs(), dim)

        x = torch.tensor([[1.0, -3.0, 2.0], [4.0, -1.0, 2.0]])
        mine = ulpscope.backend("mine", {"argmax": of_the_largest_size})
        report = ulpscope.check(lambda x: x.argmax(1), (x, ), backends=["torch-eager", mine], verify=())
        self.assertFalse(report.ok)
        self.assertIn("not what the program gives in 1 of 2 elements, first [0] = 1 against 2", str(report))

    def test_findings_stand_once_and_name_every_value(self):
        """The console's own list is left out below the findings, and with it the hint how to list the rest."""
        data = {"results": [], "not_finite": [], "findings": [
            {"kind": "value", "sentence": "a differs from b in `w.grad` (3 of 4 elements).", "also": ["v.grad", "u.grad"], "moves_nothing": False},
            {"kind": "precision", "sentence": "a rounds `y`; b does not.", "also": ["z"], "moves_nothing": False},
            {"kind": "precision", "sentence": "a rounds `idle`; b does not.", "also": [], "moves_nothing": True},
            {"kind": "bits", "sentence": "a differs from b in `x`.", "also": [], "moves_nothing": False}]}
        head = "ulpscope  1 case x 2 backends\n\n2 divergences, and 1 of bits only"
        console = (head + " (-v lists them)\n    1  value      mine  w.grad\n"
                   "       a differs from b in `w.grad` (3 of 4 elements).\n\n2 PASS\n")
        report = reporting.Report(findings=reporting.findings_of(data), matrix={}, results=[], run_dir=pathlib.Path(), console=console,
                                  exit_code=0, tables=head + "\n\n2 PASS\n")
        self.assertEqual(report.findings, [
            "value: a differs from b in `w.grad` (3 of 4 elements). The same in `v.grad` and `u.grad`.",
            "precision: a rounds `y`; b does not. The same in `z`.", "bits: a differs from b in `x`.",
            "1 more of steps that move no bit of an observed value (report.data['findings'] has them)"])
        said = str(report)
        self.assertEqual(said.count("a differs from b in `w.grad`"), 1)
        self.assertIn("\n\n2 divergences, and 1 of bits only\n\n2 PASS\n", said)
        self.assertNotIn("-v lists them", said)
        page = report._repr_html_()
        self.assertIn("<li>precision: a rounds <code>y</code>; b does not. The same in <code>z</code>.</li>", page)
        report.findings = ["outcome: a raises E (\"`x' <is> no\"); b returns `y` as `<b>`."]
        self.assertIn("(&quot;`x&#x27; &lt;is&gt; no&quot;); b returns <code>y</code> as <code>&lt;b&gt;</code>.</li>", report._repr_html_())

    def test_steps_are_judged_where_judging_as_one_takes_long(self):
        """Every step may be observed, and whether that changes the result is found out; the program as it is, is what is judged."""
        torch.manual_seed(3)
        block, x = blocks.SwiGlu(), torch.randn(6, 16).bfloat16()
        case = ulpscope.capture(block, (x, ), verify=())
        self.assertEqual([checking._how(case, steps, None) for steps in ("auto", "observed")], ["asked", "observed"])
        with tempfile.TemporaryDirectory() as folder:
            report = ulpscope.check(block, (x, ), backends=["torch-eager"], steps="observed", out=folder, verify=())
        self.assertEqual(report.changed, {"torch-eager": []})
        self.assertEqual(report.own, {"torch-eager": {"result": ""}})
        self.assertEqual(report.matrix["h_rsqrt"]["torch-eager"], dict((each[0], each[2]) for each in report.steps("torch-eager"))["h_rsqrt"])
        self.assertEqual(report.case.observe, ["result"])
        observing = checking._observing

        def another(case):
            shown = observing(case)
            shown.steps = [*shown.steps[:-1], Step("sub", ("x", "y"), "result")]
            return shown

        with unittest.mock.patch.object(checking, "_observing", another):
            report = ulpscope.check(block, (x, ), backends=["torch-eager"], steps="observed", verify=())
        self.assertEqual(report.changed, {"torch-eager": ["result"]})
        self.assertIn("torch-eager gives other bits of `result` where every step is observed", report.findings[-1])

    def test_behind_an_op_without_a_reference_steps_are_judged_from_what_it_gave(self):
        x, weight = (each.float() for each in operands())
        report = ulpscope.check(blocks.turned, (x, weight), backends=["torch-eager"])
        self.assertEqual(report.notes, [])
        labels = {value: label for value, _, label in report.steps("torch-eager")}
        self.assertEqual(labels["back"], "no reference")
        for value in ("first", "scores", "result"):
            self.assertRegex(labels[value], "float32|float64", value)
        self.assertEqual(report.matrix["result"]["torch-eager"], labels["result"])

    def test_an_op_without_a_reference_is_a_part_of_its_own(self):
        x, weight = (each.float() for each in operands())
        report = ulpscope.check(blocks.turned, (x, weight), backends=["torch-eager"], steps="parts")
        self.assertIn("run in 3 parts", report.notes[0])
        self.assertIn("aten::special_i0e have no exact reference", report.notes[0])
        self.assertEqual(len(report.notes), 1, "a part computes other bits than the whole")
        labels = {value: row["torch-eager"] for value, row in report.matrix.items()}
        self.assertEqual(labels["back"], "no reference")
        for value in ("first", "scores", "result"):
            self.assertRegex(labels[value], "float32|float64", value)
        self.assertIn("run in 3 parts", str(report))

        def strip(x, weight):
            return (x @ weight).diagonal() * 2

        case = ulpscope.capture(strip, (x, weight), verify=())
        self.assertEqual([step.op for step in case.steps], ["matmul", "aten::diagonal", "mul"])
        self.assertEqual([part.ops() for part in splitting.split(case)[0]], [["matmul"], ["mul"]])

    def test_two_backends_at_once_and_no_process_left(self):
        x, w = operands()
        made = [ulpscope.backend("narrow", {"matmul": in_bfloat16}), ulpscope.backend("wide", {"matmul": in_float32})]
        report = ulpscope.check(torch.matmul, (x, w), backends=made, name="product")
        self.assertRegex(report.findings[0], "precision: narrow likely accumulates `result` in bfloat16.*; wide likely does not")
        self.assertTrue(report.ok)
        left = [child for thread in pathlib.Path("/proc/self/task").iterdir() for child in (thread / "children").read_text().split()
                if b"ulpscope" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes()]
        self.assertEqual(left, [])


def kernels_name(kernel):
    return kernel.__name__.replace("_", "-")


if __name__ == "__main__":
    unittest.main()
