#!/usr/bin/env python3
"""A captured case computes the function's bits, reads like the function, and reports what a case cannot express."""
import contextlib
import io
import json
import pathlib
import shlex
import sys
import tempfile
import unittest
from fractions import Fraction

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "harness/python"), str(ROOT / "backends/python"), str(ROOT / "tests/support"), str(pathlib.Path(__file__).parent)]

import blocks  # noqa: E402
import blocks64  # noqa: E402
import torch  # noqa: E402
import ulpscope  # noqa: E402
from programs import call  # noqa: E402
from ulpscope import adapters, capturing, checking, faithful, kernels, names, places, vocabulary  # noqa: E402
from ulpscope.case import Input, elements  # noqa: E402

BLOCKS = {}


def setUpModule():
    """Every block is captured once, unverified: verifying is a test's own business."""
    torch.manual_seed(7)
    angles = torch.arange(6)[:, None] * torch.tensor([1.0, 0.25, 0.0625, 0.015625] * 2)
    block = torch.nn.Sequential(torch.nn.LayerNorm(16), torch.nn.Linear(16, 24), torch.nn.GELU(), torch.nn.Linear(24, 16)).eval()
    programs = {
        "mlp": (blocks.SwiGlu(), (torch.randn(4, 16).bfloat16(), )),
        "attention": (blocks.Attention(), (torch.randn(6, 16).bfloat16(), angles.cos().bfloat16(), angles.sin().bfloat16())),
        "autocast": (blocks.mixed_precision, (torch.randn(4, 16), torch.randn(16, 8))),
        "layer_norm": (block, (torch.randn(4, 16), )),
        "in_place": (blocks.in_place, (torch.randn(3, 5), )),
        "patches": (blocks.Patches(), (torch.randn(2, 3, 8, 8), )),
        "adamw": (blocks.adamw, (*(torch.randn(4, 6) for _ in range(3)), torch.rand(4, 6))),
        "buffers": (blocks.buffers, (torch.randn(4, 6), torch.randn(6, 5), torch.tensor([2, 0, 3]))),
        "masked": (blocks.masked, (torch.randn(3, 4), torch.randn(3, 4) > 0)),
        "classifier": (blocks.classifier, (torch.tensor([3, 1, 4, 1]), torch.randn(5, 8).half(), torch.randn(8, 6).half(),
                                           torch.tensor([5, 0, 2, 2]))),
        "picked": (blocks.picked, (torch.randn(9, 4).bfloat16(), torch.tensor([[3, 1, 8], [0, 5, 5]]), torch.randn(4, 7),
                                   torch.tensor([6, 0, 2, 2]))),
        "options": (blocks.options, (torch.randn(4, 6).bfloat16(), torch.tensor([3, -100, 1, 5]), torch.rand(6).bfloat16(),
                                     torch.rand(4, 6).bfloat16() / 6, torch.randn(2, 3, 6).bfloat16())),
        "combined": (blocks.combined, (torch.randn(4, 6), torch.randn(4, 6), torch.randn(6, 4))),
    }
    for name, (f, args) in programs.items():
        BLOCKS[name] = (ulpscope.capture(f, args, name=name, verify=()), f, args)


def two_on_a_line(x):
    first = x.mean(-1); second = (x * x).mean(-1)  # noqa: E702
    return second - first * first


def steps_of(case):
    return [(step.op, step.of, step.name) for step in case.all_steps()]


def parted(case, f, args, backends=("torch-eager", )):
    try:
        faithful.check(case, f, args, backends=backends)
    except faithful.Unfaithful as error:
        return error
    return None


class Faithful(unittest.TestCase):
    def test_every_block_computes_the_functions_bits(self):
        with adapters.Link("torch-eager") as link:
            for name, (case, f, args) in BLOCKS.items():
                own, found = faithful.results(f, args, {}, case), link.run(case)
                self.assertEqual(sorted(own), sorted(found))
                for value in case.observe:
                    self.assertEqual(faithful.difference(own[value], found[value]), "", f"{name}: {value}")

    def test_through_aot_eager_too(self):
        with adapters.Link("torch-aot-eager") as link:
            for name in ("attention", "autocast", "classifier", "options", "combined"):
                case, f, args = BLOCKS[name]
                own, found = faithful.results(f, args, {}, case, "aot_eager"), link.run(case)
                for value in case.observe:
                    self.assertEqual(faithful.difference(own[value], found[value]), "", f"{name}: {value}")

    def test_gradients_of_indices_are_added_up_as_the_function_adds_them(self):
        """In bfloat16 index_select and embedding add up the gradients of one row otherwise than x[i] does."""
        ids = torch.randint(0, 4, (5, 6))
        args = (torch.randn(4, 8).bfloat16().requires_grad_(), ids, ids[0], ids[1], torch.randn(5, 6, 8).bfloat16())
        case = ulpscope.capture(blocks.weighed, args, backward=True, verify=("torch-eager", "torch-aot-eager", "torch-inductor"))
        self.assertEqual(case.observe, ["result", "table.grad"])
        self.assertEqual(case.notes, [])

    def test_gradients(self):
        f, args = BLOCKS["mlp"][1:]
        x = args[0].clone().requires_grad_()
        f.gate.weight.grad = kept = torch.ones_like(f.gate.weight)
        case = ulpscope.capture(f, (x, ), backward=True)
        self.assertIs(f.gate.weight.grad, kept)
        f.gate.weight.grad = None
        self.assertEqual(case.observe, ["result", "norm.grad", "gate_weight.grad", "up_weight.grad", "down_weight.grad", "x.grad"])
        self.assertIsNone(x.grad)

    def test_backward_begins_with_a_gradient_that_hides_no_rounding(self):
        def scaled(x, w):
            return x * w

        x, w = torch.randn(4, 8).bfloat16().requires_grad_(), torch.randn(8).bfloat16()
        case = ulpscope.capture(scaled, (x, w), backward=True)  # which compares x.grad in bits with the function's own
        upstream = next(each for each in case.inputs if each.name == "grad_out")
        self.assertEqual((upstream.tensor.shape, upstream.tensor.dtype), (x.shape, torch.bfloat16))
        self.assertGreater(upstream.tensor.unique().numel(), 16, "no ones")
        self.assertEqual(case.steps[-1].attrs, {"grad": "grad_out"})
        self.assertTrue(torch.equal(ulpscope.capture(scaled, (x, w), backward=True, verify=()).inputs[-1].tensor, upstream.tensor))
        mine = torch.full((4, 8), 3.0).bfloat16()
        case = ulpscope.capture(scaled, (x, w), backward=True, grad=mine)
        self.assertTrue(torch.equal(next(each.tensor for each in case.inputs if each.name == "grad_out"), mine))
        total = ulpscope.capture(lambda x: x.sum(), (x, ), backward=True)
        self.assertEqual((total.steps[-1].attrs, [each.name for each in total.inputs]), ({}, ["x"]))
        with self.assertRaisesRegex(ValueError, r"grad: found torch.float32\[8\], expected .*torch.bfloat16\[4, 8\]"):
            ulpscope.capture(scaled, (x, w), backward=True, grad=torch.ones(8))
        with self.assertRaisesRegex(ValueError, "backward=True alone"):
            ulpscope.capture(scaled, (x, w), grad=mine)

    def test_the_harness_reads_the_same_values_back(self):
        """The values stand in the file as text; what the harness makes of them has the function's bits still."""
        with tempfile.TemporaryDirectory() as folder:
            for case, *_ in BLOCKS.values():
                case.save(f"{folder}/{case.name}.yaml")
            linted = call(places.binary(), "lint", folder)
            self.assertIn(f"{len(BLOCKS)} cases, 0 errors", linted.stdout)
            report = checking.run(folder, ["torch-eager"], out=folder + "/run")
            self.assertEqual({each["id"].rpartition("/")[2] for each in report.results}, set(BLOCKS))
            compared = 0
            for line in pathlib.Path(folder, "run/journal.jsonl").read_text(encoding="utf-8").splitlines():
                record = json.loads(line)["record"]
                if record["type"] != "result" or "~" in record["case"]:
                    continue
                case, f, args = BLOCKS[record["case"].rpartition("/")[2]]
                own = faithful.results(f, args, {}, case)
                for value, tensor in adapters.read_safetensors(pathlib.Path(folder, "run", record["tensors"]["file"])).items():
                    self.assertEqual(faithful.difference(own[value], adapters.from_wire(tensor)), "", f"{case.name}: {value}")
                    compared += 1
        self.assertEqual(compared, sum(len(case.observe) for case, *_ in BLOCKS.values()))


    def test_several_results_are_names_of_one_step(self):
        def routed(x):
            weights, chosen = torch.topk(x, 2, dim=-1)
            variance, mean = torch.var_mean(x, dim=-1, keepdim=True)
            _, at = x.max(dim=1)
            normalized, rstd = torch.native_layer_norm(x, [8], None, None, 1e-5)[::2]
            return weights * 2, chosen, (x - mean) * variance, at, normalized, rstd

        ties = torch.randint(3, (64, 8)).to(torch.float32)  # which of them is chosen is the op's own affair
        case = ulpscope.capture(routed, (ties, ))
        text = case.yaml()
        self.assertIn("{op: topk, of: [x], k: 2, as: [weights, chosen], at: ", text)
        self.assertIn("as: [variance, mean], at: ", text)
        self.assertIn("{op: max, of: [x], dim: 1, result: 1, as: at, at: ", text)
        self.assertRegex(text, r'op: "aten::native_layer_norm".*result: 2, as: \w+')
        with tempfile.TemporaryDirectory() as folder:
            linted = call(places.binary(), "lint", case.save(folder + "/routed.yaml"))
            self.assertIn("1 cases, 0 errors", linted.stdout)

    def test_what_is_infinite_reaches_the_adapter(self):
        case = ulpscope.capture(lambda x: x + torch.full((3, 3), float("-inf")).triu(1), (torch.randn(3, 3), ))
        self.assertEqual(case.steps[0].attrs["value"], float("-inf"))

    def test_the_command_that_repeats_a_check_works_after_it(self):
        case, f, args = BLOCKS["adamw"]
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            report = ulpscope.check(f, args, name="adamw", backends=["torch-eager"])
        command = shlex.split(report.results[0]["repro"])
        with tempfile.TemporaryDirectory() as folder:
            again = call(places.binary(), *command[1:], "-o", folder + "/run", beside=places.environment())
        self.assertEqual((command[0], again.returncode), ("ulpscope", 0), again.stderr)
        self.assertIn("1 PASS", again.stdout)
        self.assertRegex(said.getvalue(), r"(?s)^ulpscope +[\d.]+ s  adamw: \d+ steps captured\n(ulpscope +[\d.]+ s  running \d/2[^\n]*\n)+ulpscope +[\d.]+ s  run and judged: \d+ findings")

    def test_cases_of_an_earlier_check_are_not_run_again(self):
        with tempfile.TemporaryDirectory() as folder:
            stale = pathlib.Path(folder, "program/earlier.yaml")
            stale.parent.mkdir()
            stale.write_text("no case", encoding="utf-8")
            path = checking.saved([BLOCKS["adamw"][0], BLOCKS["masked"][0]], stale.parent)
            self.assertEqual(sorted(each.name for each in path.iterdir()), ["adamw.yaml", "masked.yaml"])

    def test_what_gradients_change_under_a_compiler_is_said(self):
        """With parameters that require gradients inductor keeps, and rounds, what backward() will need; the case is without."""
        f, args, _ = blocks64.made()["llama_block"]
        case = ulpscope.capture(f, args, verify=("torch-inductor", ))
        self.assertRegex(" ".join(case.notes), r"torch-inductor: result: \d+ of 1024 elements differ.*parameters that require no gradients")
        with torch.no_grad():
            again = ulpscope.capture(f, args, verify=("torch-inductor", ))
        self.assertEqual(again.notes, [])

    def test_a_fast_path_that_export_does_not_see_is_said(self):
        """nn.MultiheadAttention has a fused kernel for inference; and eager folds a product if a weight requires gradients."""
        attention = torch.nn.MultiheadAttention(16, 4, batch_first=True).eval()

        def attend(x):
            return attention(x, x, x, need_weights=False)[0]

        x = torch.randn(2, 5, 16)
        fast = attend(x)
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            same = torch.equal(fast, attend(x))
        finally:
            torch.backends.mha.set_fastpath_enabled(True)
        notes = " ".join(ulpscope.capture(attend, (x, )).notes)
        if not same:  # on some processors the fused kernel gives the same bits, and there is nothing to say
            self.assertIn("set_fastpath_enabled(False)", notes)
        self.assertTrue(all(each.requires_grad for each in attention.parameters()))
        self.assertTrue(torch.backends.mha.get_fastpath_enabled())
        attention.requires_grad_(False)
        notes = " ".join(ulpscope.capture(attend, (x, )).notes)
        self.assertIn("PyTorch's fast path for attention in inference", notes)
        self.assertNotIn("gradients", notes)
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            self.assertNotIn("fast path", " ".join(ulpscope.capture(attend, (x, )).notes))
        finally:
            torch.backends.mha.set_fastpath_enabled(True)

    def test_a_step_that_a_compiler_writes_otherwise_is_named(self):
        """Dynamo takes torch.addcdiv() apart, which the case calls, and leaves the method, which the function calls."""
        with self.assertRaises(faithful.Unfaithful) as caught:
            ulpscope.capture(lambda x, a, b: x.addcdiv(a, b, value=-0.003), tuple(torch.rand(64, 64) for _ in range(3)),
                             verify=("torch-aot-eager", ))
        self.assertEqual((caught.exception.backend, caught.exception.step.op), ("torch-aot-eager", "addcdiv"))


class Unfaithful(unittest.TestCase):
    """Planted: a case that differs from the program is found, and the step named."""

    def plant(self, name, change):
        f, args = BLOCKS[name][1:]
        case = ulpscope.capture(f, args, name=name, verify=())
        change(case)
        return parted(case, f, args)

    def test_a_dropped_cast(self):
        def drop(case, number=0):
            cast = [step for step in case.steps if step.op == "cast"][number]
            case.steps.remove(cast)
            for step in case.steps:
                step.of = tuple(cast.of[0] if each == cast.name else each for each in step.of)

        error = self.plant("classifier", drop)
        self.assertEqual((error.backend, error.value, error.step.name), ("torch-eager", "result", "result"))
        self.assertRegex(str(error), r"float32\[\] against torch.float16.*blocks\.py:\d+: return F\.cross_entropy")
        self.assertEqual(self.plant("mlp", drop).step.name, "variance_pow")
        self.assertIn("the function runs and the case does not", str(self.plant("mlp", lambda case: drop(case, 1))))

    def test_a_scope_that_is_left_out(self):
        def open_up(case):
            case.steps[:] = list(case.all_steps())

        self.assertEqual(self.plant("autocast", open_up).step.name, "product")

    def test_another_order_of_operands(self):
        def swap(case):
            step = next(step for step in case.steps if step.op.removeprefix("aten::") == "cat")
            step.of = step.of[::-1]

        self.assertEqual(self.plant("attention", swap).step.name, "q_cat")

    def test_a_last_bit(self):
        def nudge(case):
            x = case.inputs[-1]
            x.tensor = x.tensor.clone()
            x.tensor.view(torch.int16)[0, 0] += 1

        error = self.plant("mlp", nudge)
        self.assertIn("elements differ", str(error))


class Readable(unittest.TestCase):
    def test_values_are_called_as_in_the_source(self):
        names_of = [name for *_, name in steps_of(BLOCKS["mlp"][0])]
        self.assertEqual(names_of, ["wide", "variance_pow", "variance", "h_add", "h_rsqrt", "h_mul", "h_cast", "h", "g_linear", "g",
                                    "y_linear", "y_mul", "y", "result"])
        attention = [name for *_, name in steps_of(BLOCKS["attention"][0])]
        for name in ("q", "k", "v", "scores", "scores_2", "weights", "mixed", "result"):
            self.assertIn(name, attention)

    def test_a_step_has_the_module_and_the_line_that_it_comes_from(self):
        class Outer(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(2))

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x).relu()
                return x

        case = ulpscope.capture(Outer().eval(), (torch.ones(2, 4), ), verify=())
        origins = [(step.op, step.origin()) for step in case.all_steps()]
        self.assertEqual([(op, origin.get("module")) for op, origin in origins],
                         [("linear", "layers.0"), ("relu", None), ("linear", "layers.1"), ("relu", None)])
        here = next(origin for op, origin in origins if op == "relu")
        name, elsewhere = pathlib.Path(__file__).name, tempfile.TemporaryDirectory()
        self.addCleanup(elsewhere.cleanup)
        step = next(step for step in case.all_steps() if step.op == "relu")
        for folder, file in ((pathlib.Path(__file__).resolve().parents[1], f"python/{name}"), (elsewhere.name, name)):
            with contextlib.chdir(folder):
                self.assertEqual(step.origin(), {"file": file, "line": here["line"]})
        self.assertIn("layer(x).relu()", pathlib.Path(__file__).read_text(encoding="utf-8").splitlines()[here["line"] - 1])
        self.assertIn(f"at: {{file: {json.dumps(here['file']) if '/' in here['file'] else here['file']}, line: {here['line']}}}", case.yaml())

    def test_scopes_stay_scopes(self):
        case = BLOCKS["autocast"][0]
        self.assertEqual([step.op for step in case.steps], ["autocast"])
        self.assertEqual([step.op for step in case.steps[0].steps], ["matmul", "autocast", "t", "matmul"])
        self.assertEqual(case.steps[0].steps[1].attrs, {"enabled": False})
        self.assertIn("# blocks.py:", case.yaml())

    def test_parts_are_views_and_one_op_stays_one_op(self):
        case = BLOCKS["attention"][0]
        ops = case.ops()
        for op in ("linear", "softmax", "matmul"):
            self.assertIn(op, ops)
        self.assertFalse([op for op in ops if "chunk" in op or "unbind" in op or "contiguous" in op], ops)

    def test_a_word_of_the_vocabulary_goes_before_the_dispatchers_name(self):
        for case, *_ in BLOCKS.values():
            wrong = [op for op in case.ops() if op.startswith("aten::") and op[6:].partition(".")[0] in vocabulary.words.OPS]
            self.assertEqual(wrong, [])

    def test_out_names_its_buffer(self):
        steps = BLOCKS["buffers"][0].steps
        self.assertEqual([(step.op, step.of, step.out, step.name) for step in steps[:2]],
                         [("empty", (), "", "buffer"), ("mm", ("x", "weight"), "buffer", "mm")])
        self.assertEqual(steps[2].of, ("mm", ))

    def test_what_is_written_in_place_is_a_new_value_where_nobody_else_looks(self):
        case = BLOCKS["adamw"][0]
        self.assertFalse([op for op in case.ops() if op.partition(".")[0].endswith("_")])
        self.assertIn("writes into its arguments is a value of its own", " ".join(case.notes))

    def test_two_statements_on_a_line_name_nothing(self):
        case = ulpscope.capture(two_on_a_line, (torch.randn(4, 8), ), verify=())
        said = [step.name for step in case.steps]
        self.assertFalse({"first", "second"} & set(said), said)
        self.assertEqual(said[-1], "result")

    def test_indices_of_two_dimensions_are_one_step(self):
        self.assertEqual([(step.op, step.of) for step in BLOCKS["picked"][0].steps][0], ("index", ("table", "ids")))
        self.assertIn("gather", BLOCKS["picked"][0].ops())
        case = ulpscope.capture(lambda x, order: x[order] * 2, (torch.randn(5, 6), torch.tensor([-1, 2])))
        self.assertEqual([step.op for step in case.steps], ["index", "mul"])  # index_select counts from no end

    def test_where_and_whether_are_words(self):
        def places(x):
            return x.argmax(-1), torch.argmin(x), (x > 0.5).any(), torch.all(x != 0, dim=1, keepdim=True), x.gather(1, x.argmax(1, True))

        case = ulpscope.capture(places, (torch.randn(8, 16).round(), ))
        self.assertEqual([step.op for step in case.all_steps()], ["argmax", "argmin", "gt", "any", "ne", "all", "argmax", "gather"])
        self.assertEqual(case.notes, [])

    def test_targets_that_count_nothing_are_said(self):
        steps = [step for step in BLOCKS["options"][0].all_steps() if step.op in ("cross_entropy", "nll_loss")]
        self.assertEqual([step.attrs.get("ignore_index") for step in steps], [-100, -100, None, 5])
        self.assertNotIn("ignore_index", BLOCKS["classifier"][0].yaml())

    def test_programs_of_words_have_references(self):
        for name in ("options", "combined"):
            self.assertEqual([op for op in BLOCKS[name][0].ops() if op.startswith("aten::")], [], name)
        self.assertEqual([step.op for step in BLOCKS["combined"][0].all_steps()].count("einsum"), 2)

    def test_names_stay_apart(self):
        taken = {"x"}
        self.assertEqual([names.unique(word, taken) for word in ("x", "x", "a_dtype", "trace")], ["x_2", "x_3", "a_dtype_", "trace_"])


class Said(unittest.TestCase):
    """Programs that a case cannot express: an error with the op, and the line."""

    def refused(self, f, *args, **options):
        with self.assertRaises(ulpscope.CaptureError) as caught:
            ulpscope.capture(f, args, verify=(), **options)
        return str(caught.exception)

    def test_random_numbers(self):
        text = self.refused(blocks.random_mask, torch.randn(4))
        self.assertIn("op dropout: random numbers", text)
        self.assertIn("return F.dropout(x, 0.5)", text)

    def test_a_branch_on_values(self):
        text = self.refused(blocks.branches, torch.randn(4))
        self.assertIn("depends on the values", text)
        self.assertRegex(text, r"blocks\.py:\d+: if x\.sum\(\) > 0:")

    def test_a_result_that_is_not_the_first(self):
        case = ulpscope.capture(blocks.second_result, (torch.randn(4), ))
        self.assertEqual([step.op for step in case.all_steps()][:1], ["aten::kthvalue"])
        self.assertIn("result: 1", case.yaml())

    def test_an_op_of_somebody_elses(self):
        @torch.library.custom_op("ulpscope_test::twice", mutates_args=())
        def twice(x: torch.Tensor) -> torch.Tensor:
            return x * 2

        twice.register_fake(torch.empty_like)
        self.assertIn("op ulpscope_test::twice", self.refused(lambda x: twice(x), torch.randn(4)))

    def test_backward_of_what_needs_none(self):
        self.assertIn("no argument and no parameter", self.refused(torch.relu, torch.randn(3), backward=True))

    def test_what_is_made_from_a_seed(self):
        case = ulpscope.capture(torch.matmul, (torch.rand(300, 500), torch.randn(500, 301) * 3), verify=(), data="synthetic")
        self.assertIn("made from a seed", case.notes[-1])
        self.assertTrue(all(each.synthetic for each in case.inputs))
        self.assertRegex(case.yaml(), r"fill: \{normal: \{scale: (2\.9|3)")
        with self.assertRaisesRegex(ValueError, "do not fit"):
            ulpscope.capture(torch.matmul, (torch.rand(300, 500), torch.randn(500, 301)), verify=(), data="inline")


class Beside(unittest.TestCase):
    """Tensors that a case file does not hold stand beside it, bit by bit, and belong to it alone."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        torch.manual_seed(3)
        self.x, self.w = torch.rand(300, 500).bfloat16(), torch.randn(500, 2).bfloat16()
        self.x[0, :3] = torch.tensor([float("-inf"), -0.0, 1e-40])
        self.case = ulpscope.capture(torch.matmul, (self.x, self.w), name="product", verify=())
        self.path = self.case.save(self.folder / "large.yaml")

    def test_they_come_back_bit_by_bit(self):
        self.assertEqual([each.beside for each in self.case.inputs], [True, False])
        self.assertLess(len(self.case.yaml()), 1 << 20)
        self.assertIn("file: {path: large.safetensors, tensor: ", self.path.read_text(encoding="utf-8"))
        report = checking.run(self.path, ["torch-eager"], out=self.folder / "run")
        found = checking._recorded(report)["torch-eager"]["result"]
        with faithful.one_thread():
            self.assertEqual(faithful.difference(torch.matmul(self.x, self.w), found), "")
        self.assertEqual(report.results[0]["status"], "PASS")

    def test_a_run_keeps_a_copy(self):
        report = checking.run(self.path, ["torch-eager"], out=self.folder / "run")
        cell = report.results[0]["id"] + "@torch-eager"
        for each in ("large.yaml", "large.safetensors"):
            (self.folder / each).unlink()
        told = call(places.binary(), "explain", cell, "--run", self.folder / "run")
        self.assertEqual(told.returncode, 0, told.stdout + told.stderr)
        self.assertIn("{op: matmul, of: [arg_0, arg_1], as: result}", told.stdout)
        next((self.folder / "run/inputs").rglob("large.safetensors")).unlink()
        told = call(places.binary(), "explain", cell, "--run", self.folder / "run")
        self.assertIn("large.safetensors cannot be read", told.stdout + told.stderr)

    def test_another_tensor_is_no_substitute(self):
        def refused(text):
            linted = call(places.binary(), "lint", self.path)
            self.assertEqual(linted.returncode, 4)
            self.assertIn(text, linted.stderr + linted.stdout)

        beside, text = self.folder / "large.safetensors", self.path.read_text(encoding="utf-8")
        before = beside.read_bytes()
        beside.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
        refused("is not the one that the case was written for")
        beside.write_bytes(before)
        for old, new, why in (("tensor: ", "tensor: no_", "no such tensor"), ("path: ", "path: ../", "NAME.safetensors"),
                              ("shape: [300, 500], fill", "shape: [500, 300], fill", "another tensor than the case's")):
            if old in text:
                self.path.write_text(text.replace(old, new), encoding="utf-8")
                refused(why)
        beside.unlink()
        self.path.write_text(text, encoding="utf-8")
        refused("large.safetensors")


class Elements(unittest.TestCase):
    def test_text_has_the_bits_of_every_format(self):
        """Each pattern of 16 bits, read back by Python's own reading of decimals."""
        checked = 0
        for dtype, integer in ((torch.bfloat16, torch.int16), (torch.float16, torch.int16)):
            patterns = torch.arange(-32768, 32768, dtype=torch.int32).to(integer).view(dtype)
            for value, text in zip(patterns.double().tolist(), elements(Input("x", patterns))):
                if text.startswith("bits:"):
                    continue
                near = torch.tensor(float(Fraction(text)), dtype=torch.float64).to(dtype).double().item()
                self.assertEqual(near, value, text)
                checked += 1
        self.assertGreater(checked, 120000)


class Command(unittest.TestCase):
    def test_capture_from_the_command_line(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "mine.py")
            program.write_text("import torch\n\ndef block(x, w):\n    h = x @ w\n    return h.relu()\n\n"
                               "def example():\n    return torch.ones(2, 3), torch.ones(3, 2)\n", encoding="utf-8")
            done = call(sys.executable, "-m", "ulpscope", "capture", f"{program}:block", "--args", f"{program}:example", "-o",
                        folder + "/case.yaml", beside={"PYTHONPATH": str(ROOT / "harness/python")})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("2 steps", done.stdout)
            self.assertIn("{op: matmul, of: [x, w], as: h, at: {file: mine.py, line: 4}}", pathlib.Path(folder, "case.yaml").read_text(encoding="utf-8"))
            done = call(sys.executable, "-m", "ulpscope", "capture", f"{program}:missing", "-o", folder + "/no.yaml",
                        beside={"PYTHONPATH": str(ROOT / "harness/python")})
            self.assertEqual(done.returncode, 4)
            self.assertIn("no missing in", done.stderr)


class Devices(unittest.TestCase):
    """A program runs where its tensors lie. A GPU is not needed to test it."""
    def test_a_name_is_read(self):
        for text, read in (("torch-eager", ("torch-eager", "cpu", {})), ("jax@cuda", ("jax", "cuda", {})),
                           ("torch-eager@cuda:1", ("torch-eager", "cuda:1", {})),
                           ("torch-eager@cuda:1:threads=2,mkldnn=off", ("torch-eager", "cuda:1", {"threads": "2", "mkldnn": "off"})),
                           ("torch-inductor:threads=2", ("torch-inductor", "cpu", {"threads": "2"}))):
            self.assertEqual(adapters.parsed(text), read)

    def test_names_without_a_device_go_where_the_tensors_are(self):
        self.assertEqual(adapters.on(["torch-eager"], "cpu"), ("torch-eager", ))
        self.assertEqual(adapters.on(["torch-eager", "torch-eager:threads=2", "jax@cpu"], "cuda"),
                         ("torch-eager@cuda", "torch-eager@cuda:threads=2", "jax@cpu"))

    def test_tensors_elsewhere_say_where(self):
        elsewhere = torch.empty(2, device="meta")
        self.assertEqual(adapters.device_of([1, torch.ones(2)]), "cpu")
        self.assertEqual(adapters.device_of([torch.ones(2), elsewhere]), "meta")
        self.assertEqual(capturing.device_of(torch.nn.Linear(2, 2, device="meta"), (), {}), "meta")
        self.assertEqual(capturing.device_of(lambda x: x, ([torch.ones(2), {"w": elsewhere}], ), {}), "meta")

    def test_a_kernel_gets_its_tensors_where_it_wants_them_and_raises_once(self):
        seen = []

        def kernel(a, b):
            seen.append((a.device.type, b.device.type))
            return torch.ones(4, 4)

        made = kernels.backend("mine", {"matmul": kernel}, device="meta")
        self.assertEqual(kernels.given(torch.ones(2), made).device.type, "meta")
        with self.assertRaisesRegex(ValueError, "device says where torch tensors"):
            kernels.backend("mine", {"matmul": kernel}, arrays="numpy", device="cuda")

        def failing(a, b):
            raise ValueError("no such pointer")

        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaisesRegex(AssertionError, "no such pointer"):
            # Once the kernel is called with what was given; the harness's inputs are others.
            ulpscope.assert_precision(lambda a, b: failing(a, b) if len(seen) else kernel(a, b).clone(), (torch.rand(4, 4), torch.rand(4, 4)), acc="float32")
        self.assertEqual(said.getvalue().count("ValueError: no such pointer"), 1, said.getvalue()[-2000:])


if __name__ == "__main__":
    unittest.main()
