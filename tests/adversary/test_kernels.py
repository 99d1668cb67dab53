# The adversary's kernels do what their rows describe, and the score's gates find a fault.
"""usage: test_kernels.py"""

import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../backends/python")]

try:
    import ml_dtypes
    import numpy as np
except ImportError:
    ml_dtypes = None
else:
    import cells
    import classes
    import kernels
    import labels
    import ops
    import score
    from kernel import Call
    from rounding import STORES

FILLS = ("normal", "positive", "wide", "small", "special", "shifted", "huge")
FAINT = {"out_rna"}  # rounds ties alone otherwise: never an error of more than half an ulp


def data(fill, shape, dtype, rng):
    x = rng.standard_normal(shape)
    if fill == "positive":
        x = np.abs(x)
    elif fill == "wide":
        x = x * 2.0**rng.integers(-12, 12, shape)
    elif fill == "small":
        x = x * STORES[dtype][2]
    elif fill == "shifted":
        x = 2 + x / 100
    elif fill == "huge":
        x = x * {"float16": 2.0**6, "float32": 2.0**64, "bfloat16": 2.0**64}[dtype]
    with np.errstate(all="ignore"):
        x = x.astype(np.float32).astype(STORES[dtype][0])
    if fill == "special" and x.ndim > 1:
        x[0, 0], x[1, 1] = np.inf, np.nan
    return x


def calls(kernel):
    """(what the operands follow from, a call of a kernel), on all sorts of data."""
    for dtype in kernel.inputs:
        for fill in FILLS:
            for k in (72, 3):
                cell = cells.Cell(kernel.name, 0, kernel.op, dtype, dtype, 9, k, 10 if kernel.op in ops.PRODUCTS else k, fill)
                rng = np.random.default_rng([k, FILLS.index(fill)])
                shapes = cells.tensors(cell)
                # In a chain only x is unusual, as in the cells; in a product the second operand stays near 1.
                made = {name: data(fill if name in ("x", "g") else "normal", shape, dtype, rng) for name,
                        shape in shapes.items()}
                if fill == "huge" and "w" in made and kernel.op in ops.PRODUCTS:
                    made["w"] = data(fill, shapes["w"], dtype, rng)
                for output in dict.fromkeys((dtype, "float32")) if kernel.op in cells.WIDENS else (dtype, ):
                    yield (kernel.op, dtype, fill, k, output), Call(operands=tuple(made[name] for name in cells.operands(cell)),
                                                                    dtype=output, attrs=cells.attributes(cell))


@unittest.skipUnless(ml_dtypes, "needs NumPy and ml_dtypes")
class Kernels(unittest.TestCase):
    def test_names_and_numbers(self):
        table = kernels.load(kernels.FIRST)
        self.assertGreaterEqual(len(table), 160)
        for kernel in table.values():
            self.assertRegex(kernel.name, r"^[a-z][a-z0-9_]*$")
            self.assertNotIn("__", kernel.name)
            self.assertIn(kernel.kind, ("honest", "narrow", "wrong"))
        self.assertEqual({kernel.op for kernel in table.values()}, {*ops.PRODUCTS, *ops.CHAINS})

    def test_honest_ones_are_like_each_other_and_the_rest_are_not(self):
        """An honest kernel has the dtype and the error of the honest orders on all data, another one not on some."""
        checked, known, faint = 0, {}, set()
        for kernel in kernels.load(kernels.FIRST).values():
            seen = set()
            for key, call in calls(kernel):
                y = kernel.run(call)
                if key not in known:
                    known[key] = ops.honest_results(kernel.op, call)
                honest, exact = known[key]
                self.assertEqual(y.dtype, np.dtype(STORES[call.dtype][0]), kernel.name)
                self.assertEqual(y.shape, honest[0].shape, kernel.name)
                seen.add(classes.compare(y, honest, *exact)["class"])
                checked += 1
                if kernel.kind != "honest" and classes.VISIBLE in seen:
                    break
            if kernel.kind == "honest":
                self.assertLessEqual(seen, {classes.SAME, classes.TWICE}, kernel.name)
            elif classes.VISIBLE not in seen:
                self.assertIn(classes.TWICE, seen, kernel.name)
                faint.add(kernel.name)
        self.assertEqual(faint, FAINT)
        self.assertGreater(checked, 1000)


@unittest.skipUnless(ml_dtypes, "needs NumPy and ml_dtypes")
class Cells(unittest.TestCase):
    def test_choice_is_the_same_again(self):
        table = list(kernels.load(kernels.FIRST).values())
        chosen = cells.choose(table, 2 * len(table))
        self.assertEqual(cells.files(chosen), cells.files(cells.choose(table, 2 * len(table))))
        self.assertEqual(len({each.name for each in chosen}), 2 * len(table))
        self.assertTrue(all(len(line) < 60_000 for text in cells.files(chosen) for line in text.splitlines()))
        self.assertEqual(sum(len(re.findall("- name: ", text)) for text in cells.files(chosen)), len(chosen))
        self.assertNotEqual(cells.files(chosen), cells.files(cells.choose(table, 2 * len(table), "salt")))
        self.assertIn("prove: true", cells.case(chosen[0], prove=True))


@unittest.skipUnless(ml_dtypes, "needs NumPy and ml_dtypes")
class Score(unittest.TestCase):
    def row(self, **more):
        return {"class": "honest", "verdict": "CONFORMS", "excluded": "", "false": [], "status": "PASS", "states_error": False,
                "cell": "f32_sequential__0",
                "kernel": "f32_sequential", "about": "", "kind": "honest", **more}

    def test_gates(self):
        rows = [self.row(), self.row(), self.row(verdict="UNDETERMINED"), self.row(**{"class": classes.SAME}),
                self.row(**{"class": classes.TWICE}),
                self.row(**{"class": classes.VISIBLE, "verdict": "VIOLATES"})]
        self.assertEqual({gate: len(bad) for gate, bad in score.findings(rows).items()}, dict.fromkeys(score.GATES, 0))
        score.plant(rows)
        self.assertEqual({gate: len(bad) for gate, bad in score.findings(rows).items()}, dict.fromkeys(score.GATES, 1))

    def test_what_conforms_beyond_float32_says_so(self):
        rows = [self.row(**{"class": classes.VISIBLE, "states_error": states}) for states in (False, True)]
        self.assertEqual(score.findings(rows)["wrong CONFORMS"], rows[:1])

    def test_another_formula_is_accepted_as_near_as_functions_are(self):
        exact = np.tanh(np.linspace(0.1, 2, 50)).astype(np.float32).astype(np.float64)
        units = np.spacing(exact.astype(np.float32)).astype(np.float64)
        near = {(name, by): score._is_near(score.KERNELS[name], (exact + by * units).astype(np.float32), (exact, 0.0))
                for name in ("tanh_pade", "h_gelu_short_erf", "f32_sequential") for by in (7, 9, 63, 65)}
        self.assertEqual([key for key, value in near.items() if value],
                         [("tanh_pade", 7), *(("h_gelu_short_erf", by) for by in (7, 9, 63))])

    def test_labels_of_kernels_without_a_recipe_are_refuted_by_their_errors(self):
        """Three pieces of bfloat16 err as float32 does; pieces of which one is missing do not."""
        rng = np.random.default_rng(11)
        call = Call(operands=(data("normal", (9, 40), "float32", rng), data("normal", (40, 9), "float32", rng)),
                    dtype="float32", attrs={})
        model = "in=as_is;prod=exact;acc={};mid=none;out=float32_rne"
        like = {(name, acc): bool(labels.errs_like(model.format(acc), score.KERNELS[name], call, score.KERNELS[name].run(call)))
                for name in ("bf16x6", "bf16x2", "acc_bfloat16") for acc in ("float32", "bfloat16")}
        self.assertEqual([key for key, value in like.items() if value], [("bf16x6", "float32")])

    def test_sums_stored_in_float16_after_each_block_are_such_blocks(self):
        rng = np.random.default_rng(12)
        call = Call(operands=(data("normal", (9, 100), "float16", rng), data("normal", (100, 9), "float16", rng)),
                    dtype="float16", attrs={})
        model = "in=as_is;prod=exact;acc=blockfma(16,25,rne_float16);mid=none;out=float16_rne"
        like = {name: bool(labels.gives_model(model, score.KERNELS[name], call, score.KERNELS[name].run(call)))
                for name in ("h_spilled_float16_16", "h_spilled_bfloat16_32", "h_promoted_float16_8")}
        self.assertEqual([name for name, value in like.items() if value], ["h_spilled_float16_16"])

    def test_sums_in_so_many_bits_are_known_by_their_bits(self):
        """A word that shifts to the right as a sum grows is one of 20 bits, where the sum does nothing but grow."""
        kernel, said = score.KERNELS["e_never_finer_p20"], {}
        for model in ("in=as_is;prod=exact;acc=p20;mid=none;out=float32_rne", "in=as_is;prod=exact;acc=p19;mid=none;out=float32_rne",
                      "in=x:p20_rne;prod=exact;acc=float32;mid=none;out=float32_rne"):
            for fill in ("positive", "normal"):
                rng = np.random.default_rng(13)
                call = Call(operands=(data(fill, (4, 90), "float32", rng), data(fill, (90, 4), "float32", rng)), dtype="float32",
                            attrs={})
                said[model, fill] = bool(labels.gives_model(model, kernel, call, kernel.run(call)))
        self.assertEqual([fill for (model, fill), value in said.items() if value], ["positive"])
        self.assertTrue(said["in=as_is;prod=exact;acc=p20;mid=none;out=float32_rne", "positive"])

    def test_operands_in_so_many_bits_are_known_by_their_bits(self):
        rng = np.random.default_rng(14)
        call = Call(operands=(data("normal", (4, 90), "float32", rng), data("normal", (90, 4), "float32", rng)), dtype="float32",
                    attrs={})
        kernel = score.KERNELS["in_p22_rz"]
        model = "in=x:p{0},w:p{0};prod=exact;acc=float32;mid=none;out=float32_rne"
        self.assertEqual([word for word in ("22_rz", "22_rne", "21_rz")
                          if labels.gives_model(model.format(word), kernel, call, kernel.run(call))], ["22_rz"])

    def test_sums_of_positive_terms_that_round_down_are_truncating_ones(self):
        """With terms of both signs they are not: the label would be false."""
        model = "in=as_is;prod=exact;acc=float32_rz;mid=none;out=float32_rne"
        kernel = score.KERNELS["h_downwards"]
        said = {}
        for fill in ("positive", "normal"):
            rng = np.random.default_rng(13)
            call = Call(operands=(data(fill, (9, 40), "float32", rng), data(fill, (40, 9), "float32", rng)), dtype="float32", attrs={})
            said[fill] = labels.false_words(kernel, kernel.truth("float32", "float32"), [model], call, kernel.run(call), True, {})
        self.assertEqual(said, {"positive": [], "normal": [("acc", "float32_rz", "other")]})

    def test_what_a_dtype_holds_is_no_rounding(self):
        kernel = score.KERNELS["h_mean_kahan_bfloat16"]
        words = {inputs: kernel.truth(inputs, "float32")["in"]["x"] for inputs in ("float32", "float16", "bfloat16")}
        self.assertEqual(words, {"float32": "bfloat16_rne", "float16": "bfloat16_rne", "bfloat16": "as_is"})

    def test_a_rounding_to_so_many_bits_does_not_say_how(self):
        kernel = score.KERNELS["a_mid_p15_sr"]
        model = "in=as_is;prod=exact;acc=float32;mid={};out=float32_rne"
        said = {word: list(labels._contradictions(kernel.truth("float16", "float32"), [model.format(word)], "matmul", kernel.recipe, {}))
                for word in ("p15", "p16", "none")}
        self.assertEqual([word for word, false in said.items() if not false], ["p15"])

    def test_models_are_read(self):
        words = labels.parse("in=w:bf16x3,x:as_is;prod=exact;acc=blockfma(8,24,rz);mid=p20;out=float32_rne+ftz")
        self.assertEqual(words, {"in": {"x": "as_is", "w": "bf16x3"}, "prod": "exact", "acc": "blockfma(8,24,rz)", "mid": "p20",
                                 "out": "float32_rne+ftz"})
        self.assertEqual(labels.parse("in=as_is;prod=exact;acc=exact;mid=none;out=float32_rne", "sum")["in"]["x"], "as_is")

    def test_false_label_and_truth(self):
        """A bfloat16 accumulator: called float32 it is false, called bfloat16 or left open it is not."""
        table = kernels.load(kernels.FIRST)
        kernel = table["acc_bfloat16"]
        rng = np.random.default_rng(7)
        call = Call(operands=(data("normal", (9, 40), "float32", rng), data("normal", (40, 9), "float32", rng)),
                    dtype="float32", attrs={})
        y, truth = kernel.run(call), kernel.truth("float32", "float32")
        model = "in=as_is;prod=exact;acc={};mid=none;out=float32_rne"
        self.assertEqual(labels.false_words(kernel, truth, [model.format("float32")], call, y, True, {}),
                         [("acc", "float32", "bfloat16")])
        self.assertEqual(labels.false_words(kernel, truth, [model.format("bfloat16")], call, y, True, {}), [])
        self.assertEqual(labels.false_words(kernel, truth, [model.format("bfloat16"), model.format("float32")], call, y, True, {}),
                         [])
        self.assertTrue(labels.excluded(truth, [model.format("float32")], "matmul"))
        self.assertFalse(labels.excluded(truth, [model.format("float32"), model.format("bfloat16")], "matmul"))
        # A word that shows nothing is not false: these operands are bfloat16 numbers already.
        other = table["in_bfloat16"]
        call = Call(operands=tuple(x.astype(ml_dtypes.bfloat16).astype(np.float32) for x in call.operands), dtype="float32",
                    attrs={})
        said = labels.false_words(other, other.truth("float32", "float32"), [model.format("float32")], call, other.run(call),
                                  False, {})
        self.assertEqual(said, [])


if __name__ == "__main__":
    unittest.main()
