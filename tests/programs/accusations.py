"""A report's findings about a program against the truth about it: one finding per use, per sum, per step."""

from dataclasses import dataclass

NARROW_SUM = ("bfloat16", "float16", "split_k(")
# Operands as they are, or as sums of narrow parts that hold them nearly whole.
WHOLE = ("as_is", "none", "float32", "bf16x", "tf32x")
# Words for a product that went into a sum before any rounding.
CONTRACTED = {"contracted", "fma", "unrounded", "exact"}
# finding -> what it is; those that are gates must not happen.
GATES = {
    "false accusation": "an honest use, sum or step is said to round, or a wrong place is named",
    "truth excluded": "a planted fault that shows is not among what is named",
    "opening unnoticed": "the opened run gave other bits and it is not said",
    "opening denied": "the opened run gave the same bits and it is said that it did not",
    "outcome": "no verdict: the run ended otherwise",
}


@dataclass(frozen=True)
class Finding:
    what: str  # a gate, or: named, unique, named equivalent, loose, unmodelled, not told, silent
    place: str  # "use v3 in v4", "sum v2", "step v1", "run"
    visible: bool
    planted: bool
    detail: str = ""


def said_of(result):
    """step -> the report's findings on it."""
    return {row["value"]: row for row in result.get("steps", [])}


def judge(truth, result, bits_differ):
    """Findings of one result. truth: generate.truth_rows; bits_differ: whether the opened run truly gives other observed bits."""
    if (result.get("outcome") or {}).get("kind") != "completed":
        return [Finding("outcome", "run", True, False, f"{result.get('status')}: {result.get('reason', '')}"[:200])]
    found, opened = [], result.get("opened") or {}
    denied = opened.get("kept") is False
    if denied and not bits_differ:
        found.append(Finding("opening denied", "run", True, truth["opened_differs"], str(opened)[:200]))
    if bits_differ:
        found.append(Finding("named" if denied else "opening unnoticed", "run", True, True, str(opened)[:200]))
    said = said_of(result)
    for row in truth["steps"]:
        if row["view"]:
            continue
        step = said.get(row["value"])
        if step is None:
            found.append(Finding("silent", f"step {row['value']}", True, _planted(row), row["op"]))
            continue
        found += _step(row, step, listed=step.get("reads") or [])
    return found


def _planted(row):
    """Whether a fault that shows was planted in the step."""
    return any(row[f"{key}_visible"] for key in ("acc", "flush", "inner")) or any(
        use["as"] != "stored" and use["visible"] for use in row["reads"])


def _step(row, step, listed):
    kind = (step.get("classification") or {}).get("kind", "")
    found = []
    unmodelled = kind == "unmodelled"
    found.append(Finding("unmodelled" if unmodelled else "modelled", f"step {row['value']}", True, _planted(row),
                         f"{row['op']}: {(step.get('classification') or {}).get('label', '')}"))
    reads = {}
    for use in listed:
        reads.setdefault(use["operand"], set()).update(use.get("as") or [])
    facets = (step.get("classification") or {}).get("facets") or {}
    formats = facets.get("in") or {}
    # Equivalents of a rounded operand: a rounding of the result, or the loss of subnormals.
    instead = set(facets.get("mid") or []) & set(row["mid"])
    instead |= {"flushed"} if row["flush_alike"] and any("flushed" in words for words in reads.values()) else set()
    for use in row["reads"]:
        # A report may name the view that is read, or the value that it shows.
        said = reads.get(use["operand"]) or reads.get(use["origin"])
        if said and row["flush"] == "daz":  # the use as it is stored, by a step that drops subnormals
            said = {"stored" if word == "flushed" else word for word in said}
        words = rounded_on(said, formats.get(use["operand"]) or formats.get(use["origin"]))
        if unmodelled and use["gone"] and any("zero" in text for text in (step.get("classification") or {}).get("says") or []):
            found.append(Finding("named equivalent", f"use {use['operand']} in {row['value']}", use["visible"], True, row["op"]))
            continue
        found.append(_use(row, use, words, unmodelled, instead))
    if not unmodelled:
        found += _facets(row, facets, any(words == {"flushed"} for words in reads.values()))
    return found


def rounded_on(said, formats):
    """The words that a use is read as, with the rounding of the operand that the step's facet `in` gives."""
    if not said or not formats:
        return said
    rounded = {word.partition("_")[0] for word in formats if not word.startswith(WHOLE)}
    return rounded | (said if any(word.startswith(WHOLE) for word in formats) else said - {"stored", "unrounded"})


def _use(row, use, said, unmodelled, instead):
    place, truth = f"use {use['operand']} in {row['value']}", use["as"]
    planted = truth != "stored"

    def finding(what):
        return Finding(what, place, use["visible"], planted, f"{row['op']}: said {sorted(said or [])}, true {truth}, same bits {use['same']}")

    if not said:
        return finding("unmodelled" if unmodelled else "not told")
    same = set(use["same"])
    if "contracted" in same:
        same |= CONTRACTED
    right = said & same
    if not planted:
        if "stored" not in said:
            return finding("false accusation")
        return finding("unique" if said <= same else "loose")
    if not right and (instead or row["stored_alike"]) and "stored" in said:
        return finding("named equivalent")
    if not right:
        # A fault that shows in no bit could not be named; a wrong place is wrong all the same.
        return finding("false accusation" if "stored" not in said else "truth excluded" if use["visible"] else "loose")
    if said <= same:
        return finding("unique" if truth in said or truth == "contracted" else "named equivalent")
    return finding("loose")


def narrow(word):
    return word.startswith(NARROW_SUM)


def _same_sums(acc):
    """Partial sums in one format, added in that format: a sum in it in blocks, each addition rounded once (two float16 or bfloat16
    numbers add exactly enough in float32 that rounding twice is rounding once: 24 bits are at least 2 * 11 + 2)."""
    for word in ("bfloat16", "float16"):
        if acc == f"split_k({word},{word})":
            return {word, f"{word}_via_float32"}
    return set()


def _facets(row, facets, flushed=False):
    """Findings about the step's own arithmetic; `flushed`: the report states of an operand, or of the result, that it loses subnormals."""
    found, place = [], f"step {row['value']}"
    acc = facets.get("acc") or []
    if row["acc"] and acc:
        plain = [word.removesuffix("+ftz").removesuffix("+daz") for word in acc]
        wide = not narrow(row["acc"])
        what = None
        if wide and all(map(narrow, plain)):
            what = "false accusation"
        elif not wide and row["acc_visible"]:
            what = "unique" if set(plain) == {row["acc"]} else "loose"
            if row["acc"] not in plain:  # another word is as true where it gives the very same bits
                alike = set(plain) & (set(row["acc_alike"]) | _same_sums(row["acc"])) or set(facets.get("prod") or []) & set(row["prod_alike"])
                what = "named equivalent" if alike else "truth excluded"
        elif wide:
            what = "unique" if not any(map(narrow, plain)) else "loose"
        if what:
            found.append(Finding(what, f"sum {row['value']}", wide or row["acc_visible"], not wide,
                                 f"{row['op']}: said {acc}, true {row['acc']}"))
    for facet, plain in (("mid", {"none", "float32"}), ("prod", {"exact", "float32"})):
        words = set(facets.get(facet) or [])
        if words and not words & plain and not _explained(row):
            found.append(Finding("false accusation", place, True, False, f"{row['op']}: {facet} said {sorted(words)}"))
    words = {name: set(options) for name, options in (facets.get("in") or {}).items()}
    for name, options in words.items():
        if name.startswith("scalar"):
            found += _scalar(row, name, options)
            continue
        use = next((use for use in row["reads"] if name in (use["operand"], use["origin"])), None)
        if use is None and options and not any(word.startswith(WHOLE) for word in options):
            found.append(Finding("false accusation", place, True, False, f"{row['op']}: operand {name} said {sorted(options)}"))
    flushing = [word for options in (acc, facets.get("out") or [], *words.values()) for word in sorted(options)[:1]
                if options and all("+ftz" in one or "+daz" in one for one in options)]
    if row["flush_visible"]:
        found.append(Finding("unique" if flushing or flushed else "loose", f"flush {row['value']}", True, True, row["op"]))
    if flushing and row["flush"] == "none":
        found.append(Finding("false accusation", place, True, False, f"{row['op']}: flushing said {flushing}"))
    return found


def _scalar(row, name, options):
    """A Python scalar: rounded to float32, or, where that was planted, to the dtype of the step."""
    planted = row["inner"].get("scalar")
    place, detail = f"scalar {row['value']}", f"{row['op']}: {name} said {sorted(options)}, true {planted or 'float32'}"
    if planted and row["inner_visible"]:
        what = "truth excluded" if f"{planted}_rne" not in options else "unique" if len(options) == 1 else "loose"
        return [Finding(what, place, True, True, detail)]
    wide = any(word.startswith(("as_is", "float32", "float64")) for word in options)
    return [] if planted or wide else [Finding("false accusation", place, True, False, detail)]


def _explained(row):
    """A rounding between the step's own elementary steps may be reported as mid where one was planted."""
    return bool(row["inner"]) or any(use["as"] != "stored" for use in row["reads"]) or narrow(row["acc"] or "")


def today(truth, result):
    """Accusations of an honest program in what is said of its observed values as wholes."""
    found = []
    stored = {row["value"]: row["dtype"] for row in truth["steps"]}
    kinds = set(stored.values()) | {"none", "float32"}
    for name, value in result.get("values", {}).items():
        facets = value.get("facets") or {}
        acc = facets.get("acc") or []
        if acc and all(map(narrow, acc)):
            found.append(f"{name}: acc {acc}")
        if facets.get("mid") and not set(facets["mid"]) & kinds:
            found.append(f"{name}: mid {facets['mid']}")
        found += [f"{name}: operand {tensor} {words}" for tensor, words in (facets.get("in") or {}).items()
                  if words and not any(word.startswith(WHOLE) for word in words)]
        found += [f"{name}: cut {cut} {words}" for cut, words in (value.get("cuts") or {}).items()
                  if cut in stored and stored[cut] != "float32" and words and stored[cut] not in words]
    return found
