"""A case in parts: split at the ops that have no reference, each part on the operands that torch-eager computed for it.

One op of PyTorch's dispatcher in a program leaves everything after it without an exact value; the harness judges
later steps from its result, on each backend from that backend's own. In parts, all backends have the same operands;
the op itself is a part of its own, compared between backends, unless it only rearranges memory.
"""

import dataclasses

from ulpscope import adapters
from ulpscope.case import Case, Input, every, fit
from ulpscope.vocabulary import is_view, words


def split(case):
    """([Case] of the parts of `case`, in order, every value of a part observed; value -> what torch-eager gave in the whole).

    Raises AdapterFailed where torch-eager cannot run it.
    """
    made = [step.name for step in case.all_steps() if step.name]
    with adapters.Link("torch-eager") as link:
        values = link.run(case, list(dict.fromkeys(made)))
    values.update({each.name: each.tensor for each in case.inputs})
    strided = {each.name: each for each in case.inputs}
    parts = []
    for steps in _groups(case.steps):
        steps = _with_views(steps, case.steps)
        inside = [step.name for step in every(steps) if step.name]
        used = dict.fromkeys(each for step in every(steps) for each in (*step.of, step.out) if isinstance(each, str) and each)
        inputs = [strided[name] if name in strided else Input(name, values[name]) for name in used if name not in inside]
        part = Case(name=f"{case.name}_{len(parts) + 1}", about=case.about, inputs=[dataclasses.replace(each) for each in inputs],
                    steps=steps, observe=inside[-256:], source=case.source)
        fit(part.inputs, "auto")
        parts.append(part)
    return parts, values


def _groups(steps):
    """Neighbours that are words together; an op of the dispatcher, or a scope that holds one, by itself."""
    groups, joined = [], False
    for step in steps:
        word = not any(each.op.startswith("aten::") for each in every([step]))
        if word and joined:
            groups[-1].append(step)
        else:
            groups.append([step])
        joined = word
    return [group for group in groups if any(_computes(step) for step in every(group))]


def _computes(step):
    """True if the op does more than rearrange memory; for the dispatcher's ops their schema decides."""
    return step.op not in words.ops("view") and not (step.op.startswith("aten::") and step.node is not None and is_view(step.node))


def _with_views(steps, program):
    """The steps, and before them the views that their operands are: how an operand lies in memory can decide which kernel runs."""
    views = {step.name: step for step in every(program) if step.op in words.ops("view")}
    inside = {step.name for step in every(steps)}
    added, wanted = [], [each for step in every(steps) for each in step.of]
    while wanted:
        name = wanted.pop()
        if name in views and name not in inside:
            inside.add(name)
            added.append(views[name])
            wanted += views[name].of
    order = {id(step): i for i, step in enumerate(every(program))}
    return [*sorted(added, key=lambda step: order[id(step)]), *steps]
