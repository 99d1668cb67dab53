# The emulator of programs does what its plans describe and nothing else, programs follow from their seeds, and the score counts a fault.
"""usage: test_programs.py"""

import copy
import functools
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

try:
    import ml_dtypes
    import numpy as np
except ImportError:
    ml_dtypes = None
else:
    import accusations
    import emulator
    import generate
    import plans
    import score
    from arithmetic import VIEWS
    from emulator import Plan
    from tools import store
    from ulpscope_adapter.request import Step

F32, BF16, F16 = "float32", "bfloat16", "float16"


def step(text, op, *of, **attrs):
    return Step(op=op, of=of, name=text, attrs=attrs)


def data(program, seed=0):
    rng = np.random.default_rng(seed)
    return {name: store(rng.standard_normal(shape), dtype) for name, (dtype, shape) in program.tensors.items()}


@functools.lru_cache
def programs(count=30, seed=11):
    return [generate.program(seed, index) for index in range(count)]


def narrow(x):
    return np.asarray(x, np.float32).astype(ml_dtypes.bfloat16)


def direct_dot(a, b):
    """float32 sums one after the other, in NumPy's own arithmetic; products of two bfloat16 numbers are exact there."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        total = total + a[:, k, None].astype(np.float32) * b[None, k, :].astype(np.float32)
    return total


@unittest.skipUnless(ml_dtypes, "needs NumPy and ml_dtypes")
class KnownAnswers(unittest.TestCase):
    """The emulator's results, against the same computation in NumPy's float32."""

    def setUp(self):
        rng = np.random.default_rng(5)
        self.tensors = {"x": store(rng.standard_normal((8, 32)), BF16), "w": store(rng.standard_normal((16, 32)), BF16),
                        "b": store(rng.standard_normal(16), BF16), "f": store(rng.standard_normal((8, 16)), F32)}
        self.steps = (step("y", "linear", "x", "w", "b"), step("s", "silu", "y"), step("g", "mul", "s", "y"), step("c", "cast", "g", dtype=F32),
                      step("z", "add", "c", "f"), step("m", "mean", "z", dim=1, keepdim=True))

    def equal(self, value, array):
        self.assertEqual(value.array().dtype, array.dtype)
        self.assertEqual(value.array().tobytes(), array.tobytes())

    def silu(self, y):
        one = np.float32(1)
        exponential = np.exp(-y.astype(np.float64)).astype(np.float32)
        return y * (one / (one + exponential))

    def test_honest(self):
        values = emulator.run(self.steps, self.tensors, Plan())
        t = self.tensors
        y = narrow(direct_dot(t["x"], t["w"].T) + t["b"].astype(np.float32))
        s = narrow(self.silu(y.astype(np.float32)))
        g = narrow(s.astype(np.float32) * y.astype(np.float32))
        z = g.astype(np.float32) + t["f"]
        total = np.zeros((8, 1), np.float32)
        for k in range(16):
            total = total + z[:, k:k + 1]
        for name, array in {"y": y, "s": s, "g": g, "c": g.astype(np.float32), "z": z, "m": total / np.float32(16)}.items():
            with self.subTest(name):
                self.equal(values[name], array)

    def test_unrounded_use(self):
        values = emulator.run(self.steps, self.tensors, Plan(reads={("g", "s"): "unrounded"}))
        honest = emulator.run(self.steps, self.tensors, Plan())
        y = values["y"].array().astype(np.float32)
        self.equal(values["s"], honest["s"].array())
        self.equal(values["g"], narrow(self.silu(y) * y))
        self.assertFalse(emulator.same_bits(values["g"], honest["g"]))

    def test_a_cast_pair_undone(self):
        values = emulator.run(self.steps, self.tensors, Plan(reads={("c", "g"): "unrounded"}))
        s, y = (values[name].array().astype(np.float32) for name in "sy")
        self.equal(values["c"], s * y)

    def test_use_in_a_narrower_format(self):
        values = emulator.run(self.steps, self.tensors, Plan(reads={("m", "z"): BF16}))
        z = narrow(values["z"].array()).astype(np.float32)
        total = np.zeros((8, 1), np.float32)
        for k in range(16):
            total = total + z[:, k:k + 1]
        self.equal(values["m"], total / np.float32(16))

    def test_narrow_sum(self):
        values = emulator.run(self.steps, self.tensors, Plan(accumulators={"m": BF16}))
        z = values["z"].array().astype(np.float64)
        total = np.zeros((8, 1), ml_dtypes.bfloat16)
        for k in range(16):
            total = store(total.astype(np.float64) + z[:, k:k + 1], BF16)  # both have few bits: their sum is exact in float64
        self.equal(values["m"], total.astype(np.float32) / np.float32(16))

    def test_bias_after_a_rounding(self):
        values = emulator.run(self.steps, self.tensors, Plan(inner={"y": {"product": BF16}}))
        t = self.tensors
        product = narrow(direct_dot(t["x"], t["w"].T))
        self.equal(values["y"], narrow(product.astype(np.float32) + t["b"].astype(np.float32)))

    def test_contraction(self):
        rng = np.random.default_rng(6)
        a, b, c = (rng.standard_normal(500).astype(np.float32) for _ in range(3))
        steps = (step("p", "mul", "a", "b"), step("q", "add", "p", "c"))
        values = emulator.run(steps, {"a": a, "b": b, "c": c}, Plan(reads={("q", "p"): "contracted"}))
        from fractions import Fraction
        for i in range(500):
            whole = Fraction(float(a[i])) * Fraction(float(b[i])) + Fraction(float(c[i]))
            self.assertEqual(abs(Fraction(float(values["q"].stored[i])) - whole), min(
                abs(Fraction(float(x)) - whole) for x in (values["q"].array()[i], np.nextafter(values["q"].array()[i], np.float32(-9e9)),
                                                          np.nextafter(values["q"].array()[i], np.float32(9e9)))))
        self.equal(values["p"], a * b)
        self.assertGreater((values["q"].array() != a * b + c).sum(), 5)

    def test_flush(self):
        tiny = np.array([3e-39, -3e-39, 2e-38, 1.0], np.float32)
        steps = (step("p", "mul", "a", 0.5), step("q", "mul", "p", 4.0))
        honest = emulator.run(steps, {"a": tiny}, Plan())
        self.equal(honest["p"], tiny * np.float32(0.5))
        results = emulator.run(steps, {"a": tiny}, Plan(flushes={"p": "ftz"}))
        self.equal(results["p"], np.array([0.0, -0.0, 0.0, 0.5], np.float32))
        operands = emulator.run(steps, {"a": tiny}, Plan(flushes={"p": "daz"}))
        self.equal(operands["p"], np.array([0.0, -0.0, np.float32(2e-38) * np.float32(0.5), 0.5], np.float32))

    def test_orders_give_other_bits_and_the_same_sums(self):
        honest = {name: emulator.run(self.steps, self.tensors, Plan(**words)) for name, words in plans.HONEST.items()}
        exact = self.tensors["x"].astype(np.float64) @ self.tensors["w"].astype(np.float64).T + self.tensors["b"].astype(np.float64)
        different = set()
        for values in honest.values():
            self.assertLess(np.abs(values["y"].wide - exact).max(), 2e-5)
            different.add(values["y"].wide.tobytes())
        self.assertGreaterEqual(len(different), 4)

    def test_softmax_exp_rounded_in_one_use(self):
        x = store(np.random.default_rng(7).standard_normal((4, 16)), F32)
        steps = (step("p", "softmax", "x", dim=1), )
        values = emulator.run(steps, {"x": x}, Plan(inner={"p": {"exp_in_numerator": BF16}}))
        e = np.exp((x - x.max(1, keepdims=True)).astype(np.float64)).astype(np.float32)
        total = np.zeros((4, 1), np.float32)
        for k in range(16):
            total = total + e[:, k:k + 1]
        self.equal(values["p"], narrow(e).astype(np.float32) / total)


@unittest.skipUnless(ml_dtypes, "needs NumPy and ml_dtypes")
class Faults(unittest.TestCase):
    """On random programs: a fault changes the step that it is planted in where the truth has it, and nothing that does not rest on it."""

    def touched(self, plan):
        return {name for name, _ in plan.reads} | set(plan.accumulators) | set(plan.flushes) | set(plan.inner)

    def test_each_family(self):
        planted = dict.fromkeys(plans.FAULTS, 0)
        for program in programs():
            inputs = data(program)
            for backend in plans.FAULTS:
                plan = plans.plan(backend, program.name, program.steps, program.dtypes())
                honest = emulator.run(program.steps, inputs, Plan(order=plan.order, prod=plan.prod))
                values = emulator.run(program.steps, inputs, plan)
                truth = {row["value"]: row for row in emulator.truth(program.steps, inputs, plan)}
                stale, faults = set(), self.touched(plan)
                for each in program.steps:
                    fresh = not stale & set(x for x in each.of if isinstance(x, str))
                    if each.name in faults:
                        changed = not emulator.same_bits(values[each.name], honest[each.name])
                        shown = [truth[each.name][f"{key}_visible"] for key in ("acc", "flush", "inner")]
                        shown += [use["visible"] for use in truth[each.name]["reads"] if use["as"] != "stored"]
                        if fresh and len(shown) and sum(map(bool, shown)) <= 1 and self.faults_of(plan, each.name) == 1:
                            self.assertEqual(changed, any(shown), (program.name, backend, each.name))
                        planted[backend] += any(shown)
                        stale.add(each.name)
                    elif fresh:
                        self.assertTrue(emulator.same_bits(values[each.name], honest[each.name]), (program.name, backend, each.name))
                    else:
                        stale.add(each.name)
        for backend, count in planted.items():
            self.assertGreater(count, 0 if backend == "flush" else 3, backend)

    def faults_of(self, plan, name):
        return sum(name == use[0] for use in plan.reads) + sum(name in words for words in (plan.accumulators, plan.flushes, plan.inner))

    def test_opening_changes_no_bits_but_where_it_must(self):
        changed = 0
        for program in programs():
            inputs = data(program)
            for backend in plans.BACKENDS:
                asked, opened = (plans.plan(backend, plans.program_of(case), program.steps, program.dtypes())
                                 for case in (f"file/{program.name}", f"elsewhere/{program.name}~opened"))
                self.assertEqual(asked, opened)
                if backend == "opened_changes":
                    self.assertTrue(asked.opened().honest)
                    changed += score.opening_shows(program, backend, inputs)
                else:
                    self.assertEqual(asked.opened(), asked)
        self.assertGreater(changed, 5)

    def test_honest_plans_are_honest(self):
        for program in programs(10):
            for backend in plans.HONEST:
                self.assertTrue(plans.plan(backend, program.name, program.steps, program.dtypes()).honest)


@unittest.skipUnless(ml_dtypes, "needs NumPy and ml_dtypes")
class Programs(unittest.TestCase):
    def test_from_the_seed_alone(self):
        command = [sys.executable, os.path.join(HERE, "generate.py"), "--seed", "3", "--count", "5"]
        texts = [subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed}).stdout
                 for seed in ("1", "2")]
        self.assertEqual(texts[0], texts[1])
        self.assertEqual(texts[0], generate.yaml([generate.program(3, index) for index in range(5)]))
        self.assertNotEqual(texts[0], generate.yaml([generate.program(4, index) for index in range(5)]))

    def test_what_they_cover(self):
        made = programs(150, seed=2)
        lengths = {len(program.steps) for program in made}
        self.assertEqual(lengths, set(range(generate.FEWEST, generate.MOST + 1)))
        ops = {each.op for program in made for each in program.steps}
        self.assertLessEqual({"linear", "matmul", "mul", "add", "sub", "silu", "gelu", "relu", "sigmoid", "tanh", "exp", "softmax",
                              "layer_norm", "sum", "mean", "cast", "transpose", "reshape"}, ops)
        kinds = {dtype for program in made for dtype in program.dtypes().values()}
        self.assertEqual(kinds, {F32, BF16, F16})
        twice = [program for program in made if len([x for each in program.steps for x in set(each.of) if x == program.steps[0].name]) > 1]
        self.assertGreater(len(twice), 10)
        for program in made:
            self.assertIn(len(program.observe), (1, 2))
            self.assertEqual(program.observe[-1], program.steps[-1].name)
            values = emulator.run(program.steps, data(program), Plan())
            for each in program.steps:
                self.assertTrue(np.isfinite(values[each.name].stored).all(), (program.name, each))


def truthful(truth):
    """A report with true findings, and no more than the bits show."""
    steps = []
    for row in truth["steps"]:
        facets = {"acc": [row["acc"]], "mid": ["none"], "prod": ["exact"], "in": {}, "out": []} if row["acc"] else {}
        steps.append({"value": row["value"], "op": row["op"], "reads": [{"operand": use["operand"], "as": list(use["same"])} for use in row["reads"]],
                      "classification": {"kind": "identified", "label": "", "facets": facets, "says": []}})
    return {"id": truth["program"], "status": "PASS", "outcome": {"kind": "completed"}, "steps": steps, "opened": {"kept": True}, "values": {}}


@unittest.skipUnless(ml_dtypes, "needs NumPy and ml_dtypes")
class Score(unittest.TestCase):
    """Reports that are made up: a lie is counted as what it is."""

    @classmethod
    def setUpClass(cls):
        cls.truths = {}
        for program in programs():
            inputs = data(program)
            for backend in ("honest", "unrounded", "narrow_use", "narrow_sum", "contract"):
                cls.truths[(program.name, backend)] = generate.truth_rows(program, backend, inputs)

    def total(self, tamper=None, only=None, bits_differ=False):
        rows = []
        for (program, backend), truth in self.truths.items():
            if only and backend != only:
                continue
            result = truthful(copy.deepcopy(truth))
            if tamper:
                tamper(result, truth)
            findings = [vars(each) for each in accusations.judge(truth, result, bits_differ)]
            rows.append({"program": program, "backend": backend, "findings": findings, "honest": backend == "honest", "today": [],
                         "said_of_steps": True, "classifications": []})
        return score.summary(rows, [])

    def test_the_truth_passes(self):
        total = self.total()
        self.assertEqual(total["gates"], dict.fromkeys(accusations.GATES, 0))
        self.assertGreater(total["visible_uses"], 100)
        self.assertEqual(total["unique_uses"], total["visible_uses"])
        self.assertGreater(sum(total["planted_visible_uses"].values()), 30)
        self.assertEqual(score.exit_code(total), 0)

    def test_nothing_is_an_error(self):
        self.assertEqual(score.exit_code(score.summary([], [])), 2)

    def first_use(self, wanted, said):
        """A tampering of the first use that `wanted` holds for, once in all."""
        done = []

        def tamper(result, truth):
            for row in truth["steps"]:
                for use in row["reads"]:
                    if not done and wanted(use):
                        done.append(use)
                        listed = next(each for each in result["steps"] if each["value"] == row["value"])
                        next(each for each in listed["reads"] if each["operand"] == use["operand"])["as"] = said(use)

        return tamper

    def test_an_honest_use_accused(self):
        total = self.total(self.first_use(lambda use: use["as"] == "stored", lambda use: ["unrounded"]), only="honest")
        self.assertEqual(total["gates"]["false accusation"], 1)
        self.assertEqual(score.exit_code(total), 1)

    def test_a_planted_use_denied(self):
        total = self.total(self.first_use(lambda use: use["as"] == "unrounded" and use["visible"], lambda use: ["stored"]))
        self.assertEqual(total["gates"]["truth excluded"], 1)
        self.assertEqual(score.exit_code(total), 1)

    def test_a_wrong_place(self):
        total = self.total(self.first_use(lambda use: use["as"] == "bfloat16" and use["visible"] and "float16" not in use["same"],
                                          lambda use: ["float16"]))
        self.assertEqual(total["gates"]["false accusation"], 1)

    def test_a_use_left_open(self):
        visible = lambda use: use["visible"] and use["as"] in ("stored", "unrounded")  # noqa: E731
        total = self.total(self.first_use(visible, lambda use: ["stored", "unrounded"]))
        self.assertEqual(sum(total["gates"].values()), 0)
        self.assertEqual(total["unique_uses"], total["visible_uses"] - 1)

    def test_a_planted_use_without_a_name(self):
        total = self.total(self.first_use(lambda use: use["as"] != "stored" and use["visible"], lambda use: []))
        self.assertEqual(total["planted_visible_uses"]["not told"], 1)
        self.assertEqual(score.exit_code(total), 1)

    def test_sums(self):
        def accuse(result, truth):
            for each in result["steps"]:
                if "acc" in each["classification"]["facets"]:
                    each["classification"]["facets"]["acc"] = ["bfloat16", "float16"]

        sums = sum(row["acc"] is not None for (_, backend), truth in self.truths.items() if backend == "honest" for row in truth["steps"])
        self.assertGreater(sums, 20)
        self.assertEqual(self.total(accuse, only="honest")["gates"]["false accusation"], sums)

        def deny(result, truth):
            for each in result["steps"]:
                if "acc" in each["classification"]["facets"]:
                    each["classification"]["facets"]["acc"] = ["float32"]

        narrow_ones = sum(row["acc_visible"] for (_, backend), truth in self.truths.items() if backend == "narrow_sum" for row in truth["steps"])
        self.assertGreater(narrow_ones, 5)
        self.assertEqual(self.total(deny, only="narrow_sum")["gates"]["truth excluded"], narrow_ones)

    def test_operands_and_flushing(self):
        def operand(result, truth):
            result["steps"][0]["classification"]["facets"] = {"in": {"x0": ["bfloat16_rne"]}}

        def flush(result, truth):
            result["steps"][0]["classification"]["facets"] = {"in": {"x0": ["as_is+daz"]}}

        cases = sum(backend == "honest" and not truth["steps"][0]["view"] for (_, backend), truth in self.truths.items())
        for tamper in (operand, flush):
            self.assertGreaterEqual(self.total(tamper, only="honest")["gates"]["false accusation"], cases)

    def test_unmodelled_is_counted(self):
        def shrug(result, truth):
            result["steps"][-1]["classification"] = {"kind": "unmodelled"}
            result["steps"][-1]["reads"] = []

        total = self.total(shrug, only="honest")
        self.assertEqual(sum(n for key, n in total["counts"].items() if key.startswith("step") and key.endswith("/ unmodelled")), len(programs()))
        self.assertEqual(total["gates"]["false accusation"], 0)

    def test_opening(self):
        kept = self.total(bits_differ=True, only="honest")
        self.assertEqual(kept["gates"]["opening unnoticed"], len(programs()))

        def deny(result, truth):
            result["opened"] = {"kept": False}

        self.assertEqual(self.total(deny, only="honest")["gates"]["opening denied"], len(programs()))
        self.assertEqual(sum(self.total(deny, only="honest", bits_differ=True)["gates"].values()), 0)

    def test_steps_that_are_not_listed(self):
        total = self.total(lambda result, truth: result["steps"].clear(), only="honest")
        self.assertEqual(total["steps"], 0)
        self.assertEqual(score.exit_code(total), 2)

    def test_a_program_judged_as_a_whole(self):
        program = next(each for each in programs() if each.steps[-1].op not in VIEWS)
        truth = self.truths[(program.name, "honest")]
        fair = {"values": {program.observe[-1]: {"facets": {"acc": ["float32", "bfloat16"], "mid": ["none"], "in": {}}, "cuts": {}}}}
        self.assertEqual(accusations.today(truth, fair), [])
        fair["values"][program.observe[-1]]["facets"]["acc"] = ["bfloat16", "split_k(float16,float32)"]
        self.assertEqual(len(accusations.today(truth, fair)), 1)

    def test_false_divergences(self):
        rows = [{"program": "p1_0", "backend": name, "honest": True} for name in ("honest", "lanes")]
        report = {"divergences": [{"case": "f/p1_0", "kind": "precision", "backends": [["honest:keep=x"], ["lanes:keep=x"]], "sentence": "no"},
                                  {"case": "f/p1_0", "kind": "order", "backends": [["honest:keep=x"], ["lanes:keep=x"]], "sentence": "yes"},
                                  {"case": "f/p1_0", "kind": "precision", "backends": [["honest"], ["flush"]], "sentence": "yes"}]}
        self.assertEqual(len(score.false_divergences(report, rows)), 1)

    def test_lanes_of_one_product_each_round_it(self):
        rng = np.random.default_rng(8)
        steps = (step("y", "matmul", "a", "b"), )
        for terms, expected in ((8, 0), (24, 1)):
            tensors = {"a": store(rng.standard_normal((6, terms)), F32), "b": store(rng.standard_normal((terms, 6)), F32)}
            rows = [{"program": "p1_0", "backend": name, "honest": True, "truth": {"steps": emulator.truth(steps, tensors, Plan(**plans.HONEST[name]))}}
                    for name in ("honest", "lanes")]
            told = "{0} likely rounds each product to float32; {1} likely does not: `y[0,0]` is 1 on {0} and 2 on {1}."
            said = {"case": "f/p1_0", "kind": "precision", "value": "y", "backends": [["honest:keep=x"], ["lanes:keep=x"]],
                    "sentence": told.format("lanes:keep=x", "honest:keep=x")}
            turned = {**said, "sentence": told.format("honest:keep=x", "lanes:keep=x")}
            self.assertEqual(len(score.false_divergences({"divergences": [said]}, rows)), expected)
            self.assertEqual(len(score.false_divergences({"divergences": [turned]}, rows)), 1)

    def test_nothing_but_zeros_is_left(self):
        steps = (step("p", "mul", "x", 7.1e-38), step("q", "relu", "p"))
        tensors = {"x": store(np.random.default_rng(9).standard_normal((8, 8)), F32)}
        truth = {"program": "p", "opened_differs": False, "steps": emulator.truth(steps, tensors, Plan(reads={("q", "p"): F16}))}
        self.assertTrue(truth["steps"][1]["reads"][0]["gone"])
        for says, lost in (["every result is zero where exact ones reach 1.5e-37: no format shows"], 0), (["something else"], 1):
            result = truthful(copy.deepcopy(truth))
            result["steps"][1].update(reads=[], classification={"kind": "unmodelled", "says": says})
            findings = accusations.judge(truth, result, False)
            self.assertEqual(sum(each.what == "unmodelled" and each.place.startswith("use") for each in findings), lost)
        half = emulator.truth(steps, {"x": store(np.array([1e30, 1.0]), F32)}, Plan(reads={("q", "p"): F16}))
        self.assertFalse(half[1]["reads"][0]["gone"])

    def test_a_format_of_a_small_range_drops_subnormals(self):
        tiny = store(np.array([3e-39, -5e-39, 1e-39]), F32)
        steps = (step("p", "mul", "x", 1.0), step("s", "add", "p", "x"))
        rows = emulator.truth(steps, {"x": tiny}, Plan(reads={("s", "p"): F16}))
        self.assertIn("flushed", rows[1]["reads"][0]["same"])
        self.assertNotIn("flushed", emulator.truth(steps, {"x": store(np.array([1.0, 2.1]), F32)}, Plan(reads={("s", "p"): F16}))[1]["reads"][0]["same"])


if __name__ == "__main__":
    unittest.main()
