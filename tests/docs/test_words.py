#!/usr/bin/env python3
"""README, CONTRIBUTING and harness/docs are in plain words: none of the words that CONTRIBUTING's glossary gives another word for.

test_words.py FILE... lists the words of a page that the glossary replaces.
"""
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT  # noqa: E402

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "harness/docs").glob("*.md"))]
# Names of things that other programs or standards have, and compounds in which the word has its common meaning.
ALLOWED = ["command line", "file and line", "line number", "half a unit"]
ROW = re.compile(r"^\| (?P<use>[^|]+?) \| (?P<avoid>[^|]+?) \|$", re.MULTILINE)


def glossary(page):
    """{word to avoid: word to use} of the table under the heading Words."""
    part = page.split("## Words\n")[1].split("\n## ")[0]
    found = {}
    for row in list(ROW.finditer(part))[1:]:
        if not set(row["use"]) <= set("- "):
            found |= {re.sub(r" \(.*\)$", "", word.strip()): row["use"] for word in row["avoid"].split(",")}
    return found


def prose(page):
    """(number of the row, its text) without code, quoted output, links' targets, the glossary itself."""
    page = re.sub(r"(?s)## Words\n.*?(?=\n## |\Z)", lambda part: "\n" * part[0].count("\n"), page)
    for quoted in (r"(?ms)^```.*?^```$", r"(?s)<!--.*?-->", r"`[^`]*`", r'"[^"]*"', r"\]\([^)]*\)"):
        page = re.sub(quoted, lambda part: "\n" * part[0].count("\n") + "_", page)
    return list(enumerate(page.splitlines(), 1))


def complaints(page, avoided):
    """(number of the row, word, word to use) for each word of a page that is to be avoided, in any of its endings."""
    found = []
    for number, text in prose(page):
        for allowed in ALLOWED:
            text = re.sub(rf"(?i)\b{re.escape(allowed)}", "_", text)
        for word, use in avoided.items():
            if re.search(rf"(?i)(?<![\w-]){re.escape(word)}(?![\w-])", text):
                found.append((number, word, use))
    return found


class Words(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.avoided = glossary((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))

    def test_the_glossary_is_read(self):
        self.assertGreaterEqual(len(self.avoided), 40)
        self.assertEqual(self.avoided["honest"], "conforming")
        self.assertNotIn("conforming", self.avoided)

    def test_pages_are_in_plain_words(self):
        wrong = [f"{page.relative_to(ROOT)}:{number}: {word} -> {use}" for page in PAGES
                 for number, word, use in complaints(page.read_text(encoding="utf-8"), self.avoided)]
        self.assertGreaterEqual(len(PAGES), 20)
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_a_word_is_found_in_prose_and_left_alone_in_what_is_quoted(self):
        page = 'An honest kernel.\n```text\nhonest\n```\nIt prints "as written", `told`.\nOn the\nway, Told on the way: a command line.\n'
        self.assertEqual([(number, word) for number, word, _ in complaints(page, self.avoided)],
                         [(1, "honest"), (7, "told"), (7, "on the way")])


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        known = glossary((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
        for name in sys.argv[1:]:
            for number, word, use in complaints(pathlib.Path(name).read_text(encoding="utf-8"), known):
                print(f"{name}:{number}: {word} -> {use}")
    else:
        unittest.main()
