"""The author's names for the values, found in the lines of source that each step comes from.

Steps made by one statement are adjacent. The last of them is the value that the statement assigns, so it takes that
name; those before are called after it and after their op (`h_rsqrt`). A statement of the caller has priority over
one of the callee: `q = rotate(x)` names the last step of rotate() q, and for a `return` the name comes from the
caller.
"""

import ast
import functools
import linecache
import re

from ulpscope.case import every

_RESERVED = re.compile(r"trace|peak_bytes|.*_dtype|y|n|yes|no|on|off|true|false|null|Y|N|inf|nan", re.IGNORECASE)


def unique(word, taken):
    """`word`, or `word_2`, `word_3` ...; it is taken afterwards."""
    if _RESERVED.fullmatch(word) and word not in ("y", "n"):
        word += "_"
    found, count = word, 1
    while found in taken:
        count += 1
        found = f"{word}_{count}"
    taken.add(found)
    return found


def rename(steps, taken, results):
    """Gives every step its name, in place; old name -> new name. `results` are the old names of what is returned."""
    taken, made = set(taken), [step for step in every(steps) if step.name]
    new = {}
    for index, step in enumerate(made):
        new[step.name] = unique(_name(made, index, results), taken)
    replace(steps, new)
    return new


def replace(steps, new):
    for step in steps:
        step.of = tuple(new.get(each, each) if isinstance(each, str) else each for each in step.of)
        step.name, step.out = new.get(step.name, step.name), new.get(step.out, step.out)
        replace(step.steps, new)


def _name(made, index, results):
    step = made[index]
    if step.position is not None and (own := _target(step.where, step)):
        return own
    for depth in range(len(step.where)):
        target = _target(step.where[:depth + 1], step)
        if target and not _continues(made, index, depth + 1):
            return target
    if step.name in results:
        several = list(dict.fromkeys(results))
        return "result" if len(several) == 1 else f"result_{several.index(step.name) + 1}"
    depths = range(len(step.where), 0, -1)
    inner = next((target for depth in depths if (target := _target(step.where[:depth], step))), "")
    if not inner and len(step.where) > 1 and step.where[-1][3] != "forward":
        inner = step.where[-1][3].strip("_<>")
        if not _continues(made, index, len(step.where) - 1) or not _continues(made, index, len(step.where)):
            return inner
    word = step.op.removeprefix("aten::").partition(".")[0].strip("_")
    return f"{inner}_{word}" if inner else word


def _continues(made, index, depth):
    """Whether the next step comes from the same statement, seen from this depth of calls."""
    if index + 1 == len(made):
        return False
    return _lines(made[index + 1], depth) == _lines(made[index], depth)


def _lines(step, depth):
    return [_statement(file, line)[0] if _statement(file, line) else line for file, line, *_ in step.where[:depth]]


def assigned(where):
    """The one name that the statement of these lines assigns; '' for none."""
    return _target(where, None)


def _target(where, step):
    """The one name that the statement assigns, or one of several for the result of that number; '' for none."""
    if not where:
        return ""
    found = _statement(where[-1][0], where[-1][1])
    if not found:
        return ""
    words = found[1]
    if len(words) == 1:
        return words[0]
    position = getattr(step, "position", None)
    return words[position] if position is not None and position < len(words) else ""


@functools.lru_cache(maxsize=4096)
def _statement(file, line):
    """(first line, names that it assigns) of the innermost simple statement at a line; None if there is no source.

    If two statements share a line, it is unknown which of them a step comes from: that line assigns no name.
    """
    at = [each for each in _statements(file) if each[0] <= line <= each[1]]
    if not at:
        return None
    first, last, words = at[0]
    return first, words if len([each for each in at if each[:2] == (first, last)]) == 1 else ()


@functools.lru_cache(maxsize=64)
def _statements(file):
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            found.append((node.lineno, node.end_lineno, tuple(_words(targets[0]))))
    return sorted(found, key=lambda each: each[1] - each[0])


def _words(target):
    if isinstance(target, (ast.Tuple, ast.List)):
        return [_words(each)[0] if _words(each) else "" for each in target.elts]
    if isinstance(target, ast.Name):
        return [] if target.id == "_" else [target.id]
    if isinstance(target, ast.Attribute):
        return [target.attr]
    if isinstance(target, ast.Subscript):
        return _words(target.value)
    return []
