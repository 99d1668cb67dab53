#!/usr/bin/env python3
"""harness/docs keeps its word: every command on its pages is run, every row shown is printed, every public name is described.

test_tutorials.py --update writes today's matrix into matrix.md.
"""
import pathlib
import re
import sys
import tempfile
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "support"), str(pathlib.Path(__file__).resolve().parents[2] / "harness/python"),
                str(pathlib.Path(__file__).resolve().parents[2] / "backends/python")]
import pages  # noqa: E402
from programs import ROOT, ulpscope  # noqa: E402

PAGES = {page.name: page.read_text(encoding="utf-8") for page in sorted((ROOT / "harness/docs").glob("*.md"))}


def update():
    with tempfile.TemporaryDirectory() as made:
        outputs = pages.play(PAGES["matrix.md"], pages.folder_of(made))[3]
    (ROOT / "harness/docs/matrix.md").write_text(pages.with_matrix(PAGES["matrix.md"], outputs), encoding="utf-8")


def shown_file(page, file):
    """The text of the one block of a page that is the file of that name."""
    shown, = [block["text"] for block in pages.BLOCK.finditer(PAGES[page]) if block["file"] == file]
    return shown


class Tutorials(unittest.TestCase):
    def test_every_page_does_what_it_says(self):
        ran = shown = 0
        for name, page in PAGES.items():
            with self.subTest(page=name), tempfile.TemporaryDirectory() as made:
                did = pages.play(page, pages.folder_of(made))
                self.assertEqual(did[2], [], name)
                ran, shown = ran + did[0], shown + did[1]
        self.assertGreaterEqual(ran, 40)
        self.assertGreaterEqual(shown, 50)

    def test_a_page_that_lies_is_found(self):
        with tempfile.TemporaryDirectory() as made:
            page = "```sh\necho one two\nfalse\n```\n\n```text\none  two\nthree\n```\n"
            ran, shown, wrong, _ = pages.play(page, pathlib.Path(made))
        self.assertEqual((ran, shown), (2, 2))
        self.assertEqual([each.split("\n")[0] for each in wrong], ["false: exits 1", "false: printed nothing", "not printed: three"])

    def test_the_adapters_are_those_in_the_tree(self):
        for file, tree, most in (("example_numpy.py", "backends/python", 50), ("example_loops.cc", "backends/example", 55)):
            shown = shown_file("backend.md", file)
            self.assertEqual(shown, (ROOT / tree / file).read_text(encoding="utf-8"))
            self.assertLessEqual(len(shown.splitlines()), most, "no longer fits on a screen")

    def test_one_case_serves_three_pages(self):
        self.assertEqual({shown_file(page, "mine.yaml") for page in ("case.md", "backend.md", "nightly.md")}, {shown_file("case.md", "mine.yaml")})

    def test_shown_cases_exist(self):
        shown = {case for page in PAGES.values() for case in re.findall(r"(?<![\w/])(?:seeds|live|blocks)/\w+/\w+", page)}
        self.assertGreater(len(shown), 8)
        listed = ulpscope("list", "cases")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        known = set(re.findall(r"\b(?:seeds|live|blocks)/\w+/\w+", listed.stdout))
        self.assertEqual(sorted(shown - known), [])

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
        links = [(name, link) for name, page in PAGES.items() for link in re.findall(r"\]\(([\w./-]+)\)", page)]
        self.assertEqual([each for each in links if not (ROOT / "harness/docs" / each[1]).exists()], [])
        self.assertEqual(set(PAGES) - {"README.md"}, {link for name, link in links if name == "README.md"})
        self.assertIn("harness/docs/README.md", (ROOT / "README.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update()
    else:
        unittest.main()
