"""Pages in Markdown, held against what their commands do: files are written, commands run, shown output looked for."""
import os
import pathlib
import re
import struct
import subprocess
import sys
import zlib

from programs import ROOT, ULPSCOPE, call
from suite_run import suite_run

BLOCK = re.compile(r"(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<kind>\w+)(?P<rest>[^\n]*)\n(?P<text>.*?)```\n", re.DOTALL)
MATRIX = re.compile(r"(<!-- matrix -->\n```text\n)(.*?)```", re.DOTALL)
LAST_OF_LEGEND = "A B equal letters"


def squeezed(text):
    return " ".join(text.split())


def furnish(folder):
    """Makes the files that a page's commands expect beside them: the root of a checkout that ci/suite has set up."""
    for each in ("harness", "backends", "cases", "build"):
        (folder / each).symlink_to(ROOT / each)
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / ".venv/bin/python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    (folder / ".venv/bin/python").chmod(0o755)


def commands(block):
    """(command, its exit code) for each row of a block of commands."""
    for row in block.splitlines():
        command, _, code = row.partition("  # exits ")
        yield command.split(" #")[0].strip(), int(code or 0)


def run_command(command, folder):
    """Runs one command of a page: in the checkout where it is a script of it, else in `folder`. ci/suite is run once for all tests."""
    if command == "ci/test":
        # The tests that call this are part of it: that they run is the proof. Alone, the command only prints its help.
        if os.environ.get("ULPSCOPE_IN_CI_TEST"):
            return call("echo", "ci/test runs")
        command += " --help"
    if command == "ci/suite":
        ran = suite_run()
        return subprocess.CompletedProcess(command, ran.code, ran.stdout, ran.stderr)
    words = command.replace("build/release/bin/ulpscope", f"'{ULPSCOPE}'")
    return call("bash", "-c", words, cwd=ROOT if command.startswith("ci/") else folder, timeout=1200)


def play(page, folder):
    """Runs a page's commands in order; (commands run, rows found, complaints, everything printed by each command)."""
    ran, shown, wrong, printed, outputs = 0, 0, [], "", {}
    for block in BLOCK.finditer(page):
        kind, text = block["kind"], block["text"]
        if block["file"]:
            (folder / block["file"]).write_text(text, encoding="utf-8")
        elif kind == "sh":
            printed = ""
            for command, code in commands(text):
                done = run_command(command, folder)
                ran += 1
                if done.returncode != code:
                    wrong.append(f"{command}: exits {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
                if not (done.stdout + done.stderr).strip():
                    wrong.append(f"{command}: printed nothing")
                outputs[command] = done.stdout
                printed += squeezed(done.stdout + done.stderr) + "\n"
        elif kind == "text" and "not printed" not in block["rest"]:
            for row in filter(None, map(squeezed, text.splitlines())):
                shown += 1
                if row not in printed.replace("\n", " "):
                    wrong.append(f"not printed: {row}\n{printed[-3000:]}")
    return ran, shown, wrong, outputs


def with_matrix(page, outputs):
    """The page with its matrix as the command before it printed it today, from the row of backends to where the shown extract ends."""
    shown = MATRIX.search(page)
    before = [block for block in BLOCK.finditer(page, 0, shown.start()) if block["kind"] == "sh"]
    command = next(command for block in reversed(before) for command, _ in commands(block["text"]) if " run " in command)
    rows = outputs[command].splitlines()
    first = next(i for i, row in enumerate(rows) if re.match(r" {8,}torch-eager", row))
    if LAST_OF_LEGEND in shown[2]:
        last = max(i for i, row in enumerate(rows) if LAST_OF_LEGEND in row) + 1
    else:
        last = next(i for i in range(first, len(rows)) if not rows[i].strip())
    extract = rows[first:last]
    finding = re.match(r" +\d+ +\w+ +(\S+)", shown[2])
    if finding:
        start = next(i for i, row in enumerate(rows) if re.match(r" +\d+ +precision +" + re.escape(finding[1]), row))
        end = next(i for i in range(start + 1, len(rows)) if not rows[i].startswith(" " * 7))
        extract = [*rows[start:end], "", *extract]
    return page[:shown.start(2)] + "\n".join(extract).rstrip() + "\n" + page[shown.end(2):]


def png_texts(picture):
    """{keyword: text} of the tEXt chunks of a PNG. Raises a ValueError where it is none, or a chunk is damaged."""
    if picture[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("no PNG")
    found, at = {}, 8
    while at < len(picture):
        size, kind = struct.unpack(">I4s", picture[at:at + 8])
        data = picture[at + 8:at + 8 + size]
        if struct.unpack(">I", picture[at + 8 + size:at + 12 + size])[0] != zlib.crc32(kind + data):
            raise ValueError(f"a damaged chunk at byte {at}")
        if kind == b"tEXt":
            keyword, _, text = data.partition(b"\0")
            found[keyword.decode("latin-1")] = text.decode("latin-1")
        at += 12 + size
    return found


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def folder_of(made):
    """A furnished folder in the temporary folder `made`."""
    folder = pathlib.Path(made)
    furnish(folder)
    return folder
