"""A classification compared with the truth: is the true model left out, is a label false?

A word that differs from the truth is false only where it can be seen: where the kernel, recomputed with that word in place of
the true one, gives other bits, in its own order and in every honest one.
"""

import re
from dataclasses import replace

import numpy as np
from classes import VISIBLE, compare, same_bits
from kernel import ACC_WORDS, IN_WORDS, MID_WORDS, PROD_WORDS, words_of
from ops import OPERANDS, PRODUCTS, apply
from products import HONEST, Recipe, accumulate, finish
from rounding import rounding

FACETS = ("in", "prod", "acc", "mid", "out")
_FORMAT = {facet: {word: name for name, word in reversed(words.items())}
           for facet, words in (("in", IN_WORDS), ("prod", PROD_WORDS), ("acc", ACC_WORDS), ("mid", MID_WORDS))}


def parse(model, op="matmul"):
    """facet -> word of a model; the operands' as a map."""
    words = dict(part.partition("=")[::2] for part in re.split(r";(?=in=|prod=|acc=|mid=|out=)", model))
    inside = words.get("in", "as_is")
    names = OPERANDS.get(op, ("x", ""))
    words["in"] = dict(each.split(":") for each in inside.split(",")) if ":" in inside else dict.fromkeys(names, inside)
    words["in"] = {**dict.fromkeys(names, "as_is"), **words["in"]}
    return words


def known(truth):
    """Whether there is a word for every facet."""
    return all(word != "other" for word in (*truth["in"].values(), *(truth[facet] for facet in FACETS[1:])))


def certain(truth, op):
    """Whether the words have one meaning alone: not those of partial sums (which part is rounded when?), nor a narrow format where a
    bias is added or a mean divided after the sum (in which format?)."""
    plain = truth["acc"] in ("exact", "float64", "compensated", "float32") and truth["mid"] == "none"
    return not truth["acc"].startswith("split_k") and (op not in ("linear", "mean") or plain)


def recipe_of(words, recipe, output, op):
    """`recipe` with the words of a model in place of its own; None where a word has no rounding here."""
    made = {}
    for side, operand in zip("ab", OPERANDS[op]):
        word = words["in"].get(operand, "as_is")
        bits = re.fullmatch(r"(p\d+)_(rne|rz)", word)
        made[side] = (bits[1] if bits[2] == "rne" else word) if bits else _FORMAT["in"].get(word)
    for facet in ("prod", "acc", "mid"):
        made[facet] = _FORMAT[facet].get(words[facet])
        if re.fullmatch(r"p\d+", words[facet]):
            made[facet] = words[facet]
    out, _, flush = words["out"].partition("+")
    made["out"] = "ftz" if flush else out.removeprefix(f"{output}_")
    if None in made.values() or made["out"] not in ("rne", "rz", "rna", "ftz"):
        return None
    if recipe.combine and words["acc"] == words_of(recipe, "float32", output)["acc"]:
        made.pop("acc")  # the kernel's own partial sums
        return replace(recipe, **made)
    return replace(recipe, combine="", **made)


def orders_of(recipe):
    """The recipe in its own order and in every honest one."""
    seen = [recipe]
    for honest in HONEST:
        other = replace(recipe, order=honest.order)
        if other not in seen:
            seen.append(other)
    return seen


def gives(op, recipe, call, y):
    """Whether some order of the recipe gives the bits of y."""
    return any(same_bits(apply(op, each, call), y) for each in orders_of(recipe))


def _agree(words, truth):
    """Whether a model is the true one; its words for operands that are none of the truth's do not count."""
    same = all(words["in"].get(operand, "as_is") == word for operand, word in truth["in"].items())
    return same and all(words[facet] == truth[facet] for facet in FACETS[1:])


def bits_of(recipe, facet, op):
    """The significant bits that a kernel keeps at a facet (`acc`, `mid`, `in x`), where that is all there is to its rounding; else None."""
    if recipe is None:
        return None
    name = getattr(recipe, facet, None)
    if facet.startswith("in "):
        side = dict(zip(OPERANDS[op], "ab")).get(facet.removeprefix("in "))
        name = getattr(recipe, side) if side else None
    found = re.match(r"p(\d+)(_|$)", str(name))
    return int(found[1]) if found else None


def left_open(recipe, facet, floors, op):
    """Whether the classification reports that it cannot see a rounding as coarse as the kernel's. A detection limit is that of rounding to
    nearest: a truncation loses one bit more. If sums of so few bits throughout are not seen, partial sums that are joined in as many are
    not."""
    bits, floor = bits_of(recipe, facet, op), floors.get(facet.replace(" ", "."))
    if facet == "acc" and recipe is not None and recipe.acc == "float32" and (joined := re.match(r"p(\d+)(_|$)", recipe.combine)):
        bits = int(joined[1])
    return bits is not None and floor is not None and bits >= floor - 1


def excluded(truth, proved, op, recipe=None, floors=None):
    """Whether no model of the proved set is the true one, nor one with words that are reported open in place of the true ones."""
    open_ = {facet for facet in ("acc", "mid") if left_open(recipe, facet, floors or {}, op)}
    for model in proved:
        words = parse(model, op)
        if _agree({**words, **{facet: truth[facet] for facet in open_}}, truth):
            return False
    return True


def agreed(models, op):
    """facet -> the word that all models have, operands one by one."""
    parsed = [parse(model, op) for model in models]
    words = {}
    for facet in FACETS[1:]:
        if parsed and len({each[facet] for each in parsed}) == 1:
            words[facet] = parsed[0][facet]
    for operand in OPERANDS.get(op, ("x", )):
        if parsed and len({each["in"].get(operand) for each in parsed}) == 1:
            words[f"in {operand}"] = parsed[0]["in"].get(operand)
    return words


def _contradictions(truth, models, op, recipe, floors):
    """(facet, word that all models have, the true word), where the two differ, and the truth is known and not reported open."""
    for facet, word in agreed(models, op).items():
        if left_open(recipe, facet, floors, op):
            continue
        true = truth.get("in", {}).get(facet[3:]) if facet.startswith("in ") else truth.get(facet)
        # The number of bits is right; the word does not state where ties go, or whether chance decides.
        if facet == "mid" and recipe is not None and recipe.mid in (f"{word}_rna", f"{word}_sr"):
            continue
        # A sum in a narrow format rounds each term that it adds first.
        loaded = op in ("sum", "mean") and facet.startswith("in ") and word == "as_is" and all(
            parse(model, op)["acc"].removesuffix("_via_float32") + "_rne" == true for model in models)
        if true is not None and word != true and not loaded:
            yield facet, word, true


def gives_model(model, kernel, call, y):
    """Whether a model that contradicts the truth gives these bits all the same: then nothing shows the difference."""
    if kernel.recipe is None:
        words = parse(model, kernel.op)
        inside = set(words.pop("in").values())
        block = re.fullmatch(r"blockfma\((\d+),\d+,rne_float16\)", words["acc"])
        if block and kernel.op == "matmul" and (inside, words["prod"], words["mid"]) == ({"as_is"}, "exact", "none"):
            return _gives_blocks(int(block[1]), call, y)
        # One term is added to nothing, and the name of such a sum is "exact".
        single = kernel.op in PRODUCTS and PRODUCTS[kernel.op](call)[0].shape[-1] == 1
        sums = ("float32", "exact") if single else ("float32", )
        plain = words in [{"prod": "exact", "acc": acc, "mid": "none", "out": f"{call.dtype}_rne"} for acc in sums]
        other = kernel.others.get(inside.pop()) if plain and len(inside) == 1 else None
        if other is not None and same_bits(other(call), y):
            return True
        made = recipe_of(parse(model, kernel.op), Recipe(), call.dtype, kernel.op) if kernel.op in PRODUCTS else None
        return made is not None and gives(kernel.op, made, call, y)
    made = recipe_of(parse(model, kernel.op), kernel.recipe, call.dtype, kernel.op)
    return made is not None and gives(kernel.op, made, call, y)


def errs_like(model, kernel, call, y):
    """Whether results of a kernel without a recipe are no further from what a model sums than twice what honest sums of that are."""
    if kernel.recipe is not None or kernel.op not in PRODUCTS:
        return False
    made = recipe_of(parse(model, kernel.op), Recipe(), call.dtype, kernel.op)
    if made is None or made.acc not in ("float32", "float64", "exact") or kernel.op in ("mean", "linear"):
        return False
    a, b, _, shape = PRODUCTS[kernel.op](call)
    head = accumulate(rounding(made.a)(a), rounding(made.b)(b), replace(made, acc="exact", mid="none"))
    results = [apply(kernel.op, replace(made, order=honest.order), call) for honest in HONEST]
    return compare(y, results, head.reshape(shape), 0.0)["class"] != VISIBLE


def _gives_blocks(length, call, y):
    """Whether sums that are rounded to float16 after every `length` products give these bits, but for a few that lie half-way."""
    a, b, _, shape = PRODUCTS["matmul"](call)
    narrow, total = rounding("float16"), np.zeros((a.shape[0], b.shape[1]))
    for at in range(0, a.shape[1], length):
        total = narrow(total + accumulate(a[:, at:at + length], b[at:at + length], Recipe(acc="exact")))
    return np.mean(finish(total, Recipe(), call.dtype).reshape(shape) == y) > 0.98


def false_words(kernel, truth, models, call, y, visible, floors):
    """[(facet, reported word, true word)] that are false where it shows."""
    contradicted = list(_contradictions(truth, models, kernel.op, kernel.recipe, floors))
    if not contradicted or any(gives_model(model, kernel, call, y) for model in models):
        return []
    if kernel.recipe is None:
        return contradicted if visible else []
    false = []
    for facet, word, true in contradicted:
        other = _changed(kernel.recipe, facet, word, call.dtype, kernel.op)
        if other is not None and not gives(kernel.op, other, call, y):
            false.append((facet, word, true))
    return false


def _changed(recipe, facet, word, output, op):
    """The kernel with one word changed; None where it cannot be recomputed."""
    if facet == "out":
        base, _, flush = word.partition("+")
        how = "ftz" if flush else base.removeprefix(f"{output}_")
        return replace(recipe, out=how) if how in ("rne", "rz", "rna", "ftz") else None
    if facet.startswith("in "):
        name = _FORMAT["in"].get(word)
        return None if name is None else replace(recipe, **{"ab"[OPERANDS[op].index(facet[3:])]: name})
    name = word if facet == "mid" and re.fullmatch(r"p\d+", word) else _FORMAT[facet].get(word)
    if name is None:
        return None
    return replace(recipe, acc=name, combine="") if facet == "acc" else replace(recipe, **{facet: name})
