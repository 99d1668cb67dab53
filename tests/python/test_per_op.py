#!/usr/bin/env python3
"""check_ops(): every op of a real eager run, with the operands that it had; what a graph cannot hold runs and is judged all the same."""
import collections
import contextlib
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / each) for each in ("harness/python", "backends/python", "tests/support", "tests/models")]

import architectures  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
import ulpscope  # noqa: E402
from programs import call  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from ulpscope import recording  # noqa: E402


@torch.library.custom_op("perop::gated", mutates_args=())
def gated(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    inner = torch.sigmoid(g.float()).bfloat16()
    return (x.float() * g.float() * inner.float()).to(x.dtype)


@gated.register_fake
def _(x, g):
    return torch.empty_like(x)


def meant(x, g):
    """The intended computation of gated(): its sigmoid unrounded."""
    return (x.float() * torch.nn.functional.silu(g.float())).to(x.dtype)


def branching(x, w, g):
    h = x @ w
    if h.float().sum() > 0:
        h = h * 1.5
    else:
        h = h * 0.75
    rows = torch.nonzero(h[:, 0] > 0)[:, 0]
    kept = torch.masked_select(h, h > 0.25)
    total = kept.float().sum()
    return torch.softmax(gated(h[rows], g[rows]).float(), -1), total


def inputs(seed=0):
    torch.manual_seed(seed)
    return torch.randn(48, 32).bfloat16(), torch.randn(32, 64).bfloat16(), torch.randn(48, 64).bfloat16()


class Counts(TorchDispatchMode):
    """PyTorch's own calls, counted by a mode that shares nothing with the package's."""

    def __init__(self):
        super().__init__()
        self.found = collections.Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace != "profiler":
            self.found[str(func).replace(".", "::", 1).removesuffix(".default")] += 1
        return func(*args, **(kwargs or {}))


def counted(f, args):
    with Counts() as counts:
        f(*args)
    return counts.found


def by_op(report):
    """The same from the rows of a report; of ops that a custom op's own Python calls nothing is said there."""
    found = collections.Counter()
    for row in report.rows:
        if not row.inside:
            found[row.op] += row.calls
    return found


def rows(report, op):
    return [row for row in report.rows if row.op == f"aten::{op}"]


def same(one, other):
    """Whether two tensors have the same dtype, shape and bits."""
    bits = [each.contiguous().reshape(-1).view(torch.uint8) for each in (one, other)]
    return one.dtype == other.dtype and one.shape == other.shape and torch.equal(*bits)


def quiet(f, args, **keywords):
    return ulpscope.check_ops(f, args, progress=False, **keywords)


@contextlib.contextmanager
def instead(op, kernel):
    """PyTorch with this function as its kernel of an op, in this process."""
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl(op, kernel, "CPU")
        yield


class WhatNoGraphHolds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.args = inputs()
        cls.report = quiet(branching, cls.args)

    def test_it_cannot_be_captured(self):
        with self.assertRaises(ulpscope.CaptureError) as refused:
            ulpscope.capture(branching, self.args)
        self.assertIn(refused.exception.reason, (ulpscope.Reason.DATA_DEPENDENT, ulpscope.Reason.EXPORT))

    def test_the_branch_and_the_shapes_are_those_of_the_run(self):
        x, w, _ = self.args
        h = x @ w
        factor = 1.5 if h.float().sum() > 0 else 0.75
        scaled = next(row for row in rows(self.report, "mul.Tensor") if not row.inside)
        self.assertEqual(scaled.arguments, [repr(factor)])
        self.assertEqual(scaled.calls, 1)
        chosen = next(row for row in rows(self.report, "masked_select"))
        self.assertTrue(same(chosen.call.results[0], (h * factor)[h * factor > 0.25]))
        self.assertIn(f"f32[{chosen.call.results[0].numel()}]", rows(self.report, "sum")[-1].operands[0])
        for each in ("mm", "masked_select", "index.Tensor", "_softmax", "sigmoid"):
            self.assertTrue(all(row in self.report.judged for row in rows(self.report, each)), each)
            self.assertTrue(rows(self.report, each), each)

    def test_what_is_outside_has_a_reason_of_the_closed_list_and_its_share(self):
        outside = {row.op: row.reason for row in self.report.rows if row.reason is not None}
        self.assertEqual(outside, {"aten::_local_scalar_dense": ulpscope.Reason.DATA_DEPENDENT, "aten::nonzero": ulpscope.Reason.DATA_DEPENDENT,
                                   "perop::gated": ulpscope.Reason.FOREIGN_OP})
        self.assertEqual(self.report.outside, {ulpscope.Reason.DATA_DEPENDENT: 2, ulpscope.Reason.FOREIGN_OP: 1})
        self.assertIn("outside of the vocabulary", str(self.report))
        computing = [row for row in self.report.rows if row.status != "view"]
        share = sum(row.calls for row in computing if row.status in ("conforms", "open")) / sum(row.calls for row in computing)
        self.assertEqual(self.report.share(self.report.judged), share)
        self.assertGreater(share, 0.8)

    def test_every_call_is_counted(self):
        self.assertEqual(by_op(self.report), counted(branching, self.args))
        inner = collections.Counter(row.op for row in self.report.rows if row.inside for _ in range(row.calls))
        self.assertEqual(inner, counted(gated._init_fn, self.args[1:2] * 2))

    def test_a_custom_ops_own_calls_are_judged_with_their_lines(self):
        rounded = next(row for row in rows(self.report, "_to_copy") if row.inside and row.call.results[0].dtype == torch.bfloat16)
        self.assertEqual((rounded.inside, rounded.status), ("perop::gated", "conforms"))
        text = pathlib.Path(__file__).read_text(encoding="utf-8").splitlines()
        lines = {text[line - 1].strip() for (_, _, line) in rounded.places}
        self.assertEqual(lines, {"inner = torch.sigmoid(g.float()).bfloat16()", "return (x.float() * g.float() * inner.float()).to(x.dtype)"})

    def test_nothing_violates_and_everything_comes_out_again(self):
        self.assertEqual((self.report.violations, self.report.ok, self.report.same_as_plain), ([], True, True))
        again = [row.again for row in self.report.judged]
        self.assertEqual(again, [{"torch-eager": ""}] * len(self.report.judged))

    def test_what_a_custom_op_is_meant_to_compute(self):
        report = quiet(branching, self.args, known={"perop::gated": meant}, backends=())
        self.assertEqual([row.op for row in report.violations], ["perop::gated"])
        self.assertIn("bfloat16", report.violations[0].label)
        right = quiet(lambda x, g: meant_op(x, g), self.args[2:] * 2, known={"perop::meant": meant}, backends=())
        self.assertEqual((right.violations, [row.op for row in right.judged if row.meant]), ([], ["perop::meant"]))


@torch.library.custom_op("perop::meant", mutates_args=())
def meant_op(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    return meant(x, g)


class Operands(unittest.TestCase):
    def test_they_are_what_plain_pytorch_has(self):
        def f(x, w):
            h = x @ w.t()
            h.mul_(2)
            h.add_(1)
            return torch.softmax(h[:, ::2], -1)

        x, w = torch.randn(8, 16), torch.randn(24, 16)
        report = quiet(f, (x, w), backends=())
        h = x @ w.t()
        self.assertTrue(same(rows(report, "mm")[0].call.args[1], w.t()))
        self.assertEqual(rows(report, "mm")[0].call.args[1].stride(), (1, 16))
        self.assertTrue(same(rows(report, "mul_.Tensor")[0].call.args[0], h), "as it was before it was written over")
        self.assertTrue(same(rows(report, "mul_.Tensor")[0].call.results[0], h * 2))
        self.assertTrue(same(rows(report, "add_.Tensor")[0].call.results[0], h * 2 + 1))
        operand = rows(report, "_softmax")[0].call.args[0]
        self.assertTrue(same(operand, (h * 2 + 1)[:, ::2]))
        self.assertEqual(operand.stride(), (24, 2))

    def test_copies_keep_values_and_strides(self):
        x = torch.randn(4, 6, 5)
        for each in (x, x.transpose(0, 2), x[:, ::2], x[:1].expand(3, 6, 5), x.permute(2, 0, 1)[1:], torch.tensor(2.0)):
            copy = recording.copied(each)
            self.assertTrue(same(copy, each))
            self.assertEqual(copy.stride(), each.stride())
            self.assertNotEqual(copy.data_ptr(), each.data_ptr())
        self.assertTrue(same(recording.copied(x.unfold(1, 3, 1)), x.unfold(1, 3, 1)))

    def test_errors_are_those_that_numpy_finds(self):
        x, y = torch.randn(64, 32), torch.randn(64, 32)
        report = quiet(lambda x, y: (x + y) @ y.t(), (x, y), backends=())
        a, b = x.numpy().astype(numpy.float64), y.numpy().astype(numpy.float64)
        exact, stored = a + b, (x + y).numpy()
        ulp = (numpy.abs(stored - exact) / numpy.spacing(numpy.abs(exact).astype(numpy.float32)).astype(numpy.float64)).max()
        self.assertAlmostEqual(rows(report, "add.Tensor")[0].max_ulp, ulp, places=6)
        product = stored.astype(numpy.float64) @ b.T
        off = ((x + y) @ y.t()).numpy() - product
        self.assertAlmostEqual(rows(report, "mm")[0].rms / (numpy.sqrt((off**2).mean()) / numpy.sqrt((product**2).mean())), 1.0, places=6)

    def test_inference_mode_and_gradients(self):
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.SiLU(), torch.nn.Linear(16, 4))
        x = torch.randn(5, 8)
        with torch.inference_mode():
            inferred = quiet(model, (x, ), backends=())
        self.assertEqual([row.op for row in inferred.judged], ["aten::addmm", "aten::silu", "aten::addmm"])
        self.assertEqual([row.place.split()[0] for row in inferred.judged], ["0", "1", "2"])

        def step(x):
            loss = model(x).square().sum()
            loss.backward()
            return loss

        trained = quiet(step, (x, ), backends=())
        self.assertEqual(by_op(trained), counted(step, (x, )))
        self.assertGreater(sum(row.calls for row in rows(trained, "mm")), 2, "products of the backward pass")
        self.assertTrue(trained.ok)
        model.zero_grad()


class Planted(unittest.TestCase):
    def test_an_op_that_rounds_inside_is_found_and_no_other(self):
        def wrong(x, dim, half_to_float):
            power = torch.exp(x - x.amax(dim, keepdim=True)).bfloat16().to(x.dtype)
            return power / power.sum(dim, keepdim=True)

        def f(x, w):
            return torch.log_softmax(torch.softmax(torch.nn.functional.silu(x @ w), -1) @ w.t(), -1)

        args = torch.randn(32, 48), torch.randn(48, 64)
        self.assertEqual(quiet(f, args, backends=()).violations, [])
        with instead("_softmax", wrong):
            report = quiet(f, args)
        self.assertEqual([row.op for row in report.violations], ["aten::_softmax"])
        self.assertIn("rounded to bfloat16", report.violations[0].label)
        self.assertFalse(report.ok)
        self.assertEqual([row.op for row in report.judged if row.again["torch-eager"]], ["aten::_softmax"])
        self.assertIn("gives the recorded ones", report.violations[0].again["torch-eager"])
        self.assertIn("  !  aten::_softmax f32[32,64], test_per_op.py:", str(report))

    def test_of_calls_alike_the_worst_is_judged(self):
        """The fault shows in one of three calls, which differ in nothing but their values; float64 has a kernel without it."""
        def wrong(x):
            found = torch.sigmoid(x) * x
            return found.bfloat16().to(x.dtype) if x.dtype == torch.float32 and float(x[0, 0]) == 7 else found

        def f(x):
            first = torch.nn.functional.silu(x)
            y = x.clone()
            y[0, 0] = 7
            second = torch.nn.functional.silu(y)
            return first + second + torch.nn.functional.silu(x * 2)

        with instead("silu", wrong):
            report = quiet(f, (torch.randn(16, 32), ), backends=())
        row, = report.violations
        self.assertEqual((row.op, row.calls, len(row.places)), ("aten::silu", 3, 3))
        self.assertIn("bfloat16", row.label)
        line = int(row.place.rpartition(":")[2])
        self.assertEqual(pathlib.Path(__file__).read_text(encoding="utf-8").splitlines()[line - 1].strip(), "second = torch.nn.functional.silu(y)")

    def test_an_op_that_is_not_deterministic(self):
        state = [0]

        def drifting(x):
            state[0] += 1
            return torch.sigmoid(x) * x + state[0]

        with instead("silu", drifting):
            report = quiet(torch.nn.functional.silu, (torch.randn(4, 8), ))
        self.assertFalse(report.same_as_plain)
        self.assertIn("not deterministic", rows(report, "silu")[0].again["torch-eager"])


class Around(unittest.TestCase):
    def test_tensors_without_values_and_random_numbers_disturb_nothing(self):
        from torch._subclasses.fake_tensor import FakeTensorMode

        def f(x):
            shape = (torch.empty(4, 8, device="meta") @ torch.empty(8, 3, device="meta")).shape
            with FakeTensorMode():
                torch.ones(3) * 2
            return torch.nn.functional.dropout(torch.relu(x[:shape[0], :shape[1]]), 0.5)

        x = torch.randn(4, 8)
        torch.manual_seed(3)
        found = f(x)
        after = torch.get_rng_state()
        torch.manual_seed(3)
        report = quiet(f, (x, ), backends=())
        self.assertTrue(report.same_as_plain)
        self.assertTrue(torch.equal(torch.get_rng_state(), after), "as after one call")
        masked = next(row for row in rows(report, "mul.Tensor") if row.operands[0] == "f32[4,3]")
        self.assertTrue(same(masked.call.results[0], found))
        self.assertIn("device meta", rows(report, "mm")[0].text)
        self.assertIn(ulpscope.Reason.RANDOM, report.outside)

    def test_what_a_function_raises_is_raised(self):
        with self.assertRaisesRegex(RuntimeError, "shapes cannot be multiplied"):
            quiet(torch.mm, (torch.ones(2, 3), torch.ones(2, 3)))

    def test_a_training_step(self):
        model = torch.nn.Linear(8, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
        before = model.weight.detach().clone()

        def step(x):
            model(x).square().sum().backward()
            optimizer.step()

        report = quiet(step, (torch.randn(5, 8), ), backends=())
        self.assertFalse(torch.equal(model.weight, before))
        self.assertIsNone(report.same_as_plain)
        self.assertIn("writes into its parameters", report.notes[0])
        written = next(row for row in rows(report, "add_.Tensor") if row.operands[0] == "f32[4,8]")
        self.assertTrue(same(written.call.args[0], before))
        self.assertTrue(same(written.call.results[0], model.weight))
        self.assertEqual(written.status, "conforms")


class Budget(unittest.TestCase):
    def test_large_calls_are_counted_and_not_judged(self):
        report = quiet(lambda x: (x * 2)[:2] + 1, (torch.randn(64, 64), ), most_elements=1000, backends=())
        large, = rows(report, "mul.Tensor")
        self.assertEqual((large.calls, large.status, large.text), (1, "not judged", "4096 elements, more than most_elements"))
        self.assertEqual(rows(report, "add.Tensor")[0].status, "conforms")

    def test_what_was_judged_in_time_is_reported(self):
        def f(x, w):
            for _ in range(40):
                w = torch.cat([w, w[:, :1]], 1)
                x = torch.softmax(x @ w, -1)[:, :64]
            return x

        report = quiet(f, (torch.randn(64, 64).bfloat16(), torch.randn(64, 64).bfloat16()), minutes=0, backends=())
        late = [row for row in report.rows if row.text == "no time was left"]
        self.assertTrue(late)
        self.assertTrue(any(f"{len(late)} distinct calls are not judged" in each for each in report.notes))
        self.assertEqual(by_op(report), counted(f, (torch.randn(64, 64).bfloat16(), torch.randn(64, 64).bfloat16())))


class Compiled(unittest.TestCase):
    def test_results_of_the_eager_run_occur_in_the_graphs(self):
        def f(x, w):
            h = x @ w
            h.mul_(2)
            if h.sum() > 0:  # a second graph
                h = torch.softmax(h, -1)
            return torch.tanh(h) + 1

        args = torch.rand(8, 16), torch.rand(16, 8)
        report = quiet(f, args, backends=(), compiled="aot_eager")
        calls = sum(row.calls for row in report.rows if row.status != "view")
        self.assertIn(f"in 2 graphs; the results of {calls} of {calls} calls of the eager run occur there bit by bit", report.notes[0])
        self.assertEqual(len(report.notes), 1)

    def test_the_op_that_parts_is_named(self):
        def f(x):
            y = torch.exp(x)
            y = torch.sin(y.bfloat16().float()) if torch.compiler.is_compiling() else torch.sin(y)
            return y * 2

        report = quiet(f, (torch.randn(4, 8), ), backends=(), compiled="aot_eager")
        self.assertIn("the results of 1 of 3 calls", report.notes[0])
        self.assertRegex(report.notes[1], r"^aot_eager: aten::sin, test_per_op\.py:\d+: its operands occur in a graph, and its result does not$")
        self.assertEqual(len(report.notes), 2)

    def test_a_compiler_that_fuses_is_not_observed(self):
        report = quiet(torch.tanh, (torch.randn(4, 8), ), backends=(), compiled="inductor")
        self.assertIn("none of them is observed by itself", report.notes[0])


class OnTheCommandLine(unittest.TestCase):
    def test_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "mine.py")
            program.write_text("import torch\n\n\ndef f(x):\n    if x.sum() > 0:\n        x = x * 2\n    return torch.tanh(x)\n\n\n"
                               "def cubed(x):\n    return x ** 3\n\n\nargs = (torch.arange(1, 257).bfloat16() / 7, )\n", encoding="utf-8")
            for name, code in (("f", 0), ("cubed", 1)):  # eager rounds x * x to bfloat16 before it multiplies once more
                done = call(sys.executable, "-m", "ulpscope", "check", "--per-op", f"{program}:{name}", "--args", f"{program}:args", "-b", "",
                            cwd=folder, beside={"PYTHONPATH": str(ROOT / "harness/python")})
                self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            self.assertIn("pow.Tensor_Scalar", done.stdout)
        x = torch.arange(1, 257).bfloat16() / 7
        self.assertTrue(same(x**3, ((x * x) * x)), "the square is rounded")
        self.assertFalse(same(x**3, (x.float()**3).bfloat16()))


@unittest.skipUnless(architectures.available(), "transformers is not installed (ci/setup --with models)")
class AModel(unittest.TestCase):
    def test_llama(self):
        model, args = architectures.build("llama")
        with torch.no_grad():
            report = quiet(model, args)
            self.assertEqual(by_op(report), counted(model, args))
        print(f"llama: {sum(row.calls for row in report.rows)} calls, {len(report.judged)} distinct judged, {report.seconds:.0f} s", file=sys.stderr)
        self.assertEqual(report.violations, [])
        self.assertTrue(report.same_as_plain)
        self.assertEqual(set(report.outside), {ulpscope.Reason.DATA_DEPENDENT})
        self.assertGreater(report.share(report.judged), 0.95)
        attention = next(row for row in report.rows if "attention" in row.op)
        self.assertIn("model.model.layers.", attention.place)
        self.assertIn("exp in numerator inside rounded to bfloat16", attention.label)
        self.assertEqual({row.again["torch-eager"] for row in report.judged}, {""})


if __name__ == "__main__":
    unittest.main()
