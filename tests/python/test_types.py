#!/usr/bin/env python3
"""The types of the package's public names are those that it has: argument by argument, and mypy --strict on a user's file."""
import ast
import inspect
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "harness/python")]
from programs import call  # noqa: E402
import ulpscope  # noqa: E402

TOOLS = ROOT / ".venv-lint/bin"
USED = '''import ulpscope


def kernel(x: object, w: object) -> object:
    return x


case: ulpscope.Case = ulpscope.capture(kernel, (1, 2), data="real")
report = ulpscope.check(case, backends=["jax", ulpscope.backend("mine", {"matmul": kernel})])
first: str = report.findings[0]
try:
    ulpscope.assert_precision(kernel, (1, 2), acc="float32")
except ulpscope.PrecisionError as refused:
    print(refused.witness.upper(), report.shrink(minutes=1).script, ulpscope.capture_jax(kernel).save("x.yaml").name)
'''
WRONG = 'import ulpscope\nulpscope.check(print, backends="jax", steps="everything", seeds=1)\nulpscope.Report.finding\n'


STUB = (ROOT / "harness/python/ulpscope/__init__.pyi").read_text(encoding="utf-8")


def asked(function):
    """[(argument, by keyword alone, default as Python reads it)] of a function of a stub; ... stands for any default."""
    args = function.args
    plain = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(plain) - len(args.defaults)) + args.defaults
    return [(each.arg, keyword, ast.unparse(default) if default is not None else None)
            for keyword, pairs in ((False, zip(plain, defaults)), (True, zip(args.kwonlyargs, args.kw_defaults))) for each, default in pairs]


def has(function):
    """The same of a function that runs."""
    found = inspect.signature(function).parameters.values()
    return [(each.name, each.kind is each.KEYWORD_ONLY, None if each.default is each.empty else repr(each.default)) for each in found]


def complaints(stub):
    """(names compared, names that the stub has and the package has not)."""
    compared, wrong = 0, []

    def compare(name, node, function):
        said, true = asked(node), has(function)
        said = [(word, keyword, true[i][2] if default == "..." and i < len(true) else default) for i, (word, keyword, default) in enumerate(said)]
        if said != true:
            wrong.append(f"{name}: {[each for each in said if each not in true]} against {[each for each in true if each not in said]}")

    for node in ast.parse(stub).body:
        if isinstance(node, ast.FunctionDef):
            compare(node.name, node, getattr(ulpscope, node.name))
            compared += 1
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            cls = getattr(ulpscope, node.name)
            bases = [ast.unparse(each) for each in node.bases]
            if bases and [each.__name__ for each in cls.__bases__] != bases:
                wrong.append(f"{node.name}: {cls.__bases__}")
            source = inspect.getsource(cls)
            for member in node.body:
                if isinstance(member, ast.AnnAssign) and not re.search(rf"^    {member.target.id}: |self\.{member.target.id}\b", source, re.MULTILINE):
                    wrong.append(f"{node.name}.{member.target.id}: there is none")
                elif isinstance(member, ast.FunctionDef) and not isinstance(getattr(cls, member.name, None), property):
                    compare(f"{node.name}.{member.name}", member, getattr(cls, member.name))
                compared += 1
    return compared, wrong


class Types(unittest.TestCase):
    def test_every_public_name_has_a_type(self):
        named = {node.name for node in ast.parse(STUB).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        self.assertGreater(len(ulpscope.__all__), 12)
        self.assertEqual({each for each in named if not each.startswith("_")}, set(ulpscope.__all__))
        self.assertTrue((ROOT / "harness/python/ulpscope/py.typed").is_file())

    def test_the_stub_says_what_the_package_has(self):
        compared, wrong = complaints(STUB)
        self.assertEqual(wrong, [])
        self.assertGreater(compared, 50)
        for good, bad in (("minutes: float = 10, seed", "hours: float = 10, seed"), ("seed: int = 0", "seed: int = 1"),
                          ("backward: bool = False, grad: Any = None, verify: str | Iterable[str] = ...", "verify: str | Iterable[str] = ..."),
                          ("findings: list[str]", "sentences: list[str]"), ("class CaptureError(ValueError)", "class CaptureError(KeyError)")):
            self.assertIn(good, STUB)
            self.assertNotEqual(complaints(STUB.replace(good, bad, 1))[1], [], bad)

    def test_a_user_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text, wrong in (("used", USED, 0), ("wrong", WRONG, 3)):
                file = pathlib.Path(folder) / f"{name}.py"
                file.write_text(text, encoding="utf-8")
                told = call(TOOLS / "mypy", "--strict", "--no-incremental", file, cwd=folder, beside={"MYPYPATH": str(ROOT / "harness/python")})
                self.assertEqual(told.stdout.count("error:"), wrong, told.stdout + told.stderr)


if __name__ == "__main__":
    unittest.main()
