"""What a classification says, held against the truth: is the true model left out, is a label false?

A word that differs from the truth is false only where it can be seen: where the kernel, recomputed with that word in place of
the true one, gives other bits, in its own order and in every honest one.
"""

import re
from dataclasses import replace

import numpy as np
from classes import same_bits
from kernel import ACC_WORDS, IN_WORDS, MID_WORDS, PROD_WORDS, words_of
from products import HONEST, product

FACETS = ("in", "prod", "acc", "mid", "out")
_FORMAT = {facet: {word: name for name, word in reversed(words.items())}
           for facet, words in (("in", IN_WORDS), ("prod", PROD_WORDS), ("acc", ACC_WORDS), ("mid", MID_WORDS))}


def parse(model):
    """facet -> word of a model; the operands' as a map."""
    words = dict(part.partition("=")[::2] for part in re.split(r";(?=in=|prod=|acc=|mid=|out=)", model))
    inside = words.get("in", "as_is")
    words["in"] = dict(each.split(":") for each in inside.split(",")) if ":" in inside else {"x": inside, "w": inside}
    words["in"] = {"x": "as_is", "w": "as_is", **words["in"]}
    return words


def known(truth):
    return all(word != "other" for word in (*truth["in"].values(), *(truth[facet] for facet in FACETS[1:])))


def recipe_of(words, recipe, output):
    """`recipe` with the words of a model in place of its own; None where a word has no rounding here."""
    made = {}
    for side, operand in (("a", "x"), ("b", "w")):
        made[side] = _FORMAT["in"].get(words["in"][operand])
    for facet in ("prod", "acc", "mid"):
        made[facet] = _FORMAT[facet].get(words[facet])
        if facet == "mid" and re.fullmatch(r"p\d+", words[facet]):
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


def gives(recipe, operands, y, output):
    """Whether some order of the recipe gives the bits of y."""
    return any(same_bits(product(*operands, each, output), y) for each in orders_of(recipe))


def excluded(truth, proved):
    """Whether no model of the proved set is the true one."""
    return not any(all(parse(model)[facet] == truth[facet] for facet in FACETS) for model in proved)


def agreed(models):
    """facet -> the word that all models have, operands one by one."""
    parsed = [parse(model) for model in models]
    words = {}
    for facet in FACETS[1:]:
        if parsed and len({each[facet] for each in parsed}) == 1:
            words[facet] = parsed[0][facet]
    for operand in ("x", "w"):
        if parsed and len({each["in"][operand] for each in parsed}) == 1:
            words[f"in {operand}"] = parsed[0]["in"][operand]
    return words


def _contradictions(truth, models):
    """(facet, word that all models have, the true word), where the two differ and the truth is known."""
    for facet, word in agreed(models).items():
        true = truth.get("in", {}).get(facet[3:]) if facet.startswith("in ") else truth.get(facet)
        if true is not None and word != true:
            yield facet, word, true


def _gives_model(model, recipe, operands, y, output):
    """Whether a model that contradicts the truth gives these bits all the same: then nothing shows the difference."""
    if recipe is None:
        return False
    made = recipe_of(parse(model), recipe, output)
    return made is not None and gives(made, operands, y, output)


def false_words(kernel, truth, models, operands, y, output, visible):
    """[(facet, word said, true word)] that are false where it shows."""
    contradicted = list(_contradictions(truth, models))
    if not contradicted or any(_gives_model(model, kernel.recipe, operands, y, output) for model in models):
        return []
    false = []
    for facet, word, true in contradicted:
        if kernel.recipe is None:
            if visible:
                false.append((facet, word, true))
            continue
        other = _changed(kernel.recipe, facet, word, output)
        if other is None:
            continue
        with np.errstate(all="ignore"):
            if not gives(other, operands, y, output):
                false.append((facet, word, true))
    return false


def _changed(recipe, facet, word, output):
    """The kernel with one word changed; None where it cannot be recomputed."""
    if facet == "out":
        base, _, flush = word.partition("+")
        how = "ftz" if flush else base.removeprefix(f"{output}_")
        return replace(recipe, out=how) if how in ("rne", "rz", "rna", "ftz") else None
    if facet.startswith("in "):
        name = _FORMAT["in"].get(word)
        return None if name is None else replace(recipe, **{"a" if facet == "in x" else "b": name})
    name = word if facet == "mid" and re.fullmatch(r"p\d+", word) else _FORMAT[facet].get(word)
    if name is None:
        return None
    return replace(recipe, acc=name, combine="") if facet == "acc" else replace(recipe, **{facet: name})
