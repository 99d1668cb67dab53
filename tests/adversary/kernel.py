"""Kernel: one row of the tables, and the truth about it in the words of the facets."""

from dataclasses import dataclass, field

from ops import OPERANDS
from products import Recipe, product

# Rounding names -> the facet's word; what is not here has none ("other").
IN_WORDS = {"as_is": "as_is", "bfloat16": "bfloat16_rne", "bfloat16_rz": "bfloat16_rz", "tf32": "tf32_rne",
            "tf32_rna": "tf32_rna",
            "tf32_rz": "tf32_rz", "float16": "float16_rne", "daz": "as_is+daz", "p8": "bfloat16_rne", "p8_rz": "bfloat16_rz",
            "p11": "tf32_rne", "p11_rz": "tf32_rz", "p11_rna": "tf32_rna"}
ACC_WORDS = {name: name for name in ("exact", "float64", "compensated", "float32", "float32_rz", "float16",
                                     "float16_via_float32",
                                     "bfloat16", "bfloat16_via_float32")}
ACC_WORDS["float32_ftz"] = "float32+ftz"
PROD_WORDS = {**{name: name for name in ("exact", "float32", "float16", "bfloat16")}, "tf32": "p11"}
MID_WORDS = {name: name for name in ("none", "bfloat16", "float16", "tf32", "float32")}
BITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
# Formats of operands that hold every value of a dtype: rounding to them is no rounding.
HOLDS = {"bfloat16": ("bfloat16", "bfloat16_rz", "tf32", "tf32_rz", "tf32_rna"),
         "float16": ("float16", "tf32", "tf32_rz", "tf32_rna"),
         "float32": (), "float64": ()}


@dataclass(frozen=True)
class Kernel:
    """`run(call)` gives the stored result. kind: honest, narrow or wrong. accepted: its words lie inside the contract, although
    they are not float32 to nearest. recipe: of what is a product through and through."""
    name: str
    op: str
    kind: str
    why: str
    run: object
    recipe: Recipe = None
    accepted: bool = False
    formula: bool = False  # another formula in float32 steps: within what a function may be off (harness/docs/contracts.md), conforming is no false word
    words: dict = field(default_factory=dict)  # truth that no recipe tells
    others: dict = field(default_factory=dict)  # word for all operands -> run of the same kernel with that word: for those without a recipe
    inputs: tuple = ("float32", "bfloat16", "float16")
    shapes: tuple = ()  # of outputs, where it needs others

    def truth(self, inputs, output):
        """facet -> word, "other" where the vocabulary has none, for operands of dtype `inputs` and a result of `output`."""
        if self.recipe is None:
            words = dict(self.words)
            if "in" in words:  # what a dtype holds is no rounding
                own = {IN_WORDS[name] for name in HOLDS[inputs]}
                words["in"] = {name: "as_is" if word in own else word for name, word in words["in"].items()}
            return words
        words = words_of(self.recipe, inputs, output)
        words["in"] = {name: words["in"][place] for name, place in zip(OPERANDS[self.op], ("x", "w")) if name}
        return {**words, **self.words}


def words_of(recipe, inputs, output):
    """The facets' words for a recipe, in their canonical form: a rounding that changes nothing is no rounding."""
    held = HOLDS[inputs]
    a, b = ("as_is" if name in held or (name[0] == "p" and int(name[1:].partition("_")[0]) >= BITS[inputs]) else name
            for name in (recipe.a, recipe.b))
    words = {"in": {"x": IN_WORDS.get(a, "other"), "w": IN_WORDS.get(b, "other")}}
    prod = recipe.prod
    if prod == "float32" and inputs in ("bfloat16", "float16"):
        prod = "exact"
    words["prod"] = PROD_WORDS.get(prod, "other")
    acc, combine = recipe.acc, recipe.combine or recipe.acc
    words["acc"] = ACC_WORDS.get(acc, "other")
    if combine != acc:
        stored = {"bfloat16": "bfloat16", "float16": "float16", "float64": "float32"}.get(combine)  # parts as they are kept
        words["acc"] = f"split_k({stored},{combine})" if stored and acc == "float32" else "other"
    mid = recipe.mid
    if mid == output or (mid == "float32" and output != "float64"):
        mid = "none" if mid == output or recipe.acc == "float32" else mid
    words["mid"] = MID_WORDS.get(mid, mid if mid[0] == "p" and mid[1:].isdigit() else "other")
    words["out"] = f"{output}_{recipe.out}" if recipe.out in ("rne", "rz", "rna") else f"{output}_rne+ftz"
    if recipe.out == "sr":
        words["out"] = "other"
    return words


@dataclass(frozen=True)
class Call:
    """One step as the adapter received it."""
    operands: tuple  # NumPy arrays as they came
    dtype: str  # of the result
    attrs: dict
    count: int = 0  # calls before this one, for kernels that differ from call to call


def from_recipe(recipe):
    return lambda call: product(*call.operands, recipe, call.dtype)


def row(name, kind, why, accepted=False, op="matmul", inputs=("float32", "bfloat16", "float16"), **recipe):
    """A product that a recipe describes completely."""
    made = Recipe(**recipe)
    return Kernel(name=name, op=op, kind=kind, why=why, run=from_recipe(made), recipe=made, accepted=accepted, inputs=inputs)
