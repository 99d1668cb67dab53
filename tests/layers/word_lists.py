"""Word lists that stand twice: an enumeration, outside a vocabulary's home, of words that the home owns.

A list is what stands between one pair of brackets: its own string literals, or the first literal of each row of a table or
of each call and comparison in a chain; a single literal of many words counts too. It is a copy when it has LEAST different
words and SHARE of its literals belong to one vocabulary. Fewer are a choice, not a copy.
"""
import ast
import bisect
import re

LEAST = 6
SHARE = 0.8

WORD = re.compile(r"[a-z][a-z0-9_.]*$")
CPP_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^(\s]*)\((?P<raw>.*?)\)(?P=tag)"|"(?P<text>(?:[^"\\\n]|\\.)*)"'
    r"|'(?:[^'\\\n]|\\.)+'|\#\s*include[^\n]*|[{}()\[\]]",
    re.DOTALL,
)


class Group:
    """Between two brackets: the literals that stand there directly, and the groups inside."""

    def __init__(self, line):
        self.line, self.literals, self.groups = line, [], []

    def first(self):
        """The first literal of a row: its own, or that of the first group that has one."""
        if self.literals:
            return self.literals[0]
        return next((word for word in (group.first() for group in self.groups) if word is not None), None)


def cpp_groups(text):
    """Every group of a C++ file, the file itself first."""
    top = Group(1)
    stack, groups = [top], [top]
    line_ends = [at for at, character in enumerate(text) if character == "\n"]
    for match in CPP_TOKEN.finditer(text):
        token = match.group(0)
        if token in "{([":
            group = Group(bisect.bisect(line_ends, match.start()) + 1)
            stack[-1].groups.append(group)
            groups.append(group)
            stack.append(group)
        elif token in "})]":
            if len(stack) > 1:
                stack.pop()
        elif match.group("text") is not None:
            stack[-1].literals.append(match.group("text"))
        elif match.group("raw") is not None:
            stack[-1].literals.append(match.group("raw"))
    return groups


def python_groups(text):
    """Every list, tuple, set, dict (its keys) and chain of comparisons of a Python file."""
    groups = []
    tree = ast.parse(text)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and node.body and isinstance(node.body[0], ast.Expr)
    }

    def literals(nodes):
        return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]

    for node in ast.walk(tree):
        group = Group(getattr(node, "lineno", 1))
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            group.literals = literals(node.elts)
            rows = [literals(row.elts[:1]) for row in node.elts if isinstance(row, (ast.List, ast.Tuple)) and row.elts]
            group.literals += [word for row in rows for word in row]
        elif isinstance(node, ast.Dict):
            group.literals = literals(key for key in node.keys if key is not None)
        elif isinstance(node, ast.FunctionDef):
            compared = [part for part in ast.walk(node) if isinstance(part, ast.Compare)]
            parts = [side for part in compared for side in part.comparators]
            parts += [one for side in parts if isinstance(side, (ast.List, ast.Tuple, ast.Set)) for one in side.elts]
            group.literals = literals(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            group.literals = [node.value]
        if group.literals:
            groups.append(group)
    return groups


def words_in(path, text):
    """The words that a home owns: every literal of it that is one word."""
    groups = python_groups(text) if path.endswith(".py") else cpp_groups(text)
    return {word for group in groups for word in group.literals if WORD.match(word)}


def lists_in(path, text):
    """[(line, [literal])] of everything that may be an enumeration."""
    if path.endswith(".py"):
        lists = [(group.line, group.literals) for group in python_groups(text)]
    else:
        lists = []
        for group in cpp_groups(text):
            lists.append((group.line, group.literals))
            rows = [(inner.line, inner.first()) for inner in group.groups if inner.first() is not None]
            if rows:
                lists.append((rows[0][0], [first for _, first in rows]))
    many = [(line, literal.split()) for line, literals in lists for literal in literals if " " in literal]
    return lists + many


def copies_in(path, text, vocabularies):
    """{vocabulary: (line, words)} of the longest copy of each vocabulary that the file holds."""
    found = {}
    for line, literals in lists_in(path, text):
        for name, words in vocabularies.items():
            owned = {literal for literal in literals if literal in words}
            if len(owned) < LEAST or sum(literal in words for literal in literals) < SHARE * len(literals):
                continue
            if name not in found or len(found[name][1]) < len(owned):
                found[name] = (line, sorted(owned))
    return found


def check(files, homes, allowed):
    """Violations in {path: text}. homes: vocabulary -> paths of its home; allowed: (path, vocabulary) -> reason."""
    violations, vocabularies = [], {}
    for name, paths in homes.items():
        vocabularies[name] = set().union(*(words_in(path, files.get(path, "")) for path in paths))
        if len(vocabularies[name]) < LEAST:
            violations.append(f"vocabulary '{name}': no words found in {', '.join(paths)}")
    unused = dict(allowed)
    for path, text in sorted(files.items()):
        away = {name: words for name, words in vocabularies.items() if path not in homes[name]}
        for name, (line, words) in sorted(copies_in(path, text, away).items()):
            if unused.pop((path, name), None) is None and (path, name) not in allowed:
                shown = " ".join(words[:8]) + (" ..." if len(words) > 8 else "")
                violations.append(f"{path}:{line}: {len(words)} words of '{name}' a second time ({shown}); their home is {homes[name][0]}")
    violations += [f"{path}: allowed to repeat '{name}', which it does not any more" for path, name in unused]
    return violations
