#!/usr/bin/env python3
"""Ten pairs of programs: five of other mathematics, each named by the step that was planted, five of other roundings, each booked to the last bit;
and the figures are those of NumPy in float64 and of plain PyTorch."""
import json
import math
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / each) for each in ("tests/support", "harness/python", "backends/python")]
import numpy  # noqa: E402
import torch  # noqa: E402
import ulpscope  # noqa: E402
from programs import class_folder, ulpscope as command  # noqa: E402
from torch.nn.functional import gelu, layer_norm, scaled_dot_product_attention  # noqa: E402

ROWS, WIDTH = 16, 48
SCALE = 1 / math.sqrt(WIDTH)


def normal(seed, *shape, dtype=torch.bfloat16):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


X, W, V = normal(1, ROWS, WIDTH), normal(2, WIDTH, WIDTH), normal(3, ROWS, WIDTH)
SQUARE = normal(4, ROWS, ROWS)
WIDE = normal(5, ROWS, WIDTH, dtype=torch.float32)


# Other mathematics. The planted difference is in g.
def norm_f(x, w):
    var = x.pow(2).mean(-1, keepdim=True)
    root = torch.sqrt(var + 0.001)
    return (x / root) @ w


def norm_g(x, w):
    var = x.pow(2).mean(-1, keepdim=True)
    root = torch.sqrt(var)
    return (x / (root + 0.001)) @ w


def scores_f(q, k, v):
    scores = (q @ k.T) * SCALE
    p = torch.softmax(scores, -1)
    return p @ v


def scores_g(q, k, v):
    scores = q @ k.T
    p = torch.softmax(scores, -1)
    return p @ v


def mask_f(scores, v):
    mask = torch.ones(ROWS, ROWS, dtype=torch.bool).triu(1)
    masked = scores.masked_fill(mask, -math.inf)
    return torch.softmax(masked, -1) @ v


def mask_g(scores, v):
    mask = torch.ones(ROWS, ROWS, dtype=torch.bool).triu(2)
    masked = scores.masked_fill(mask, -math.inf)
    return torch.softmax(masked, -1) @ v


def gelu_f(x, w):
    h = x @ w
    act = gelu(h)
    return act @ w


def gelu_g(x, w):
    h = x @ w
    act = gelu(h, approximate="tanh")
    return act @ w


def position_f(x, w):
    position = torch.arange(ROWS, dtype=torch.float32)
    turned = x * torch.cos(position * 0.01).unsqueeze(1)
    return turned.to(x.dtype) @ w


def position_g(x, w):
    position = torch.arange(1, ROWS + 1, dtype=torch.float32)
    turned = x * torch.cos(position * 0.01).unsqueeze(1)
    return turned.to(x.dtype) @ w


def sums(exact):
    """numpy: softmax."""
    e = numpy.exp(exact - exact.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def exact_of(value):
    return value.double().numpy()


def exact_norm(inside):
    x = exact_of(X)
    var = (x * x).mean(-1, keepdims=True)
    return numpy.sqrt(var + 0.001) if inside else numpy.sqrt(var)


def exact_gelu(form):
    h = exact_of(X) @ exact_of(W)
    if form == "erf":
        return h * 0.5 * (1 + numpy.vectorize(math.erf)(h / math.sqrt(2)))
    return 0.5 * h * (1 + numpy.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h ** 3)))


# name: (f, g, arguments, the planted step, where it shows, its exact values in both).
DIFFERENT = {
    "eps_outside": (norm_f, norm_g, (X, W), "root", "root", lambda: (exact_norm(True), exact_norm(False))),
    "no_scale": (scores_f, scores_g, (X, V, V), "p", "p",
                 lambda: (sums(exact_of(X) @ exact_of(V).T * SCALE), sums(exact_of(X) @ exact_of(V).T))),
    "other_mask": (mask_f, mask_g, (SQUARE, V), "mask", "mask",
                   lambda: (numpy.triu(numpy.ones((ROWS, ROWS)), 1), numpy.triu(numpy.ones((ROWS, ROWS)), 2))),
    "tanh_gelu": (gelu_f, gelu_g, (X, W), "act", "act", lambda: (exact_gelu("erf"), exact_gelu("tanh"))),
    "next_position": (position_f, position_g, (X, W), "position", "position",
                      lambda: (numpy.arange(ROWS) * 1.0, numpy.arange(1, ROWS + 1) * 1.0)),
}


# Other roundings.
def order_f(x):
    return x.sum(-1)


def order_g(x):
    return x[:, :16].sum(-1) + x[:, 16:].sum(-1)


def squares_f(x):
    return (x * x).sum(-1, keepdim=True)


def squares_g(x):
    return (x.unsqueeze(1) @ x.unsqueeze(2)).squeeze(2)


def softmax_f(scores, v):
    e = torch.exp(scores)
    p = e / e.sum(-1, keepdim=True)
    return p @ v


def softmax_g(scores, v):
    shifted = scores - scores.amax(-1, keepdim=True)
    e = torch.exp(shifted)
    p = e / e.sum(-1, keepdim=True)
    return p @ v


def attention_f(q, k, v):
    return scaled_dot_product_attention(q[None], k[None], v[None])[0]


def attention_g(q, k, v):
    scaled = q / math.sqrt(WIDTH)
    p = torch.softmax(scaled @ k.T, -1)
    return p @ v


def upcast_f(x, w):
    var = x.pow(2).mean(-1, keepdim=True)
    n = x * torch.rsqrt(var + 0.001)
    return n @ w


def upcast_g(x, w):
    wide = x.float()
    var = (wide * wide).mean(-1, keepdim=True)
    n = (wide * torch.rsqrt(var + 0.001)).to(x.dtype)
    return n[:, :16] @ w[:16] + n[:, 16:] @ w[16:]


def exact_softmax():
    return sums(exact_of(SQUARE)) @ exact_of(V)


def exact_attention():
    return sums(exact_of(X) @ exact_of(V).T / math.sqrt(WIDTH)) @ exact_of(V)


def exact_upcast():
    x = exact_of(X)
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 0.001) @ exact_of(W)


# name: (f, g, arguments, the steps that are booked, the exact result).
ROUNDING = {
    "order_of_a_sum": (order_f, order_g, (WIDE, ), {"result"}, lambda: exact_of(WIDE).sum(-1)),
    "sum_of_squares": (squares_f, squares_g, (WIDE, ), {"result"}, lambda: (exact_of(WIDE) ** 2).sum(-1, keepdims=True)),
    "softmax": (softmax_f, softmax_g, (SQUARE, V), {"p"}, exact_softmax),
    "fused_scale": (attention_f, attention_g, (X, V, V), {"result"}, exact_attention),
    # An upcast in between, and a matrix product that is split along k: one cause each.
    "upcast_and_split": (upcast_f, upcast_g, (X, W), {"n", "result"}, exact_upcast),
}


def rms(values):
    return math.sqrt(numpy.mean(numpy.square(values)))


class Pairs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.found = {name: ulpscope.compare(row[0], row[1], row[2]) for name, row in {**DIFFERENT, **ROUNDING}.items()}

    def test_ten_of_ten(self):
        self.assertEqual({name: each.same_function for name, each in self.found.items()},
                         {**dict.fromkeys(DIFFERENT, False), **dict.fromkeys(ROUNDING, True)}, self.found)
        self.assertEqual(len(self.found), 10)

    def test_the_planted_step_is_named_with_the_values_that_it_has_in_float64(self):
        for name, (f, g, _, step, value, exact) in DIFFERENT.items():
            with self.subTest(pair=name):
                comparison = self.found[name]
                first = comparison.first_difference
                self.assertEqual((first.step, first.value), (step, value), comparison)
                of_f, of_g = exact()
                differs = numpy.argwhere(~numpy.isclose(of_f, of_g, rtol=1e-12, atol=0))
                self.assertEqual(first.element, tuple(differs[0]), "the first in row-major order")
                for true, said in ((of_f, first.f), (of_g, first.g)):
                    self.assertTrue(math.isclose(true[first.element], said, rel_tol=1e-11), (true[first.element], said))
                self.assertIsNone(comparison.ledger)
                self.assertIsNone(comparison.nearer)
                self.assertRegex(str(comparison), rf"^different functions: `{step}` differs first at \[{', '.join(map(str, first.element))}\]: "
                                 rf"{f.__name__} [-\d.e]+, {g.__name__} [-\d.e]+ \(exact\)\n")

    def test_a_step_that_only_f_has_is_shown(self):
        self.assertIn("scores_f alone: {op: mul, of: [scores_matmul, ", str(self.found["no_scale"]))
        self.assertEqual(self.found["no_scale"].data["first_difference"]["only_f"], "scores")

    def test_what_is_rounding_is_booked_and_nothing_of_it_is_mathematics(self):
        for name, (f, g, args, steps, _) in ROUNDING.items():
            with self.subTest(pair=name):
                comparison = self.found[name]
                self.assertIsNone(comparison.first_difference)
                self.assertRegex(comparison.summary, r"^the same function; every difference is rounding: \d+ causes? explains? all of it$")
                ledger, = comparison.ledgers
                of_f, of_g = f(*args), g(*args)
                difference = exact_of(of_g) - exact_of(of_f)
                self.assertEqual(ledger.elements, int(numpy.count_nonzero(difference)))
                self.assertGreater(ledger.elements, 0)
                self.assertAlmostEqual(ledger.rms, rms(difference), delta=1e-12 * ledger.rms)
                self.assertEqual(ledger.atol, numpy.abs(difference).max())
                self.assertEqual({entry["step"] for entry in ledger.entries}, steps, comparison)
                self.assertAlmostEqual(sum(entry["share"] for entry in ledger.entries), 1, delta=1e-12)
                self.assertAlmostEqual(ledger.explained, 1, delta=1e-12)
                self.assertLessEqual({cause["kind"] for entry in ledger.entries for cause in entry["causes"]}, {"precision", "bits"})

    def test_the_nearer_one_is_nearer_to_float64(self):
        nearer = {}
        for name, (f, g, args, _, exact) in ROUNDING.items():
            with self.subTest(pair=name):
                comparison = self.found[name]
                true = exact()
                errors = {each["backend"]: each["rms"] for each in comparison.ledger.nearness["errors"]}
                own = {each.__name__: rms(exact_of(each(*args)) - true) for each in (f, g)}
                for program, error in own.items():
                    self.assertAlmostEqual(errors[program] / error, 1, delta=1e-6)
                if comparison.nearer:
                    self.assertEqual(comparison.nearer, min(own, key=own.get))
                nearer[name] = comparison.nearer
        self.assertEqual(nearer["upcast_and_split"], "upcast_g")

    def test_two_causes_weigh_as_plain_torch_computes_them(self):
        """The hybrid of the two: g with f's n."""
        ledger = self.found["upcast_and_split"].ledger
        n = X * torch.rsqrt(X.pow(2).mean(-1, keepdim=True) + 0.001)
        hybrid = exact_of(n[:, :16] @ W[:16] + n[:, 16:] @ W[16:])
        of_f, of_g = exact_of(upcast_f(X, W)), exact_of(upcast_g(X, W))
        whole = of_g - of_f
        booked = {"n": of_g - hybrid, "result": hybrid - of_f}
        for entry in ledger.entries:
            own = booked[entry["step"]]
            self.assertAlmostEqual(entry["share"], float((own * whole).sum() / (whole * whole).sum()), delta=1e-12)
            self.assertEqual(entry["elements"], int(numpy.count_nonzero(own)))
            self.assertEqual(entry["max_abs"], float(numpy.abs(own).max()))
        causes = {entry["step"]: entry["causes"][0] for entry in ledger.entries}
        self.assertEqual(causes["n"]["kind"], "precision")
        self.assertEqual(causes["result"]["kind"], "bits")
        self.assertIn("upcast_f computes n by pow, mean, add, rsqrt, mul in bfloat16", causes["n"]["sentence"])

    def test_a_number_that_one_has_alone_counts_as_rounded(self):
        """1/sqrt(48), which the op computes, and a division by the double sqrt(48) are no two functions; their distance is reported."""
        of_numbers = self.found["fused_scale"].data["of_numbers"]
        self.assertGreater(of_numbers, 0)
        self.assertLess(of_numbers, 1e-14)
        self.assertIn("count as rounded to float64", str(self.found["fused_scale"]))
        other = ulpscope.compare(lambda x: x * 0.1, lambda x: x * 0.1000001, (X, ))
        self.assertFalse(other.same_function)


class Inside(unittest.TestCase):
    """f is one op, and g writes it out: what parts is found among the steps inside of the op."""

    def parts(self, f, g, args):
        comparison = ulpscope.compare(f, g, args)
        self.assertFalse(comparison.same_function)
        return comparison

    def test_of_a_norm_the_variance(self):
        def norm(x):
            mean = x.mean(-1, keepdim=True)
            var = x.var(-1, keepdim=True)
            return (x - mean) * torch.rsqrt(var + 1e-5)

        comparison = self.parts(lambda x: layer_norm(x, (WIDTH, )), norm, (X, ))
        self.assertEqual(comparison.first_difference.step, "var", comparison)
        self.assertIn("`var` of norm is no value of f;", comparison.summary)
        x = exact_of(X)
        centred = x - x.mean(-1, keepdims=True)
        for said, count in ((comparison.first_difference.f, WIDTH), (comparison.first_difference.g, WIDTH - 1)):
            true = centred / numpy.sqrt((centred ** 2).sum(-1, keepdims=True) / count + 1e-5)
            self.assertTrue(math.isclose(said, true[comparison.first_difference.element], rel_tol=1e-11))

    def test_of_gelu_the_number(self):
        def written(x):
            inside = 0.7978845834732056 * (x + 0.044715 * x * x * x)  # sqrt(2 / pi) in float32
            return 0.5 * x * (1 + torch.tanh(inside))

        comparison = self.parts(lambda x: gelu(x, approximate="tanh"), written, (X, ))
        self.assertEqual(comparison.first_difference.step, "inside", comparison)
        right = ulpscope.compare(lambda x: gelu(x, approximate="tanh"), lambda x: 0.5 * x * (1 + torch.tanh(
            0.7978845608028654 * (x + 0.044715 * x * x * x))), (X, ))
        self.assertTrue(right.same_function, right)

    def test_of_attention_the_scale(self):
        def attention(q, k, v):
            scores = (q @ k.T) / WIDTH
            p = torch.softmax(scores, -1)
            return p @ v

        comparison = self.parts(attention_f, attention, (X, V, V))
        self.assertEqual(comparison.first_difference.step, "scores", comparison)


class Calls(unittest.TestCase):
    def test_equal_bits_have_no_ledger(self):
        same = ulpscope.compare(lambda x: x + x, lambda x: x * 2, (X, ))
        self.assertTrue(same.same_function)
        self.assertEqual((same.ledgers, same.ledger, same.nearer), ([], None, None))
        self.assertIn("both give the same bits", str(same))

    def test_arguments_are_matched_by_value_whatever_they_are_called(self):
        turned = ulpscope.compare(lambda a, b: a - b, lambda b, a: b - a, (X, V))
        self.assertTrue(turned.same_function, turned)
        other = ulpscope.compare(lambda a, b: a - b, lambda a, b: b - a, (X, V))
        self.assertFalse(other.same_function)
        self.assertEqual(other.first_difference.f, -other.first_difference.g)

    def test_few_wrong_elements_of_many_are_seen(self):
        """One in each of eight rows: beyond the sample of a quarter of the rows, the elements in which the computed results are furthest apart."""
        large = normal(6, 128, 128, dtype=torch.float32)

        def spoiled(x):
            row, column = torch.arange(128).reshape(128, 1), torch.arange(128)
            wrong = torch.logical_and(torch.logical_and(row >= 40, row < 48), column == 11)
            return torch.where(wrong, x * 1.001, x) * 2

        comparison = ulpscope.compare(lambda x: x + x, spoiled, (large, ))
        result, = comparison.data["results"]
        self.assertLess(result["compared"], result["elements"] / 2)
        self.assertEqual((comparison.same_function, result["different"]), (False, 8), comparison)
        self.assertEqual(comparison.first_difference.element, (40, 11))

    def test_a_kernel_that_is_wrong_is_not_called_rounding(self):
        wrong = ulpscope.backend("wrong", {"matmul": lambda a, b: (a.float() @ b.float() * 1.02).to(a.dtype)})
        comparison = ulpscope.compare(lambda x, w: x @ w, lambda x, w: x[:, :16] @ w[:16] + x[:, 16:] @ w[16:], (X, W), backend=wrong)
        self.assertTrue(comparison.same_function)
        self.assertIn("is not explained", comparison.summary)
        self.assertLess(comparison.ledger.explained, 1)

    def test_a_compiler_computes_both(self):
        comparison = ulpscope.compare(upcast_f, upcast_g, (X, W), backend="torch-inductor")
        self.assertTrue(comparison.same_function)
        self.assertIn("every difference is rounding: 2 causes explain all of it", comparison.summary)
        ledger = comparison.ledger
        own = [torch.compile(each, fullgraph=True, dynamic=False)(X, W) for each in (upcast_f, upcast_g)]
        self.assertEqual(ledger.elements, int((own[0] != own[1]).sum()))
        self.assertAlmostEqual(sum(entry["share"] for entry in ledger.entries), 1, delta=1e-12)

    def test_what_cannot_be_compared_is_an_error_that_says_why(self):
        def module(seed):
            torch.manual_seed(seed)
            return torch.nn.Linear(WIDTH, 8, bias=False, dtype=torch.bfloat16)

        for f, g, args, text in (
                (lambda x, w: x @ w, lambda x, w: (x @ w).sum(0), (X, W), r"the results have other shapes: .*bfloat16\[16, 48\].*bfloat16\[48\]"),
                (lambda x: (x + 1, x * 2), lambda x: x + 1, (X, ), r"observes 2 values \(.*\), .* observes 1 value"),
                (module(0), module(1), (X, ), r"the two programs have other inputs: weight is bfloat16\[8, 48\] in f and of other values in g")):
            with self.assertRaisesRegex(ValueError, text):
                ulpscope.compare(f, g, args)
        with self.assertRaisesRegex(ValueError, "unexpected|argument"):
            ulpscope.compare(lambda x: x + 1, lambda x, w: x @ w, (X, ))
        with self.assertRaisesRegex(ValueError, "torch-eagre"):
            ulpscope.compare(lambda x: x + 1, lambda x: 1 + x, (X, ), backend="torch-eagre")


CASE = """about: One of two.
cases:
  - name: {name}
    tensors:
      x: {{dtype: {dtype}, shape: [16, 32], fill: normal}}
    program:
{steps}
    observe: [result]
"""
WHOLE = ["{op: mul, of: [x, x], as: square}", "{op: sum, of: [square], dim: [1], as: result}"]
HALVES = ["{op: mul, of: [x, x], as: square}", "{op: slice, of: [square], dim: 1, start: 0, end: 16, as: left}",
          "{op: slice, of: [square], dim: 1, start: 16, end: 32, as: right}", "{op: sum, of: [left], dim: [1], as: a}",
          "{op: sum, of: [right], dim: [1], as: b}", "{op: add, of: [a, b], as: result}"]


class Command(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = class_folder(cls)

    def case(self, name, steps, dtype="float32"):
        path = self.folder / f"{name}.yaml"
        path.write_text(CASE.format(name=name, dtype=dtype, steps="\n".join(f"      - {each}" for each in steps)), encoding="utf-8")
        return path

    def test_two_files_and_their_exit_codes(self):
        whole, halves = self.case("whole", WHOLE), self.case("halves", HALVES)
        other = self.case("other", [WHOLE[0], WHOLE[1].replace("sum", "mean")])
        same = command("compare", whole, halves)
        self.assertEqual(same.returncode, 0, same.stderr)
        self.assertTrue(same.stdout.startswith("the same function; every difference is rounding: 1 cause explains all of it\n"), same.stdout)
        differs = command("compare", whole, other)
        self.assertEqual(differs.returncode, 1, differs.stderr)
        self.assertTrue(differs.stdout.startswith("different functions: `result` differs first at [0]: whole "), differs.stdout)
        data = json.loads(command("compare", whole, halves, "--json", "-").stdout)
        self.assertEqual(data["schema"], "ulpscope.comparison/1")
        self.assertEqual((data["f"], data["g"], data["same_function"]), ("whole", "halves", True))
        self.assertIn({"f": "square", "g": "square"}, data["matched"])
        self.assertEqual(data["results"][0]["compared"], 16)

    def test_both_of_one_file(self):
        text = self.case("whole", WHOLE).read_text(encoding="utf-8")
        both = self.folder / "both.yaml"
        both.write_text(text + self.case("halves", HALVES).read_text(encoding="utf-8").split("cases:\n")[1], encoding="utf-8")
        done = command("compare", both)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("whole against halves", done.stdout)

    def test_misuse(self):
        whole = self.case("whole", WHOLE)
        for arguments, text in (([whole], "compare takes two cases"), ([whole, "no/such"], "no/such"),
                                ([whole, self.case("narrow", WHOLE, "bfloat16")], "the two programs have other inputs: x is float32"),
                                ([whole, whole, "-b", "torch-eager,emulated"], "one backend")):
            done = command("compare", *arguments)
            self.assertEqual(done.returncode, 4, done.stdout)
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    unittest.main()
