#!/usr/bin/env python3
"""A function of JAX as a case: its bits under jit and op by op, its names, and what a case cannot express."""
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "harness/python"), str(ROOT / "backends/python"), str(ROOT / "tests/support"), str(pathlib.Path(__file__).parent)]

import blocks_jax as blocks  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import ulpscope  # noqa: E402
from programs import call  # noqa: E402
from ulpscope import adapters, capturing_jax, places, primitives_jax  # noqa: E402

HALF = jnp.bfloat16
CASES = {}


def normal(seed, *shape, dtype=jnp.float32):
    return jax.random.normal(jax.random.key(seed), shape).astype(dtype)


def loss(x, gate, up, down):
    return blocks.mlp(x, gate, up, down).astype(jnp.float32).sum()


def setUpModule():
    """Every function is captured once, unverified: verifying is a test's own business."""
    matrices = tuple(normal(seed, *shape, dtype=HALF) for seed, shape in enumerate([(6, 16), (16, 12), (16, 12), (12, 16)]))
    wide = [normal(seed, 5, 8) for seed in range(4)]
    labels = jnp.array([1, 0, 7, 2, 2])
    programs = {
        "mlp": (blocks.mlp, matrices),
        "gradients": (jax.value_and_grad(loss, argnums=(1, 3)), matrices),
        "softmax": (blocks.softmax, (wide[0], )),
        "rms_norm": (blocks.rms_norm, (normal(1, 4, 16, dtype=HALF), normal(2, 16, dtype=HALF))),
        "attention": (blocks.attention, tuple(normal(seed, 2, 5, 2, 8, dtype=HALF) for seed in range(3))),
        "adam": (blocks.adam, (*wide[:3], jnp.square(wide[3]))),
        "cross_entropy": (blocks.cross_entropy, (wide[0].astype(HALF), labels)),
        "one_hot_loss": (blocks.one_hot_loss, (wide[0], labels)),
        "embedded": (blocks.embedded, (labels, normal(3, 8, 6), normal(4, 6, 5))),
        "layer_norm": (blocks.layer_norm, (wide[0], normal(5, 8), normal(6, 8))),
        "activations": (blocks.activations, (wide[0], )),
        "wanted": (blocks.wanted, (normal(7, 4, 32, dtype=HALF), normal(8, 32, 4, dtype=HALF))),
    }
    for name, (f, args) in programs.items():
        CASES[name] = (ulpscope.capture_jax(f, args, name=name, verify=()), f, args)


def parted(name, backend, change):
    """The error of comparing a case that was changed; '' for none."""
    f, args = CASES[name][1:]
    case = ulpscope.capture_jax(f, args, name=name, verify=())
    change(case)
    try:
        capturing_jax.compare(case, f, args, {}, backend)
    except ulpscope.Unfaithful as error:
        return str(error)
    return ""


class Faithful(unittest.TestCase):
    def every(self, backend):
        compared = 0
        capturing_jax.results(*CASES["softmax"][1:], {}, CASES["softmax"][0], "jax")  # starts XLA's threads
        with adapters.Link(f"{backend}:threads={capturing_jax.threads()}") as link:
            for name, (case, f, args) in CASES.items():
                for value, text in capturing_jax.differences(case, f, args, {}, backend, link.run(case)).items():
                    self.assertEqual(text, "", f"{name}: {value}")
                    compared += 1
        self.assertEqual(compared, sum(len(case.observe) for case, *_ in CASES.values()))

    def test_under_jit(self):
        self.every("jax")

    def test_op_by_op(self):
        self.every("jax-eager")
        noted = {name: case.notes for name, (case, *_) in CASES.items() if case.notes}
        self.assertLessEqual(set(noted), {"layer_norm"}, "only jnp.var is compiled by itself and has no word")
        self.assertTrue(all("step by step" in note for notes in noted.values() for note in notes))

    def test_the_number_of_threads_is_said(self):
        """XLA cuts this product's sum by its threads on processors with AVX-512; a run has one."""
        if capturing_jax.threads() < 2:
            self.skipTest("XLA has one thread here")
        case, f, args = CASES["wanted"]
        with adapters.Link("jax") as link:
            found = link.run(case)
        texts = [capturing_jax.differences(case, f, args, {}, "jax", found), capturing_jax.differences_in_run(case, f, args, {}, "jax", found)]
        if not texts[0]["result"]:
            self.assertEqual(texts[1]["result"], "")
            self.skipTest("XLA gives this product the same bits with any number of threads here")
        self.assertIn("threads, as here, the case has the function's bits", texts[1]["result"])

    def test_threads_are_blamed_only_where_their_number_gives_the_bits(self):
        case, f, args = CASES["wanted"]
        own = capturing_jax.results(f, args, {}, case, "jax")
        other = {name: value.clone() for name, value in own.items()}
        other["result"][-1, -1] = 0
        for beside, blamed in (("", True), ("1 of 16 elements differ", False)):
            with mock.patch.object(capturing_jax, "_beside", lambda *_, text=beside: {"result": text}), \
                    mock.patch.object(capturing_jax, "threads", lambda: 3):
                text = capturing_jax.differences_in_run(case, f, args, {}, "jax", other)["result"]
            self.assertIn("1 of 16 elements differ", text)
            self.assertEqual("with 3 threads, as here, the case has the function's bits" in text, blamed)

    def test_what_is_planted_is_found(self):
        def drop_the_cast(case):
            cast = next(step for step in case.steps if step.op == "cast")
            case.steps.remove(cast)
            for step in case.steps:
                step.of = tuple(cast.of[0] if each == cast.name else each for each in step.of)

        def nudge(case):
            step = next(step for step in case.steps if step.op == "add" and isinstance(step.of[1], float))
            step.of = (step.of[0], step.of[1] * 100)

        self.assertIn("does not compute result", parted("rms_norm", "jax-eager", drop_the_cast))
        self.assertRegex(parted("rms_norm", "jax", nudge), r"elements differ.*blocks_jax\.py:\d+: return normed")
        self.assertEqual(parted("rms_norm", "jax", lambda case: None), "")

    def test_they_lint(self):
        with tempfile.TemporaryDirectory() as folder:
            for case, *_ in CASES.values():
                case.save(f"{folder}/{case.name}.yaml")
            linted = call(places.binary(), "lint", folder)
        self.assertIn(f"{len(CASES)} cases, 0 errors", linted.stdout, linted.stderr)


class Readable(unittest.TestCase):
    def names_of(self, name):
        return [step.name for step in CASES[name][0].steps]

    def test_values_are_called_as_in_the_source(self):
        self.assertEqual(self.names_of("mlp"), ["g_matmul", "g", "h_matmul", "h", "result"])
        for name in ("variance", "normed"):
            self.assertIn(name, self.names_of("rms_norm"))
        self.assertEqual([each.name for each in CASES["attention"][0].inputs], ["q", "k", "v", "seen"])
        self.assertIn("scores", self.names_of("attention"))

    def test_a_function_of_the_library_is_its_word(self):
        self.assertIn(("silu", ("g_matmul", )), [(step.op, step.of) for step in CASES["mlp"][0].steps])
        self.assertIn("log_softmax", CASES["cross_entropy"][0].ops())
        self.assertIn("softplus", CASES["activations"][0].ops())

    def test_what_follows_from_constants_is_one(self):
        self.assertNotIn("sqrt", CASES["attention"][0].ops())
        self.assertIn(2.828125, [each for step in CASES["attention"][0].steps for each in step.of])


class Said(unittest.TestCase):
    """Functions that a case cannot express: an error with the primitive, and the line."""

    def refused(self, f, text):
        with self.assertRaises(ulpscope.CaptureError) as caught:
            ulpscope.capture_jax(f, (normal(0, 3, 4), ), verify=())
        self.assertIn(text, str(caught.exception))
        self.assertRegex(str(caught.exception), r"blocks_jax\.py:\d+: \w")

    def test_loops_and_branches(self):
        self.refused(blocks.halves, "primitive while: a loop")
        self.refused(blocks.scanned, "primitive scan: a loop")
        self.refused(blocks.branches, "primitive cond: a branch on values")
        self.refused(blocks.depends, "depends on the values of an array")

    def test_random_numbers(self):
        self.refused(blocks.dropped, "primitive random_seed: random numbers")

    def test_a_primitive_that_has_no_word(self):
        self.refused(blocks.inverse, "primitive erf_inv: the case language has no word for it")


    def test_a_program_that_is_not_called(self):
        """Pallas runs what it holds once for each place of a grid; what fails inside is an error of the same form."""
        self.refused(blocks.tiled, "primitive pallas_call: it holds a program of its own")
        self.refused(blocks.folded, "primitive reduce: it holds a program of its own")
        with mock.patch.object(primitives_jax.Walk, "_elementwise", side_effect=IndexError("string index out of range")):
            self.refused(blocks.doubled, "primitive mul: capture has no way to say it; this is a fault of ulpscope's own (IndexError: ")


class Products(unittest.TestCase):
    def captured(self, f, *args):
        """The case of f, which has f's bits on jax-eager."""
        return ulpscope.capture_jax(f, args, verify=("jax-eager", ))

    def test_two_dtypes_are_the_wider_one(self):
        wide, narrow = normal(0, 4, 8), normal(1, 8, 5, dtype=HALF)
        case = self.captured(lambda a, b: jnp.einsum("n,d->nd", a, b), wide[0], narrow[0])
        self.assertEqual([(step.op, step.attrs) for step in case.steps][:1], [("cast", {"dtype": "float32"})])
        for f, args in ((lambda a, b: a @ b, (wide, narrow)), (lambda a, b: jnp.einsum("nk,kd->nd", a, b), (wide.astype(jnp.float16), narrow))):
            self.assertIn("cast", self.captured(f, *args).ops())

    def test_a_result_that_holds_neither_dtype_is_refused(self):
        def narrowed(a, b):
            return jax.lax.dot_general(a, b, (((1, ), (0, )), ((), ())), preferred_element_type=HALF)

        with self.assertRaisesRegex(ulpscope.CaptureError, "primitive dot_general: operands of two dtypes .float32 and bfloat16. with a result in bfloat16"):
            ulpscope.capture_jax(narrowed, (normal(0, 4, 8), normal(1, 8, 5, dtype=HALF)), verify=())

    def test_a_dtype_of_the_sum_is_kept_by_any_product(self):
        a, b = normal(0, 2, 4, 3, 8, dtype=HALF), normal(1, 2, 4, 3, 8, dtype=HALF)
        for equation in ("bqhd,bkhd->bhqk", "bqhd,crhd->bqcr", "bqhd,bqhd->bqh"):
            case = self.captured(lambda a, b, equation=equation: jnp.einsum(equation, a, b, preferred_element_type=jnp.float32), a, b)
            self.assertIn({"preferred_element_type": "float32"}, [step.attrs for step in case.steps if step.op == "matmul"], equation)


class Checked(unittest.TestCase):
    def test_three_lines(self):
        f, args = CASES["mlp"][1:]
        report = ulpscope.check(f, args, name="mlp", backends=["jax", "jax-eager"])
        self.assertTrue(report.ok, report)
        self.assertEqual(set(report.own), {"jax", "jax-eager"})
        self.assertEqual(report.own["jax-eager"], {"result": ""})
        self.assertEqual(set(report.matrix["result"]), {"jax", "jax-eager"})


if __name__ == "__main__":
    unittest.main()
