#!/usr/bin/env python3
"""README.md keeps its word: every command in it is run, its matrix is what its run prints, its picture is the page of that run.

test_readme.py --update writes today's matrix into it, and the picture (needs chromium and imagemagick).
"""
import html
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import pages  # noqa: E402
from programs import ROOT, class_folder, ulpscope  # noqa: E402

README = (ROOT / "README.md").read_text(encoding="utf-8")
PICTURE = ROOT / "harness/docs/page.png"
MOST_ROWS, MOST_BYTES = 200, 200_000


def picture_command(page):
    """The one command of the README that writes a page."""
    command, = [command for block in pages.BLOCK.finditer(page) if block["kind"] == "sh"
                for command, _ in pages.commands(block["text"]) if "--html" in command]
    return command


def page_rows(page):
    """Heading and matrix of a report in HTML: what the picture shows, without its sentences."""
    heading = re.search(r"<h1>(.*?)(?=<)", page)[1]
    table = re.search(r"<table[^>]*id=matrix>.*?<thead>(.*?)</table>", page, re.DOTALL)[1]
    texts = [[html.unescape(re.sub(r"<[^>]*>", "", cell)).strip() for cell in re.findall(r"<t[hd][^>]*>([^\n]*?)(?=<t[hd]|\n|$)", row)]
             for row in table.split("<tr")]
    return "\n".join([heading, *(" | ".join(row) for row in texts if row)])


def palette_png(pixels, texts):
    """A PNG of [height, width, 3] bytes in at most 256 colours (the most frequent of 4096, or the nearest of them), with tEXt chunks."""
    import numpy
    coarse = pixels >> 4
    codes = (coarse[..., 0].astype(int) << 8) | (coarse[..., 1].astype(int) << 4) | coarse[..., 2]
    counts = numpy.bincount(codes.ravel(), minlength=4096)
    kept = numpy.argsort(-counts, kind="stable")[:256]
    kept = kept[counts[kept] > 0]
    colours = numpy.stack([pixels[codes == code].mean(axis=0).round() for code in kept])
    every = numpy.stack([numpy.arange(4096) >> 8, (numpy.arange(4096) >> 4) & 15, numpy.arange(4096) & 15], axis=1) * 17
    nearest = ((every[:, None, :] - colours[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)
    nearest[kept] = numpy.arange(len(kept))
    rows = numpy.pad(nearest[codes].astype(numpy.uint8), ((0, 0), (1, 0)))
    height, width = codes.shape
    return (b"\x89PNG\r\n\x1a\n" + pages.chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)) +
            b"".join(pages.chunk(b"tEXt", f"{key}\0{text}".encode("latin-1")) for key, text in texts.items()) +
            pages.chunk(b"PLTE", colours.astype(numpy.uint8).tobytes()) + pages.chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)) +
            pages.chunk(b"IEND", b""))


def draw(page, command):
    """The picture of a page that `command` wrote; keeps the command and what the page shows beside the pixels."""
    import numpy
    with tempfile.TemporaryDirectory() as folder:
        picture = pathlib.Path(folder) / "page.png"
        subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,1200",
                        f"--screenshot={picture}", page.as_uri()], check=True, capture_output=True)
        ppm = subprocess.run(["convert", picture, "ppm:-"], check=True, capture_output=True).stdout
    width, height = map(int, ppm.split(maxsplit=3)[1:3])
    pixels = numpy.frombuffer(ppm[-3 * width * height:], numpy.uint8).reshape(height, width, 3)
    return palette_png(pixels, {"Command": command, "Rows": page_rows(page.read_text(encoding="utf-8"))})


def update():
    """Runs the command of the picture, and puts what it printed and wrote today into the README and beside it."""
    command = picture_command(README)
    with tempfile.TemporaryDirectory() as made:
        folder = pages.folder_of(made)
        done = pages.run_command(command, folder)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        (ROOT / "README.md").write_text(pages.with_matrix(README, {command: done.stdout}), encoding="utf-8")
        PICTURE.write_bytes(draw(folder / "page.html", command))


class Commands(unittest.TestCase):
    """Every command, once and in order; what they printed and wrote serves all checks."""

    @classmethod
    def setUpClass(cls):
        cls.folder = class_folder(cls)
        pages.furnish(cls.folder)
        cls.ran, cls.shown, cls.wrong, cls.outputs = pages.play(README, cls.folder)

    def test_every_command_runs_and_prints_what_is_shown(self):
        self.assertEqual(self.wrong, [], "a matrix is mended with: test_readme.py --update")
        self.assertGreaterEqual(self.ran, 7)
        self.assertGreaterEqual(self.shown, 5)

    def test_the_picture_is_the_page_that_the_command_writes(self):
        texts = pages.png_texts(PICTURE.read_bytes())
        self.assertEqual(texts["Command"], picture_command(README))
        written = page_rows((self.folder / "page.html").read_text(encoding="utf-8"))
        self.assertGreaterEqual(len(written.splitlines()), 6)
        self.assertEqual(texts["Rows"], written, "mend with: test_readme.py --update")

    def test_what_the_text_says_of_its_own_example_is_printed(self):
        said = re.search(r"The first finding names the difference \((`+)(.*?)\1\)", README)[2]
        printed, = [text for command, text in self.outputs.items() if command.endswith("first.py")]
        self.assertIn(said, pages.squeezed(printed))


class Readme(unittest.TestCase):
    def test_it_is_short_and_its_first_screen_leads_everybody_on(self):
        rows = README.splitlines()
        self.assertLessEqual(len(rows), MOST_ROWS)
        first = "\n".join(rows[:30])
        self.assertRegex(first, r'<img src="harness/docs/page\.png" width="\d+" alt="[^"]+">')
        self.assertEqual(re.findall(r"^(ci/\w+|build\S+ run)", first, re.MULTILINE), ["ci/suite", "ci/test", "build/release/bin/ulpscope run"])
        table = first[first.index("| you are"):].split("\n\n")[0].splitlines()[2:]
        self.assertEqual(len(table), 5)
        for row in table:
            self.assertRegex(row, r"\]\(\S+\.md\)")
        self.assertLessEqual(PICTURE.stat().st_size, MOST_BYTES)

    def test_shown_cases_exist(self):
        shown = set(re.findall(r"\b(?:seeds|live)/\w+/\w+", README))
        self.assertGreater(len(shown), 1)
        listed = ulpscope("list", "cases")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        known = set(re.findall(r"\b(?:seeds|live)/\w+/\w+", listed.stdout))
        self.assertEqual(sorted(shown - known), [])

    def test_exit_codes_are_complete(self):
        self.assertEqual(re.findall(r"^\| (\d) \|", README, re.MULTILINE), list("0123456"))

    def test_linked_files_exist(self):
        links = re.findall(r"\]\(([\w./-]+)\)", README)
        self.assertGreater(len(links), 10)
        self.assertEqual([link for link in links if not (ROOT / link).exists()], [])


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update()
    else:
        unittest.main()
