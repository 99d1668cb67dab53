#!/usr/bin/env python3
"""A run folder from elsewhere: a file's length is held against what belongs there before it is read, and time grows as the folder does."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import unittest
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ULPSCOPE, class_folder, ulpscope  # noqa: E402

ONE = ("about: One case.\ncases:\n  - name: a\n    tags: [ci]\n    tensors: {x: {dtype: float32, shape: [4], fill: normal}}\n"
       "    program: [{op: neg, of: [x], as: r}]\n    observe: [r]\n")
HOLE = 400_000_000
MOST_MIB = 100  # the program alone takes some 20; half of the hole would be 190


def used(*command, cwd):
    """(exit code, MiB, seconds of the processor, stderr) of the program."""
    process = subprocess.Popen([ULPSCOPE, *command], cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    return process.returncode, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime, said


class Folder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = class_folder(cls)
        (cls.folder / "one.yaml").write_text(ONE)
        done = ulpscope("run", "one.yaml", "-b", "emulated", "-q", "-o", "one", cwd=cls.folder)
        assert done.returncode == 0, done.stderr

    def copy(self, change=lambda record: None):
        """A copy of the run whose records `change` has changed, with right checksums."""
        shutil.rmtree(self.folder / "copy", ignore_errors=True)
        shutil.copytree(self.folder / "one", self.folder / "copy")
        lines = []
        for line in (self.folder / "one/journal.jsonl").read_text().splitlines():
            record = json.loads(line)["record"]
            change(record)
            text = json.dumps(record, separators=(",", ":"), sort_keys=True)
            lines.append(f'{{"crc":"{zlib.crc32(text.encode()):08x}","record":{text}}}\n')
        (self.folder / "copy/journal.jsonl").write_text("".join(lines))
        for name in ("report.json", "junit.xml"):
            (self.folder / "copy" / name).unlink(missing_ok=True)
        return self.folder / "copy"

    def refused(self, command, said):
        code, mebibytes, _, error = used(*command, cwd=self.folder)
        self.assertEqual(code, 4, error)
        self.assertRegex(error, said)
        self.assertLess(mebibytes, MOST_MIB, error)

    def test_a_tensor_file_that_is_longer_than_its_tensors(self):
        tensors = next((self.copy() / "tensors").iterdir())
        os.truncate(tensors, HOLE)
        for command in ("judge", "report"):
            self.refused([command, "copy"], r"tensors/000000\.safetensors: \d+ bytes after the last tensor belong to none")

    def test_a_tensor_file_whose_header_speaks_of_tensors_that_the_program_has_not(self):
        header = json.dumps({"r": {"dtype": "F32", "shape": [HOLE // 4], "data_offsets": [0, HOLE]}}).encode()
        header += b" " * (-len(header) % 8)
        start = struct.pack("<Q", len(header)) + header
        crc = zlib.crc32(start)
        for _ in range(HOLE // 1_000_000):
            crc = zlib.crc32(bytes(1_000_000), crc)

        def change(record):
            if record["type"] == "result":
                record["tensors"]["crc"] = f"{crc:08x}"

        tensors = next((self.copy(change) / "tensors").iterdir())
        tensors.write_bytes(start)
        os.truncate(tensors, len(start) + HOLE)
        self.refused(["judge", "copy"], r"of its \d+ bytes were ever written, and r has another shape than in the program; "
                     r"found float32\[100000000\], expected float32\[4\]")

    def test_a_journal_that_is_a_hole(self):
        os.truncate(self.copy() / "journal.jsonl", HOLE)
        code, mebibytes, _, said = used("report", "copy", cwd=self.folder)
        self.assertEqual(code, 4, said)
        self.assertIn("has a line of more than", said)
        self.assertLess(mebibytes, 330)  # a line may be 128 MiB long, and is held while its buffer grows

    def grows(self, name, change, most=3.2):
        """Twice as much takes at most 3.2 times as long, the quicker of three times each (quadratic time takes 4 times as long); what
        takes less than a fifth of a second is not measured."""
        seconds = {}
        for count in (8000, 16000):
            self.copy(lambda record: change(record, count))
            tries = [used("report", "copy", cwd=self.folder) for _ in range(3)]
            for code, _, _, said in tries:
                self.assertIn(code, (0, 6), said)
            seconds[count] = min(each[2] for each in tries)
        print(f"{name}: {seconds[8000]:.2f} s for 8,000, {seconds[16000]:.2f} s for 16,000")
        self.assertTrue(seconds[16000] < max(0.2, most * seconds[8000]), f"{name}: {seconds}")

    def test_many_casts(self):
        def alike(record, count):
            if record["type"] == "result":
                record["observation"]["casts"] = [{"bytes": 4, "from": "float16", "node": -1, "redundant": False, "shape": [4],
                                                   "stage": "dispatch", "to": "float32", "under": "x", "us": 1}] * count

        def different(record, count):
            if record["type"] == "result":
                record["observation"]["casts"] = [{"bytes": 4, "from": "float16", "node": -1, "redundant": False, "shape": [i],
                                                   "stage": "dispatch", "to": "float32", "under": f"x{i}", "us": 1} for i in range(count)]

        self.grows("casts", alike)
        self.grows("different casts", different)

    def test_many_packages(self):
        def change(record, count):
            if record["type"] == "backend":
                record["versions"] = {f"p{i}": "1.0" for i in range(count)}

        self.grows("packages", change)

    def test_many_backends(self):
        def change(record, count):
            if record["type"] == "run":
                record["backends"] += [f"emulated:threads={i}" for i in range(count)]

        self.grows("backends", change)


if __name__ == "__main__":
    unittest.main()
