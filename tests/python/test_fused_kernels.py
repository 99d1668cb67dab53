#!/usr/bin/env python3
"""Kernels judged beside a program of several steps: right ones pass, narrow ones are refused by name, an open verdict names what would decide it."""
import math
import pathlib
import re
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "harness/python"), str(ROOT / "backends/python"), str(ROOT / "tests/support"), str(pathlib.Path(__file__).parent)]

import fused_kernels  # noqa: E402
import numpy  # noqa: E402
import test_precision  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import ulpscope  # noqa: E402
from fused_kernels import BF16, F16, KERNELS  # noqa: E402
from ulpscope import enclosing, evaluating, formats, fused, fusing, narrowing, referenced  # noqa: E402

setUpModule = test_precision.setUpModule


def drawn(*shape, dtype=BF16, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def product(x, w):
    return x @ w


def flash(block=32, backwards=False, rounds=True, total_of_rounded=False, scores=lambda s: s, total=lambda s: s, result=lambda s: s):
    """Causal attention block by block; what is done to scores, to the total and to the result after each block."""
    def kernel(q, k, v):
        largest, l = torch.full((*q.shape[:-1], 1), -math.inf), torch.zeros(*q.shape[:-1], 1)
        o, starts = torch.zeros(*q.shape[:-1], v.shape[-1]), range(0, k.shape[-2], block)
        for first in reversed(starts) if backwards else starts:
            s = scores(q.float() @ k[..., first:first + block, :].float().transpose(-1, -2) * q.shape[-1]**-0.5)
            seen = torch.arange(q.shape[-2])[:, None] >= torch.arange(first, first + s.shape[-1])[None]
            s = torch.where(seen, s, -math.inf)
            now = torch.maximum(largest, s.amax(-1, keepdim=True))
            base = torch.where(now == -math.inf, 0.0, now)
            p, left = torch.exp(s - base), torch.exp(largest - base)
            rounded = p.to(v.dtype).float() if rounds else p
            l = total(l * left + (rounded if total_of_rounded else p).sum(-1, keepdim=True))
            o = result(o * left + rounded @ v[..., first:first + block, :].float())
            largest = now
        return (o / l).to(v.dtype)

    return kernel


def advised(report):
    """Operands of the shapes that the advice names."""
    shapes = [[int(size) for size in each.split(",")] for each in re.findall(r"as \[(.*?)\]", report.advice)]
    return tuple(drawn(*shape, seed=100 + i) for i, shape in enumerate(shapes))


def to_bf16(x):
    return x.to(BF16).float()


def cut_sums(a, b):
    total = torch.zeros(*a.shape[:-1], b.shape[-1])
    for k in range(0, a.shape[-1], 32):
        total = ((total + a[..., k:k + 32].float() @ b[..., k:k + 32, :].float()).view(torch.int32) & ~0x3ff).view(torch.float32)
    return total.to(BF16)


class Judged(unittest.TestCase):
    def judged(self, kernel, args, reference, **how):
        """The report, whatever the answer."""
        try:
            return ulpscope.assert_precision(kernel, args, reference=reference, **how)
        except (ulpscope.PrecisionError, ulpscope.NotProved) as error:
            self.assertIs(type(error), ulpscope.PrecisionError if error.report.status == "FAIL" else ulpscope.NotProved)
            error.report.text = str(error)
            return error.report

    def open(self, kernel, args, reference, reason, advice, **how):
        """An answer that is open, and ends with one line of advice."""
        report = self.judged(kernel, args, reference, **how)
        self.assertEqual(report.status, "INCONCLUSIVE", report)
        self.assertRegex(report.reason, reason)
        self.assertRegex(report.text.splitlines()[-1], "  advice   .*" + advice)
        return report

    def decides(self, kernel, args, reference, status="PASS", **how):
        report = self.judged(kernel, args, reference, **how)
        self.assertEqual(report.status, status, report)
        return report


class Twelve(Judged):
    def test_right_ones_pass_and_narrow_ones_are_refused_by_name(self):
        rows, right = [], 0
        for name, each in KERNELS.items():
            for kind, status in (("right", "PASS"), ("narrow", "FAIL")):
                with self.subTest(kernel=name, kind=kind):
                    report = self.judged(getattr(each, kind), each.args, each.reference, acc="float32")
                    rows.append(f"{name:20} {kind:6} {report.status:12} {report.computed:5.1f} s, {report.seconds:5.1f} by the clock  {report.reason}")
                    self.assertEqual(report.status, status, report)
                    self.assertLess(report.computed, 20)
                    if kind == "narrow":
                        self.assertRegex(report.reason, each.narrow_says)
                        self.assertIsNotNone(report.witness)
                        self.assertFalse(report.witness["low"] <= report.witness["observed"] <= report.witness["high"])
                    else:
                        self.assertGreater(len(report.excluded), 5)
                        self.assertEqual(report.left, [])
                    right += 1
        print("\n" + "\n".join(rows))
        self.assertEqual(right, 24)


class Attention(Judged):
    args = tuple(drawn(1, 2, 96, 16, seed=seed) for seed in (41, 42, 43))

    def test_known_forms_pass(self):
        """Blocks of several sizes, the last one first, probabilities not rounded, or rounded once they are divided."""
        def divided(q, k, v):
            s = q.float() @ k.float().transpose(-1, -2) * q.shape[-1]**-0.5
            s = s.masked_fill(~torch.ones(96, 96, dtype=torch.bool).tril(), -math.inf)
            return (torch.softmax(s, -1).to(BF16).float() @ v.float()).to(BF16)

        for kernel in (flash(16), flash(64), flash(32, backwards=True), flash(32, total_of_rounded=True), flash(32, rounds=False), flash(96),
                       divided):
            self.decides(kernel, self.args, fused_kernels.attention)

    def test_narrow_ones_do_not(self):
        for narrow, said in ((flash(32, scores=to_bf16), "scores"), (flash(32, total=to_bf16), "the total"),
                             (flash(48, result=to_bf16), "second product"), (flash(1000, scores=to_bf16), "scores")):
            report = self.decides(narrow, self.args, fused_kernels.attention, "FAIL")
            self.assertIn(said, report.reason)
            self.assertIn("bfloat16", report.reason)


class Programs(Judged):
    """One reference, other kernels of it: none that is right is refused, none that is narrow passes."""

    def test_right_ones_in_other_forms(self):
        x, r, w, b = drawn(16, 128, seed=51), drawn(16, 128, seed=52), drawn(128, seed=53), drawn(128, seed=54)

        def two_passes(x, r, w, b):
            s = x.float() + r.float()
            mean = s.mean(-1, keepdim=True)
            return ((s - mean) / torch.sqrt(((s - mean)**2).mean(-1, keepdim=True) + 1e-5) * w.float() + b.float()).to(BF16)

        def logistic_by_tanh(x, g, u):
            g, u = x.float() @ g.float(), x.float() @ u.float()
            return (g * u * (0.5 + 0.5 * torch.tanh(0.5 * g))).to(BF16)

        self.decides(two_passes, (x, r, w, b), fused_kernels.layer_norm_residual)
        self.decides(logistic_by_tanh, KERNELS["swiglu"].args, fused_kernels.swiglu)
        of_logsumexp = lambda x: torch.exp(x.float() - torch.logsumexp(x.float(), -1, keepdim=True)).to(F16)  # noqa: E731
        self.decides(of_logsumexp, KERNELS["softmax"].args, fused_kernels.softmax)

    def test_narrow_ones_in_other_places(self):
        x, q, scale = KERNELS["int8_gemm"].args
        for narrow, said in ((lambda x, q, s: (x.float() @ to_bf16(q.float() * s)).to(BF16), "cast_2 times scale rounded to bfloat16"),
                             (lambda x, q, s: (x.float() @ q.float() * to_bf16(s)).to(BF16), "scale read as bfloat16"),
                             (lambda x, q, s: (to_bf16(x.float() @ q.float()) * s).to(BF16), "matmul rounded to bfloat16")):
            self.assertRegex(self.decides(narrow, (x, q, scale), fused_kernels.int8_gemm, "FAIL").reason, said)
        # Sums that keep 13 bits, cut, as units for 8-bit operands do: named as none, and refused.
        report = self.decides(cut_sums, KERNELS["batched_gemm"].args, torch.bmm, "FAIL")
        self.assertIn("results that no float32 evaluation gives", report.reason)
        # One column alone.
        some = lambda a, b: torch.cat((right(a, b[..., 1:]), narrow(a, b[..., :1])), -1)  # noqa: E731
        right, narrow = fused_kernels.right_batched_gemm, fused_kernels.narrow_batched_gemm
        self.decides(some, KERNELS["batched_gemm"].args, torch.bmm, "FAIL")
        power = lambda x: torch.exp(x.float() - x.float().amax(-1, keepdim=True)).to(F16).float()  # noqa: E731
        for narrow in (lambda x: (power(x) / power(x).sum(-1, keepdim=True)).to(F16), lambda x: to_bf16(torch.softmax(x.float(), -1)).to(F16)):
            self.decides(narrow, KERNELS["softmax"].args, fused_kernels.softmax, "FAIL")

    def test_two_products_in_one_kernel(self):
        """A hidden layer that stays in registers, rounded for the second product as in the reference, or unlike it not rounded."""
        def layers(x, up, down):
            hidden = torch.relu(x @ up)
            return hidden @ down

        def rounded(x, up, down):
            return torch.relu(x.float() @ up.float()).to(BF16) @ down

        args = drawn(32, 64, seed=75), drawn(64, 96, seed=76), drawn(96, 32, seed=77)
        hidden = lambda x, up: torch.relu(x.float() @ up.float())  # noqa: E731
        wide = lambda x, up, down: (hidden(x, up) @ down.float()).to(BF16)  # noqa: E731
        narrow = lambda x, up, down: (to_bf16(hidden(x, up)) @ down.float()).to(BF16)  # noqa: E731
        self.decides(wide, args, layers)
        self.assertRegex(self.decides(narrow, args, layers, "FAIL").reason, "hidden(_matmul)? rounded to bfloat16")
        self.decides(narrow, args, rounded)
        self.decides(wide, args, rounded)

    def test_float32_results(self):
        x, w = drawn(32, 64, dtype=torch.float32, seed=61), drawn(64, 32, dtype=torch.float32, seed=62)
        self.decides(product, (x, w), product)
        report = self.decides(lambda x, w: to_bf16(x) @ to_bf16(w), (x, w), product, "FAIL")
        self.assertIn("every operand read as bfloat16", report.reason)
        report = self.decides(lambda x, w: formats.rounded(x, "tf32").float() @ formats.rounded(w, "tf32").float(), (x, w), product, "FAIL")
        self.assertIn("every operand read as float16 or tf32", report.reason)

    def test_a_cast_of_the_reference_may_be_left_out_and_mid_allows_more(self):
        """The hidden value of a norm as it is written in many models."""
        def norm(x, w):
            wide = x.float()
            return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w

        x, w = drawn(32, 128, seed=71), drawn(128, seed=72)
        report = self.decides(norm, (x, w), norm)
        self.assertIn("rounded to bfloat16", report.form)
        unrounded = lambda x, w: (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6) * w.float()).to(BF16)  # noqa: E731
        self.assertIn("not rounded", self.decides(unrounded, (x, w), norm).form)
        hidden = lambda x, w: F.relu(to_bf16(x.float() @ w.float()) + 1).to(BF16)  # noqa: E731

        def whole(x, w):
            hidden = x @ w
            return F.relu(hidden + 1)

        args = drawn(32, 64, seed=73), drawn(64, 32, seed=74)
        self.decides(hidden, args, whole, "FAIL")
        self.decides(hidden, args, whole, mid={"hidden": "bfloat16"})
        with self.assertRaisesRegex(ValueError, "the reference has no value 'hiden'; it has hidden, "):
            ulpscope.assert_precision(hidden, args, reference=whole, mid={"hiden": "bfloat16"})

    def test_numpy_and_jax_arrays_modules_cases_and_numbers(self):
        x, w = (numpy.random.default_rng(0).standard_normal(shape).astype("f4") for shape in ((16, 32), (32, 16)))
        self.decides(numpy.matmul, (x, w), product)
        import jax.numpy
        self.decides(jax.numpy.matmul, (jax.numpy.asarray(x), jax.numpy.asarray(w)), jax.numpy.matmul)
        torch.manual_seed(3)  # with other weights a read in float16 may look the same
        module = torch.nn.Linear(64, 32, dtype=BF16)
        self.decides(lambda x: (x.float() @ module.weight.float().T + module.bias.float()).to(BF16), (drawn(16, 64), ), module)
        args = drawn(16, 64, seed=81), drawn(64, 16, seed=82)
        case = ulpscope.capture(product, args, verify=())
        before = [each.tensor for each in case.inputs]
        self.decides(lambda x, w: (x.float() @ w.float()).to(BF16), (args[1].T.contiguous(), args[0].T.contiguous()), case)
        self.assertTrue(all(a is b.tensor for a, b in zip(before, case.inputs)))
        self.decides(lambda x, scale: (x.float() * scale).to(BF16), (args[0], 1.7), torch.mul)
        self.decides(lambda x, y: (x.float() * y.float()).to(BF16), (args[0], args[0]), torch.mul)  # one tensor twice

    def test_another_shape_dtype_or_program(self):
        args = drawn(32, 64, seed=83), drawn(64, 16, seed=84)
        for kernel, said in ((lambda x, w: (x.float() @ w.float()).to(BF16).T, r"shape bfloat16\[16, 32\], where .* has bfloat16\[32, 16\]"),
                             (lambda x, w: (x.float() @ w.float() * 2).to(BF16), "it computes something else")):
            self.assertRegex(self.decides(kernel, args, product, "FAIL").reason, said)
        report = self.decides(lambda x, w: (x @ w).to(BF16), tuple(each.float() for each in args), product, "FAIL")
        self.assertIn("stored in bfloat16, and the reference gives float32", report.reason)
        with self.assertRaisesRegex(ValueError, "op cumsum: no float32 evaluation of it is known, at .*test_fused_kernels.py"):
            ulpscope.assert_precision(lambda x: x, args[:1], reference=lambda x: x.cumsum(0))
        with self.assertRaisesRegex(ValueError, "reference= asks for float32 throughout"):
            ulpscope.assert_precision(product, args, reference=product, acc="bfloat16")
        with self.assertRaisesRegex(ZeroDivisionError, "my own"):
            ulpscope.assert_precision(unittest.mock.Mock(side_effect=ZeroDivisionError("my own")), args, reference=product)

    def test_keep_names_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            each = KERNELS["gemv"]
            with self.assertRaises(ulpscope.PrecisionError):
                ulpscope.assert_precision(each.narrow, each.args, reference=each.reference, keep=folder)
            self.assertIn("gemv: FAIL, result accumulated in bfloat16", pathlib.Path(folder, "report.txt").read_text(encoding="utf-8"))
            self.assertTrue(pathlib.Path(folder, "gemv.yaml").is_file())


class Open(Judged):
    """An open verdict names what would decide it; and that does."""
    args = drawn(32, 64, seed=91), drawn(64, 32, seed=92)

    def test_another_store(self):
        def cut(x, w):
            return ((x.float() @ w.float()).view(torch.int32) & ~0xffff).view(torch.float32).to(BF16)

        self.open(cut, self.args, product, "neighbours of the float32 ones", 'out="bfloat16_rz"')
        self.decides(cut, self.args, product, out="bfloat16_rz")
        self.decides(fused_kernels.narrow_gemv, KERNELS["gemv"].args, fused_kernels.gemv, "FAIL", out="bfloat16_rz")
        self.open(test_precision.either_neighbour, self.args, product, "neighbours", "returns its float32 result, before the store")
        self.decides(lambda x, w: x.float() @ w.float(), self.args, product)

    def test_a_sum_of_one_term(self):
        x, w = self.args
        right = lambda x, w: (x.float() @ w.float()).to(BF16)  # noqa: E731
        self.open(right, (x[:, :1], w[:1]), product, "of one term, .* shows nowhere", "whose sums have 64 terms")
        self.decides(right, (x, w), product)

    def test_few_results(self):
        kernel, reference = fused_kernels.right_gemm_bias_gelu, fused_kernels.gemm_bias_gelu
        report = self.open(kernel, (drawn(2, 64, seed=93), drawn(64, 4, seed=94), drawn(4, seed=95)), reference, "the inputs do not decide",
                           r"larger operands: x .* as \[128, 64\], w .* as \[64, 128\], b .* as \[128\]")
        self.decides(kernel, advised(report), reference)

    def test_no_time(self):
        right = lambda x, w: (x.float() @ w.float()).to(BF16)  # noqa: E731
        with unittest.mock.patch.object(fused, "SECONDS", 0.5):
            report = self.open(right, (drawn(512, 2048, seed=97), drawn(2048, 512, seed=98)), product, "not decided in 0.5 s",
                               "smaller operands: x .* as ")
        self.assertLess(report.computed, 3)
        self.decides(right, advised(report), product)

    def test_a_form_that_is_not_known(self):
        args = tuple(drawn(1, 1, 80, 16, seed=seed) for seed in (44, 45, 46))
        self.open(flash(40), args, fused_kernels.attention, "no form of the reference that is known", "blocks and casts into the reference")
        self.decides(flash(40), args, flash(40))

    def test_arguments_with_a_structure(self):
        """Weights that sum up to three: the kernel divides by that."""
        x, weights = drawn(16, 64, seed=47), torch.full((64, ), 0.5) + torch.arange(64) % 2
        weights = weights / weights.sum() * 3
        kernel = lambda x, weights: (x.float() @ weights / 3).to(BF16)  # noqa: E731
        mean = lambda x, weights: (x.float() @ weights / weights.sum()).to(BF16)  # noqa: E731
        self.open(kernel, (x, weights), mean, "computes something else than the reference, and not on the arguments", "close over the arguments")
        self.decides(lambda x: kernel(x, weights), (x, ), lambda x: mean(x, weights))
        targets = F.one_hot(torch.arange(16), 64).float()
        self.decides(lambda x, t: torch.logsumexp(x.float(), -1) - (x.float() * t).sum(-1), (x, targets),
                     lambda x, t: -(torch.log_softmax(x.float(), -1) * t).sum(-1))

    def test_what_an_op_leaves_open(self):
        """A matrix times a vector with a bfloat16 result, requested as an op; followed once, the advice decides."""
        each = KERNELS["gemv"]
        with self.assertRaises(ulpscope.NotProved) as caught:
            ulpscope.assert_precision(each.right, each.args, acc="float32")
        self.assertRegex(str(caught.exception).splitlines()[-1], "  advice   ask with reference=torch.matmul in the place of op=")
        self.decides(each.right, each.args, torch.matmul)
        self.decides(each.narrow, each.args, torch.matmul, "FAIL")
        x = drawn(16, 64, dtype=torch.float32)
        with self.assertRaises(ulpscope.NotProved) as caught:
            ulpscope.assert_precision(test_precision.short_total, (x, ), op="softmax", attrs={"dim": -1}, acc="float32", mid=None)
        self.assertRegex(str(caught.exception).splitlines()[-1], "  advice   leave mid=None out")
        with self.assertRaises(ulpscope.PrecisionError):
            ulpscope.assert_precision(test_precision.short_total, (x, ), op="softmax", attrs={"dim": -1}, acc="float32")

    def test_an_op_takes_numbers(self):
        x = drawn(16, 64, dtype=torch.float32)
        ulpscope.assert_precision(lambda x, factor: x * factor, (x, 3.0), op="mul", mid="none", out="float32_rne")


REFERENCES = {
    "add": (lambda x, y: x + y, (8, 32), (8, 32)),
    "sub": (lambda x, y: x - y, (8, 32), (8, 32)),
    "mul": (lambda x, y: x * y, (8, 32), (8, 32)),
    "div": (lambda x, y: x / y, (8, 32), (8, 32)),
    "sum": (lambda x: x.sum(1), (8, 32)),
    "exp": (lambda x: torch.exp(x), (8, 32)),
    "layer_norm": (lambda x, w: F.layer_norm(x, (32, ), w, None, 1e-3), (8, 32), (32, )),
    "rms_norm": (lambda x, w: F.rms_norm(x, (32, ), w, 1e-3), (8, 32), (32, )),
    "gelu": (lambda x: F.gelu(x) + F.gelu(x, approximate="tanh"), (8, 32)),
    "glu": (lambda x: F.glu(x) * F.silu(x[:, :16]), (8, 32)),
    "log_softmax": (lambda x: torch.log_softmax(x, 0), (8, 32)),
    "linear": (lambda x, w, b: torch.relu(F.linear(x, w, b)), (8, 32), (16, 32), (16, )),
    "addmm": (lambda c, a, b: torch.addmm(c, a, b, alpha=0.5, beta=2), (16, ), (8, 32), (32, 16)),
    "einsum": (lambda a, b: torch.einsum("bhd,cdh->cb", a, b), (8, 4, 16), (3, 16, 4)),
    "einsum batch": (lambda a, b: torch.einsum("bid,bjd->bji", a, b), (2, 8, 16), (2, 5, 16)),
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.3), (1, 2, 8, 16), (1, 2, 12, 16), (1, 2, 12, 16)),
    "grouped": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True), (1, 4, 8, 16), (1, 2, 8, 16),
                (1, 2, 8, 16)),
    "masked": (lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m > -1), (1, 2, 8, 16), (1, 2, 8, 16), (1, 2, 8, 16), (8, 8)),
    "softmax product": (lambda s, v: torch.softmax(s * 2, -1) @ v, (2, 8, 32), (2, 32, 16)),
    "variance": (lambda x: x.var(1, correction=0) + x.mean() + x.amax(1) - x.abs().amin(1), (8, 32)),
    "where": (lambda x, y: torch.where(x > 0, x.exp(), y.clamp(-1, 1)).masked_fill(y > 1, 0.5), (8, 32), (8, 32)),
    "moves": (lambda x: torch.cat((x.roll(1, 0), -x.flip(1)), 1).tril().t().reshape(4, -1).sum(0, keepdim=True), (8, 32)),
    "functions": (lambda x: x.sin() * x.cos() + x.abs().sqrt().sigmoid() - x.exp2().log1p().reciprocal() + x.pow(3) + (x * x + 1).pow(-0.5), (8, 32)),
}


class Enclosure(Judged):
    """The enclosure of a conforming evaluation holds PyTorch's float32 result, and is centred on its float64 one."""

    def programs(self, name):
        f, *shapes = REFERENCES[name]
        args = tuple(drawn(*shape, dtype=torch.float32, seed=i) for i, shape in enumerate(shapes))
        case, stored, places = referenced._captured(f, args, {})
        dtypes, forms = {key: formats.name_of(each) for key, each in stored.items()}, {key: tuple(each.shape) for key, each in stored.items()}
        result = case.observe[0]
        programs = fusing.programs(case, dtypes, forms, {result: "float32"})
        inputs = {each.name: each.tensor for each in case.inputs}
        return f, [args[places[each]] for each in inputs], inputs, programs, result

    def test_exact_values_are_those_of_float64(self):
        for name in REFERENCES:
            with self.subTest(name=name):
                f, args, inputs, programs, result = self.programs(name)
                exact = f(*(each.double() for each in args))
                for program in programs:
                    ball = evaluating.evaluate(program, inputs, enclosing.Enclosing())[result]
                    plain = evaluating.evaluate(program, inputs, narrowing.Plain())[result]
                    self.assertTrue(torch.allclose(ball.v, exact, rtol=1e-12, atol=1e-12), (name, (ball.v - exact).abs().max()))
                    self.assertTrue(torch.allclose(plain, exact, rtol=1e-12, atol=1e-12), name)
                own = f(*args).double()
                self.assertTrue(bool(((own - ball.v).abs() <= ball.e).all()), name)
                # And is no wider than some dozens of units for what does not cancel.
                self.assertLess(float((ball.e / (ball.m + 1e-30)).median()), 2000 * 2.0**-24, name)

    def test_every_order_of_a_sum_is_inside(self):
        x, w = drawn(16, 300, dtype=torch.float32, seed=1), drawn(300, 16, dtype=torch.float32, seed=2)
        ball = enclosing.Enclosing().matmul(enclosing.exact(x), enclosing.exact(w))
        total = torch.zeros(16, 16)
        for k in torch.randperm(300, generator=torch.Generator().manual_seed(3)).tolist():
            total += x[:, k:k + 1] * w[k:k + 1]
        off = (total.double() - ball.v).abs()
        self.assertTrue(bool((off <= ball.e).all()))
        self.assertFalse(bool((off <= ball.e / 1000).all()))

    def test_roundings_are_those_of_pytorch(self):
        x = drawn(1000, dtype=torch.float64, seed=4) * torch.exp2(drawn(1000, dtype=torch.float64, seed=5) * 8)
        for name in ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"):
            dtype = getattr(torch, name)
            near = formats.rounded(x.clamp(-400, 400), name)
            self.assertTrue(torch.equal(near.to(dtype).double(), near))
            for side in (-1, 1):
                beside = formats.neighbour(near, name, side)
                self.assertTrue(bool(((beside - near) * side > 0).all()), name)
                middle = formats.rounded((beside + near) / 2 + (near - beside) * 1e-3, name)
                self.assertTrue(torch.equal(middle, near), name)
            cut = formats.stored(x.clamp(-400, 400), name, "rz")
            self.assertTrue(bool((cut.abs() <= x.abs()).all()))


if __name__ == "__main__":
    unittest.main()
