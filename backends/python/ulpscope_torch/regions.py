"""Cuts a program into the parts that torch.compile takes and those that must run outside it.

`w.data = ...`, `backward()` and what replaces a parameter raise inside a compiled region. So: an eager
prologue (the preparation of parameters), one compiled region, then set_data and backward outside it, eagerly.
A program with several forward passes has a region for each. An `empty` whose first use is an out= is made right
before that step, inside its region: the program says so, and all of it is written. Any other one is moved to the
front, made and poisoned before the regions. Every value's part is reported; nothing here needs torch.
"""

from dataclasses import dataclass, field

from ulpscope_adapter import words
from ulpscope_adapter.request import SCOPES, Step

OUTSIDE = frozenset({"set_data", "backward", "module_to", "detach_", "fsdp_linear"})
# Ops that may stand before a set_data in the prologue: they prepare parameters and compute nothing. backends/torch/aoti.cc has the same
# rule: it runs the prologue before there is anything to compile.
_PREPARATION = frozenset({"clone", "cast", "zeros", "ones", "full", *words.ops("view")})


@dataclass(frozen=True)
class Placed:
    """A step with the scopes around it, outermost first, each as (its number in the program, the scope)."""

    step: Step
    scopes: tuple = ()


@dataclass
class Part:
    """Consecutive steps of one kind: "eager" or "compiled"."""

    kind: str
    placed: list = field(default_factory=list)


def flatten(steps, kept=()):
    """(every step but scopes, buffers that are made in front, and, unless it is among `kept`, `sync`, which cuts no region; the buffers that
    are made in front)"""
    placed, empties = [], []
    count = 0

    def walk(steps, scopes):
        nonlocal count
        for step in steps:
            if step.op in SCOPES:
                count += 1
                walk(step.steps, scopes + ((count, step),))
            elif step.op == "empty":
                empties.append(step)
            elif step.op != "sync" or step.op in kept:
                placed.append(Placed(step, scopes))

    walk(steps, ())
    inside = {step.target: step for step in empties if _is_written_first(step.target, placed)}
    result = []
    for item in placed:
        made = inside.pop(item.step.out, None)
        if made is not None:
            result.append(Placed(made, item.scopes))
        result.append(item)
    return result, [step for step in empties if step.target not in {item.step.target for item in result if item.step.op == "empty"}]


def _is_written_first(name, placed):
    """Whether the first step that uses the buffer writes all of it: by out=, and reads none of it."""
    for item in placed:
        if name in names_used(item.step):
            return item.step.out == name and name not in item.step.of and item.step.op not in OUTSIDE
    return False


def cut(placed):
    """The parts, in order."""
    prologue = _prologue_length(placed)
    parts = [Part("eager", list(placed[:prologue]))] if prologue else []
    for item in placed[prologue:]:
        kind = "eager" if item.step.op in OUTSIDE else "compiled"
        if not parts or parts[-1].kind != kind:
            parts.append(Part(kind))
        parts[-1].placed.append(item)
    return [piece for index, part in enumerate(parts) for piece in _split(part, parts[index + 1:])]


def _split(part, later):
    """One region for each independent piece, if later backward() calls start in more than one of them.

    A region is one node of the autograd graph: backward() through one of its results frees what the others
    need, though nothing in the program connects them.
    """
    losses = [item.step.of[0] for p in later for item in p.placed if item.step.op == "backward"]
    if part.kind != "compiled" or len(losses) < 2:
        return [part]
    made = {item.step.target for item in part.placed}
    made |= {item.step.out for item in part.placed if item.step.out}
    pieces = []  # (names made inside, positions of steps)
    for position, item in enumerate(part.placed):
        names = {name for name in [*names_used(item.step), item.step.target] if name in made}
        joined = [piece for piece in pieces if piece[0] & names]
        merged = (names.union(*(p[0] for p in joined)), sorted([position,
                                                                *(i for p in joined for i in p[1])]))
        pieces = [p for p in pieces if p not in joined] + [merged]
    if sum(bool(names & set(losses)) for names, _ in pieces) < 2:
        return [part]
    pieces.sort(key=lambda piece: piece[1][0])
    return [Part("compiled", [part.placed[i] for i in positions]) for _, positions in pieces]


def _prologue_length(placed):
    length = 0
    for index, item in enumerate(placed):
        if item.step.op in ("backward", "fsdp_linear") or item.step.op not in OUTSIDE | _PREPARATION:
            break
        if item.step.op in OUTSIDE:
            length = index + 1
    return length


def names_used(step):
    """The values that a step reads or writes into: operands, out=, and names inside its attributes."""
    names = [operand for operand in step.of if isinstance(operand, str)]
    names += [step.out] if step.out else []
    grad, to = step.attrs.get("grad"), step.attrs.get("to")
    names += [grad] if step.op == "backward" and isinstance(grad, str) else []
    names += [to["value"]] if isinstance(to, dict) and "value" in to else []
    return names


def interface(part, later_parts, observed):
    """(inputs, outputs) of a part: names it takes from before, and its own that are wanted afterwards."""
    defined, inputs = [], []
    for item in part.placed:
        for name in names_used(item.step):
            if name not in defined and name not in inputs:
                inputs.append(name)
        if item.step.target and item.step.target not in defined:
            defined.append(item.step.target)
    wanted = {name.partition(".")[0] for name in observed}
    for later in later_parts:
        wanted |= {name.partition(".")[0] for item in later.placed for name in names_used(item.step)}
    return inputs, [name for name in defined if name in wanted]


def untraced(parts):
    """The steps that ran outside the compiled regions, and where: one text for each eager part."""
    regions = sum(part.kind == "compiled" for part in parts)
    texts, seen = [], 0
    for part in parts:
        seen += part.kind == "compiled"
        if part.kind != "eager":
            continue
        words = ", ".join(" ".join([p.step.op, *names_used(p.step)[:1]]) for p in part.placed)
        where = "before the compiled region" if seen == 0 else "after the compiled region"
        if 0 < seen < regions:
            where = f"between compiled regions {seen} and {seen + 1}"
        texts.append(f"{where if regions else 'beside the wrapped layer'}: {words}")
    return texts


def notes(parts, empties):
    """How the program was cut, in words."""
    lines = []
    if empties:
        lines.append("made before the region and passed in: " + ", ".join(step.target for step in empties))
    regions = sum(part.kind == "compiled" for part in parts)
    made = [item.step.target for part in parts if part.kind == "compiled" for item in part.placed if item.step.op == "empty"]
    if made:
        lines.append("made inside the compiled region, and not poisoned there: " + ", ".join(made))
    for part, text in zip([part for part in parts if part.kind == "eager"], untraced(parts)):
        lines.append(f"cut: ran eagerly {text}")
        lines += [
            f"{p.step.target}: the layer itself is compiled, FSDP's casts around it are eager"
            for p in part.placed if p.step.op == "fsdp_linear"
        ]
    if regions > 1:
        lines.append(f"{regions} compiled regions")
    return lines
