#!/usr/bin/env python3
"""harness/docs keeps its word: every command on its pages is run, every line shown is printed, every public name is described."""
import pathlib
import re
import sys
import tempfile
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "support"), str(pathlib.Path(__file__).resolve().parents[2] / "harness/python"),
                str(pathlib.Path(__file__).resolve().parents[2] / "backends/python")]
from programs import ROOT, ULPSCOPE, call  # noqa: E402

PAGES = {page.name: page.read_text(encoding="utf-8") for page in sorted((ROOT / "harness/docs").glob("*.md"))}
BLOCK = re.compile(r"(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<kind>\w+)(?P<rest>[^\n]*)\n(?P<text>.*?)```\n", re.DOTALL)


def squeezed(text):
    return " ".join(text.split())


def play(page, folder):
    """Runs a page's commands in order; (commands run, lines found, complaints)."""
    ran, shown, wrong, printed = 0, 0, [], ""
    for block in BLOCK.finditer(page):
        kind, text = block["kind"], block["text"]
        if block["file"]:
            (folder / block["file"]).write_text(text, encoding="utf-8")
        elif kind == "sh":
            printed = ""
            for line in text.splitlines():
                command, _, comment = line.partition("  # exits ")
                command = command.replace("build/release/bin/ulpscope", f"'{ULPSCOPE}'")
                done = call("bash", "-c", command, cwd=folder)
                ran += 1
                if done.returncode != int(comment or 0):
                    wrong.append(f"{line}: exits {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
                printed += squeezed(done.stdout + done.stderr) + "\n"
        elif kind == "text" and "not printed" not in block["rest"]:
            for line in filter(None, map(squeezed, text.splitlines())):
                shown += 1
                if line not in printed.replace("\n", " "):
                    wrong.append(f"not printed: {line}\n{printed[-3000:]}")
    return ran, shown, wrong


class Tutorials(unittest.TestCase):
    def test_every_page_does_what_it_says(self):
        ran = shown = 0
        for name, page in PAGES.items():
            with self.subTest(page=name), tempfile.TemporaryDirectory() as made:
                folder = pathlib.Path(made)
                for each in ("harness", "backends", "cases"):
                    (folder / each).symlink_to(ROOT / each)
                (folder / ".venv/bin").mkdir(parents=True)
                (folder / ".venv/bin/python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
                (folder / ".venv/bin/python").chmod(0o755)
                did = play(page, folder)
                self.assertEqual(did[2], [], name)
                ran, shown = ran + did[0], shown + did[1]
        self.assertGreaterEqual(ran, 12)
        self.assertGreaterEqual(shown, 12)

    def test_a_page_that_lies_is_found(self):
        with tempfile.TemporaryDirectory() as made:
            page = "```sh\necho one two\nfalse\n```\n\n```text\none  two\nthree\n```\n"
            ran, shown, wrong = play(page, pathlib.Path(made))
        self.assertEqual((ran, shown), (2, 2))
        self.assertEqual([each.split("\n")[0] for each in wrong], ["false: exits 1", "not printed: three"])

    def test_the_statuses_are_those_that_there_are(self):
        source = (ROOT / "harness/model/run_report.cc").read_text(encoding="utf-8")
        listed = re.search(r"Name\(Status status\) \{.*?kNames\{(.*?)\};", source, re.DOTALL)[1]
        self.assertEqual(re.findall(r"^\| ([A-Z_]+) \|", PAGES["statuses.md"], re.MULTILINE), re.findall(r'"(\w+)"', listed))

    def test_every_public_name_is_described(self):
        import ulpscope as package
        import ulpscope_adapter
        described = set(re.findall(r"^\| `(\w+)", PAGES["sdk.md"], re.MULTILINE))
        public = set(package.__all__) | set(ulpscope_adapter.__all__)
        self.assertGreater(len(public), 25)
        methods = {each for each in vars(ulpscope_adapter.Adapter) if not each.startswith("_")}
        self.assertEqual(sorted((public | methods) - described), [])
        self.assertEqual(sorted(described - public - methods), [])

    def test_the_facets_are_those_of_the_schema(self):
        import json
        schema = json.loads((ROOT / "cases/case.schema.json").read_text(encoding="utf-8"))
        facets = [each for each in schema["definitions"]["demand"]["properties"] if each != "dtype"]
        self.assertEqual(re.findall(r"^\| (\w+) \| (?!what it is)", PAGES["contracts.md"], re.MULTILINE), facets)

    def test_linked_files_exist_and_every_page_is_listed(self):
        links = [(name, link) for name, page in PAGES.items() for link in re.findall(r"\]\(([\w./]+)\)", page)]
        self.assertEqual([each for each in links if not (ROOT / "harness/docs" / each[1]).exists()], [])
        self.assertEqual(set(PAGES) - {"README.md"}, {link for name, link in links if name == "README.md"})
        self.assertIn("harness/docs/README.md", (ROOT / "README.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
