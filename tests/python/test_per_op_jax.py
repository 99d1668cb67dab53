#!/usr/bin/env python3
"""check_ops() of a function of JAX: every primitive of a real run, with the arrays that it had."""
import collections
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / each) for each in ("harness/python", "backends/python", "tests/support")]

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy  # noqa: E402
import ulpscope  # noqa: E402


def branching(x, w):
    h = jax.nn.silu(x @ w)
    if h.sum() > 0:
        h = h * 1.5
    else:
        h = h * 0.75
    rows = jnp.nonzero(h[:, 0] > 0.01)[0]
    return jax.nn.softmax(h[rows].astype(jnp.float32), -1)


def flowing(x):
    total = jax.lax.fori_loop(0, 3, lambda i, a: a + jnp.sin(a), x)
    total = jax.lax.cond(total.sum() > 0, lambda a: a * 2, lambda a: a - 3, total)
    carry, rows = jax.lax.scan(lambda a, b: (a + b, a * b), total[0], total, reverse=True)
    return jax.grad(lambda a: jnp.tanh(a).sum())(carry), rows


def arrays():
    key = jax.random.key(1)
    return jax.random.normal(key, (16, 32)).astype(jnp.bfloat16), jax.random.normal(jax.random.key(2), (32, 24)).astype(jnp.bfloat16)


def equations(jaxpr):
    """{primitive: calls} of a jaxpr without branches and loops, what it calls entered."""
    found = collections.Counter()
    for each in jaxpr.eqns:
        inner = each.params.get("jaxpr", each.params.get("call_jaxpr"))
        if inner is not None:
            found += equations(getattr(inner, "jaxpr", inner))
        else:
            found[f"jax::{each.primitive.name}"] += 1
    return found


def by_op(report):
    found = collections.Counter()
    for row in report.rows:
        found[row.op] += row.calls
    return found


def rows(report, primitive):
    return [row for row in report.rows if row.op == f"jax::{primitive}"]


class Primitives(unittest.TestCase):
    def test_a_branch_on_values_and_a_shape_of_them(self):
        args = arrays()
        with self.assertRaises(ulpscope.CaptureError):
            ulpscope.capture_jax(branching, args)
        report = ulpscope.check_ops(branching, args, progress=False)
        kept = branching(*args).shape[0]
        self.assertIn(f"f32[{kept},24]", [operand for row in rows(report, "exp") for operand in row.operands])
        line = next(row for row in rows(report, "dot_general")).place
        text = pathlib.Path(__file__).read_text(encoding="utf-8").splitlines()[int(line.rpartition(":")[2]) - 1].strip()
        self.assertEqual(text, "h = jax.nn.silu(x @ w)")
        self.assertGreater(report.share(report.judged), 0.8)
        product, = rows(report, "dot_general")
        self.assertEqual(numpy.asarray(product.call.results[0]).tobytes(), numpy.asarray(args[0] @ args[1]).tobytes())
        self.assertTrue(all(isinstance(each, ulpscope.Reason) for each in report.outside))
        self.assertEqual(list(product.again.values()), [""])

    def test_a_bfloat16_logistic_rounds_each_step_and_nothing_else_does(self):
        report = ulpscope.check_ops(branching, arrays(), backends=(), progress=False)
        self.assertEqual([row.op for row in report.violations], ["jax::logistic"])
        self.assertIn("inside rounded to bfloat16", report.violations[0].label)
        x = numpy.asarray(report.violations[0].call.args[0])
        power = numpy.exp(-x.astype(numpy.float64)).astype(ml_dtypes.bfloat16)
        more = (1 + power.astype(numpy.float64)).astype(ml_dtypes.bfloat16)
        rounded = (1 / more.astype(numpy.float64)).astype(ml_dtypes.bfloat16)
        self.assertEqual(rounded.tobytes(), numpy.asarray(report.violations[0].call.results[0]).tobytes())

    def test_counts_are_those_of_the_jaxpr(self):
        def straight(x, w):
            return jax.nn.softmax(jax.nn.gelu(x @ w) * 2, -1) + jnp.var(w, 0)

        args = arrays()
        report = ulpscope.check_ops(straight, args, backends=(), progress=False)
        found, traced = by_op(report), equations(jax.make_jaxpr(straight)(*args).jaxpr)
        conversions = "jax::convert_element_type"  # a run converts the numbers, too, that a jaxpr has as literals
        self.assertGreaterEqual(found.pop(conversions), traced.pop(conversions))
        self.assertEqual(found, traced)

    def test_branches_and_loops_of_jax(self):
        x = jax.random.normal(jax.random.key(3), (4, 6))
        report = ulpscope.check_ops(flowing, (x, ), backends=(), progress=False)
        self.assertEqual(sum(row.calls for row in rows(report, "sin")), 3)
        self.assertEqual(sum(row.calls for row in rows(report, "add") if row.operands == ["f32[6]", "f32[6]"]), 4, "one for each row")
        total = x
        for _ in range(3):
            total = total + jnp.sin(total)
        taken = total.sum() > 0
        self.assertEqual(bool([row for row in rows(report, "sub") if row.operands[0] == "f32[4,6]"]), not taken)
        self.assertFalse(report.violations)
        self.assertTrue(rows(report, "tanh"))


if __name__ == "__main__":
    unittest.main()
