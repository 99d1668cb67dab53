#!/usr/bin/env python3
"""A run folder from an untrusted source: each of its files, and each folder in it, is a link, a pipe, a folder or a second name of a file
outside. No command reads or writes what lies outside, and none hangs.
"""
import json
import os
import pathlib
import shutil
import struct
import sys
import unittest
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import hashlib  # noqa: E402

import run_folders  # noqa: E402

OUTSIDE = "precious-8f2e\n"
COMMANDS = {
    "judge": ["judge", "hostile"],
    "report": ["report", "hostile", "--json", "-"],
    "explain": ["explain", "mine/a@emulated", "--run", "hostile"],
    "diff": ["diff", "hostile", "whole"],
    "merge": ["merge", "hostile", "-o", "merged"],
    "history": ["history", "hostile"],
    "resume": ["run", "mine.yaml", "-b", "emulated,openblas", "-q", "--resume", "-o", "hostile"],
    "run": ["run", "mine.yaml", "-b", "emulated", "-q", "-o", "hostile"],
}
# Those that write into the folder.
WRITING = ("judge", "resume", "run")


def link(path, outside):
    os.symlink(outside, path)


def link_to_nothing(path, outside):
    os.symlink(outside.with_name("made"), path)


def pipe(path, _):
    os.mkfifo(path)


def second_name(path, outside):
    os.link(outside, path)


def folder(path, _):
    path.mkdir()


class Links(run_folders.InFolder):
    def setUp(self):
        super().setUp()
        values = struct.pack("<4f", 1, 2, 3, 4)
        header = json.dumps({"t": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
        (self.root / "t.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + values)
        fill = f'{{file: {{path: t.safetensors, tensor: t, sha256: "{hashlib.sha256(values).hexdigest()}"}}}}'
        self.write("mine.yaml", run_folders.cases(["a", "b"]) + run_folders.CASE.format(name="c", op="neg", size=4).replace("normal", fill))
        self.good("run", "mine.yaml", "-b", "emulated", "-q", "-o", "whole")
        self.outside = self.root / "outside"
        self.outside.mkdir()
        self.victim = self.outside / "victim"

    def names(self):
        return sorted(each.relative_to(self.root / "whole").as_posix() for each in (self.root / "whole").rglob("*"))

    def attack(self, name, plant, command):
        """Runs `command` on a folder in which `name` is what `plant` makes of it."""
        hostile = self.copy("whole", "hostile")
        shutil.rmtree(self.root / "merged", ignore_errors=True)
        if (hostile / name).is_dir():
            shutil.rmtree(hostile / name)
        else:
            (hostile / name).unlink(missing_ok=True)
        self.victim.unlink(missing_ok=True)
        self.victim.write_text(OUTSIDE, encoding="utf-8")
        plant(hostile / name, self.victim)
        ended = self.call(*COMMANDS[command], timeout=20)
        self.assertEqual(self.victim.read_text(encoding="utf-8"), OUTSIDE, f"{command} wrote through {name} ({plant.__name__})")
        self.assertEqual(sorted(each.name for each in self.outside.iterdir()), ["victim"], f"{command} made a file outside by {name}")
        self.assertNotIn("precious", ended.stdout + ended.stderr, f"{command} read through {name} ({plant.__name__})")
        self.assertIn(ended.returncode, range(7), f"{command} on {name} ({plant.__name__}): {ended.stderr}")
        return ended

    def test_no_file_is_opened_through_what_is_none(self):
        names = [name for name in self.names() if (self.root / "whole" / name).is_file()]
        self.assertGreaterEqual({"journal.jsonl", "cases.jsonl", "classified.jsonl", "report.json", "junit.xml"} & set(names),
                                {"journal.jsonl", "cases.jsonl", "classified.jsonl", "report.json", "junit.xml"})
        kept = [name for name in names if name.startswith(("tensors/", "inputs/"))]
        self.assertGreaterEqual(len(kept), 4)
        one_of_each = [name for name in names if name not in kept] + [kept[0], kept[-1]]
        attacks = 0
        for name in one_of_each:
            for plant in (link, pipe, second_name):
                for command in COMMANDS if name.endswith("journal.jsonl") else ("judge", "explain", "merge", "resume"):
                    self.attack(name, plant, command)
                    attacks += 1
        self.assertGreater(attacks, 80)

    def test_nothing_is_made_through_a_link_to_nothing(self):
        for name in ("journal.jsonl", "cases.jsonl", "classified.jsonl", "report.json", "junit.xml"):
            for command in WRITING:
                self.attack(name, link_to_nothing, command)

    def test_a_folder_has_the_name_of_a_file(self):
        for name in ("journal.jsonl", "cases.jsonl", "classified.jsonl", "report.json"):
            for command in WRITING:
                ended = self.attack(name, folder, command)
                self.assertNotEqual(ended.returncode, 0, f"{command} on {name}")

    def test_folders_of_the_folder_are_no_links(self):
        """Files outside under the names of tensors are neither read nor replaced."""
        inputs = next(name for name in self.names() if name.startswith("inputs/") and name.count("/") == 1)
        for name in ("tensors", "traces", "inputs", inputs):
            for command in ("judge", "report", "merge", "resume"):
                hostile = self.copy("whole", "hostile")
                shutil.rmtree(self.root / "merged", ignore_errors=True)
                away = self.root / "away"
                shutil.rmtree(away, ignore_errors=True)
                if (hostile / name).is_dir():
                    (hostile / name).rename(away)
                else:
                    away.mkdir()
                os.symlink(away, hostile / name)
                before = {each: each.read_bytes() for each in away.rglob("*") if each.is_file()}
                ended = self.call(*COMMANDS[command], timeout=20)
                after = {each: each.read_bytes() for each in away.rglob("*") if each.is_file()}
                self.assertEqual(after, before, f"{command} with {name} a link")
                if before:
                    self.assertNotEqual(ended.returncode, 0, f"{command} reads through {name}: {ended.stdout}")

    def test_a_new_run_makes_nothing_behind_planted_folders(self):
        hostile = self.root / "hostile"
        for name in ("tensors", "traces"):
            shutil.rmtree(hostile, ignore_errors=True)
            hostile.mkdir()
            os.symlink(self.outside, hostile / name)
            self.assertEqual(self.call(*COMMANDS["run"]).returncode, 4)
            self.assertEqual(list(self.outside.iterdir()), [])

    def test_reports_that_are_links_are_replaced(self):
        for command in ("judge", "resume"):
            for name in ("report.json", "junit.xml"):
                for plant in (link, pipe, second_name):
                    self.assertEqual(self.attack(name, plant, command).returncode, 0)
                    path = self.root / "hostile" / name
                    self.assertTrue(path.is_file() and not path.is_symlink())
                    self.assertEqual(path.stat().st_nlink, 1)

    def test_a_page_asked_for_in_the_folder_is_written_there(self):
        hostile = self.copy("whole", "hostile")
        self.victim.write_text(OUTSIDE, encoding="utf-8")
        os.symlink(self.victim, hostile / "page.html")
        self.good("report", "hostile", "--html", "hostile/page.html")
        self.assertEqual(self.victim.read_text(encoding="utf-8"), OUTSIDE)
        self.assertTrue((hostile / "page.html").read_text(encoding="utf-8").startswith("<!"))

    def test_a_journal_of_two_names_is_not_appended_to(self):
        """A copy made of hard links (cp -al) keeps what it holds."""
        hostile = self.copy("whole", "hostile")
        os.link(hostile / "journal.jsonl", self.root / "snapshot")
        before = (self.root / "snapshot").read_bytes()
        refused = self.call(*COMMANDS["resume"])
        self.assertEqual(refused.returncode, 4)
        self.assertIn("hard links", refused.stderr)
        self.assertEqual((self.root / "snapshot").read_bytes(), before)

    def test_a_record_names_no_folder_outside(self):
        for inputs in ("../outside", "/etc", "inputs/../..", "inputs/" + "0" * 63 + "/"):
            hostile = self.copy("whole", "hostile")
            lines = []
            for line in (hostile / "cases.jsonl").read_text(encoding="utf-8").splitlines():
                record = json.loads(line)["record"]
                if record.get("inputs"):
                    record["inputs"] = inputs
                text = json.dumps(record, separators=(",", ":"), sort_keys=True)
                lines.append(f'{{"crc":"{zlib.crc32(text.encode()):08x}","record":{text}}}\n')
            (hostile / "cases.jsonl").write_text("".join(lines), encoding="utf-8")
            refused = self.call("judge", "hostile")
            self.assertEqual(refused.returncode, 4, inputs)
            self.assertIn("inputs", refused.stderr)


if __name__ == "__main__":
    unittest.main()
