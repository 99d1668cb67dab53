#!/usr/bin/env python3
"""Continued runs: without a selection as they were, after an edit of the files that a case takes its tensors from, after a signal in the
midst; and shards that contradict their own plan.
"""
import hashlib
import json
import pathlib
import shutil
import signal
import struct
import sys
import time
import unittest
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import run_folders  # noqa: E402


class Records(run_folders.InFolder):
    """Reading and forging what a run folder records."""

    def report(self, folder):
        return json.loads((self.root / folder / "report.json").read_text(encoding="utf-8"))

    def records(self, folder):
        return [json.loads(line)["record"] for line in (self.root / folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()]

    def rewrite(self, folder, records):
        lines = []
        for record in records:
            text = json.dumps(record, separators=(",", ":"), sort_keys=True)
            lines.append(f'{{"crc":"{zlib.crc32(text.encode()):08x}","record":{text}}}\n')
        (self.root / folder / "journal.jsonl").write_text("".join(lines), encoding="utf-8")
        for name in ("report.json", "junit.xml", "classified.jsonl"):
            (self.root / folder / name).unlink(missing_ok=True)

    def cut(self, folder, results):
        """The folder of a run that was killed after so many results."""
        kept = []
        for record in self.records(folder):
            kept.append(record)
            results -= record["type"] == "result"
            if results == 0:
                break
        self.rewrite(folder, kept)


class Resumed(Records):
    def test_what_is_not_said_is_as_it_was(self):
        """Cases, backends, seed, repeats, steps, traces: the plain line that an interrupted run prints finishes it."""
        self.write("mine.yaml", run_folders.cases(["a", "b", "c"], "exp"))
        first = ["run", "mine.yaml", "-q", "-b", "emulated,openblas", "--seed", "7", "--repeat", "1", "--no-trace", "--no-steps"]
        self.good(*first, "-o", "whole")
        self.good(*first, "-o", "r")
        self.cut("r", 2)
        (self.root / "mine.yaml").unlink()
        self.good("run", "-q", "--resume", "-o", "r")
        whole, resumed = self.report("whole"), self.report("r")
        self.assertEqual(len(resumed["results"]), 6)
        self.assertEqual(resumed["results"], whole["results"])
        self.assertEqual(resumed["run"], whole["run"])
        self.assertEqual(len(list((self.root / "r/tensors").iterdir())), len(list((self.root / "whole/tensors").iterdir())))

    def test_opened_programs_and_further_inputs_come_with_their_cases(self):
        self.write("mine.yaml", """
cases:
  - name: steps
    tensors:
      x: {dtype: bfloat16, shape: [4, 8], fill: normal}
      y: {dtype: bfloat16, shape: [8, 4], fill: normal}
    program:
      - {op: matmul, of: [x, y], as: product}
      - {op: exp, of: [product], as: result}
    observe: [result]
    contract: {status: documented, prove: true, accept: {result: {acc: [float32]}}}
""")
        self.call("run", "mine.yaml", "-q", "-b", "emulated", "-o", "whole")
        self.copy("whole", "r")
        count = sum(record["type"] == "result" for record in self.records("whole"))
        self.assertGreater(count, 1)
        self.cut("r", 1)
        self.call("run", "-q", "--resume", "-o", "r")
        self.assertEqual(sum(record["type"] == "result" for record in self.records("r")), count)
        self.assertEqual(self.report("r")["results"], self.report("whole")["results"])

    def test_a_further_backend_is_asked_about_the_cases_of_the_run(self):
        self.write("mine.yaml", run_folders.cases(["a", "b"]))
        self.good("run", "mine.yaml", "-q", "-b", "emulated", "-o", "r")
        self.good("run", "-q", "-b", "openblas", "--resume", "-o", "r")
        self.assertEqual({(each["id"], each["backend"]) for each in self.report("r")["results"]},
                         {(f"mine/{case}", backend) for case in "ab" for backend in ("emulated", "openblas")})

    def test_a_part_of_a_plan_is_finished_as_it_is(self):
        self.write("mine.yaml", run_folders.cases([f"a{i}" for i in range(6)]))
        for part in (1, 2):
            self.good("run", "mine.yaml", "-q", "-b", "emulated", "--shard", f"{part}/2", "-o", f"part{part}")
        ran = len([record for record in self.records("part1") if record["type"] == "result"])
        self.cut("part1", 1)
        self.good("run", "-q", "--resume", "-o", "part1")
        self.assertEqual(len([record for record in self.records("part1") if record["type"] == "result"]), ran)
        self.good("merge", "part1", "part2", "-o", "whole")
        self.assertEqual(len(self.report("whole")["results"]), 6)

    def test_nobody_who_resumes_means_the_whole_suite(self):
        (self.root / "empty").mkdir()
        for folder in ("nowhere", "empty"):
            for more in ([], ["-b", "emulated"], ["-b", "emulated", "--seed", "3"]):
                refused = self.call("run", "-q", "--resume", "-o", folder, *more, timeout=20)
                self.assertEqual(refused.returncode, 4, refused.stdout)
                self.assertIn(f"{folder} holds none", refused.stderr)
        self.assertFalse((self.root / "nowhere").exists())
        self.assertEqual(list((self.root / "empty").iterdir()), [])

    def test_what_is_said_and_is_another_is_refused(self):
        self.write("mine.yaml", run_folders.cases(["a"]))
        self.good("run", "mine.yaml", "-q", "-b", "emulated", "-o", "r")
        before = (self.root / "r/journal.jsonl").read_bytes()
        for other in (["--seed", "1"], ["--repeat", "5"], ["--no-trace"]):
            refused = self.call("run", "-q", "--resume", "-o", "r", *other)
            self.assertEqual(refused.returncode, 4, other)
            self.assertIn("cannot be resumed with another", refused.stderr)
        self.assertEqual((self.root / "r/journal.jsonl").read_bytes(), before)

    def write_tensor(self, *values):
        data = struct.pack("<4f", *values)
        header = json.dumps({"t": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
        (self.root / "t.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)
        fill = f'{{file: {{path: t.safetensors, tensor: t, sha256: "{hashlib.sha256(data).hexdigest()}"}}}}'
        self.write("mine.yaml", run_folders.cases(["a"]).replace("normal", fill))

    def values(self, folder):
        """The tensor of the last result of the journal."""
        file = [record for record in self.records(folder) if record["type"] == "result"][-1]["tensors"]["file"]
        return struct.unpack("<4f", (self.root / folder / file).read_bytes()[-16:])

    def test_a_tensor_that_was_edited_is_computed_with_again(self):
        resume = ["run", "mine.yaml", "-b", "emulated", "-q", "-o", "r", "--resume"]
        self.write_tensor(1, 2, 3, 4)
        self.good(*resume)
        self.write_tensor(9, 8, 7, 6)
        self.good(*resume)
        self.assertEqual(self.values("r"), (-9, -8, -7, -6))
        for command in (["judge", "r"], ["report", "r"], ["explain", "mine/a@emulated", "--run", "r"], resume):
            self.good(*command)
        self.write_tensor(1, 2, 3, 4)
        self.good(*resume)
        self.assertEqual(self.values("r"), (-1, -2, -3, -4))
        # Without the files that it came from, elsewhere.
        for name in ("mine.yaml", "t.safetensors"):
            (self.root / name).unlink()
        self.copy("r", "moved")
        self.good("judge", "moved")

    def test_two_cases_may_take_two_files_of_one_name(self):
        for folder, values in (("one", (1, 2, 3, 4)), ("two", (5, 6, 7, 8))):
            (self.root / folder).mkdir()
            self.write_tensor(*values)
            shutil.move(self.root / "t.safetensors", self.root / folder / "t.safetensors")
            shutil.move(self.root / "mine.yaml", self.root / folder / f"{folder}.yaml")
        self.good("run", "one/one.yaml", "two/two.yaml", "-b", "emulated", "-q", "-o", "r")
        self.good("judge", "r")
        self.assertEqual(len(self.report("r")["results"]), 2)

    def test_an_edit_is_not_lost_between_two_files(self):
        """A run that was killed after it wrote the cases and before it wrote the journal, and the other way round."""
        self.write("mine.yaml", run_folders.cases(["a"]))
        self.good("run", "mine.yaml", "-b", "emulated", "-q", "-o", "r")
        old = (self.root / "r/journal.jsonl").read_bytes()
        self.write("mine.yaml", run_folders.cases(["a"], "exp"))
        self.good("run", "mine.yaml", "-b", "emulated", "-q", "-o", "r", "--resume")
        (self.root / "mine.yaml").unlink()
        self.good("judge", "r")
        (self.root / "r/journal.jsonl").write_bytes(old)
        self.good("judge", "r")
        self.good("run", "-q", "--resume", "-o", "r")

    def test_parts_with_tensors_of_their_own_are_merged(self):
        self.write_tensor(1, 2, 3, 4)
        text = (self.root / "mine.yaml").read_text(encoding="utf-8")
        self.write("mine.yaml", text + text.partition("cases:")[2].replace("name: a", "name: b"))
        for part in (1, 2):
            self.good("run", "mine.yaml", "-q", "-b", "emulated", "--shard", f"{part}/2", "-o", f"part{part}")
        self.good("merge", "part1", "part2", "-o", "whole")
        for name in ("mine.yaml", "t.safetensors"):
            (self.root / name).unlink()
        for folder in ("part1", "part2"):
            shutil.rmtree(self.root / folder)
        self.good("judge", "whole")
        self.assertEqual(len(self.report("whole")["results"]), 2)


class Forged(Records):
    """Parts whose header contradicts their content; every checksum is right."""

    def parts(self):
        self.write("mine.yaml", run_folders.cases([f"a{i}" for i in range(6)]))
        for part in (1, 2):
            shutil.rmtree(self.root / f"part{part}", ignore_errors=True)
            self.good("run", "mine.yaml", "-q", "-b", "emulated", "--shard", f"{part}/2", "-o", f"part{part}")
        shutil.rmtree(self.root / "whole", ignore_errors=True)

    def check(self, forge, what):
        self.parts()
        records = self.records("part2")
        forge(records)
        for n, record in enumerate(records):
            if "n" in record:
                record["n"] = n
        self.rewrite("part2", records)
        merged = self.call("merge", "part1", "part2", "-o", "whole")
        held = len(self.report("whole")["results"]) if (self.root / "whole/report.json").is_file() else 0
        self.assertNotEqual(merged.returncode, 0, f"{what}: exit 0 with {held} of 6 results")
        return merged

    def test_no_result_is_left_out_unsaid(self):
        def header(records):
            return next(record for record in records if record["type"] == "run")

        def first_result(records):
            return next(record for record in records if record["type"] == "result")

        def rename_in_header(records):
            old = first_result(records)["case"]
            next(each for each in header(records)["cases"] if each["id"] == old)["id"] = "mine/elsewhere"

        def drop_from_header(records):
            header(records)["cases"] = [each for each in header(records)["cases"] if each["id"] != first_result(records)["case"]]

        def rename_result(records):
            first_result(records)["case"] = "mine/elsewhere"

        def drop_result(records):
            records.remove(first_result(records))

        def other_digest(records):
            old = first_result(records)["case"]
            next(each for each in header(records)["cases"] if each["id"] == old)["digest"] = "00000000"

        def other_backend(records):
            first_result(records)["backend"] = "openblas"

        def other_case_too(records):
            header(records)["cases"].append({"id": "mine/elsewhere", "digest": "00000000"})

        for forge in (rename_in_header, drop_from_header, rename_result, drop_result, other_digest, other_backend, other_case_too):
            self.check(forge, forge.__name__)

    def test_the_honest_parts_are_merged(self):
        self.parts()
        self.good("merge", "part1", "part2", "-o", "whole")
        self.assertEqual(len(self.report("whole")["results"]), 6)


class Interrupted(Records):
    """A signal while results are judged, and while pages are written."""

    def make(self, count):
        self.write("mine.yaml", "cases:" + "".join(f"""
  - name: c{i}
    tensors:
      a: {{dtype: bfloat16, shape: [32, 64], fill: normal}}
      b: {{dtype: bfloat16, shape: [64, 32], fill: normal}}
    program:
      - {{op: matmul, of: [a, b], as: p}}
      - {{op: gelu, of: [p], as: g}}
      - {{op: softmax, of: [g], dim: -1, as: s}}
    observe: [p, g, s]
""" for i in range(count)))

    def interrupt(self, folder, sent, after, *more):
        run = self.start("run", "mine.yaml", "-b", "emulated", "-o", folder, *more)
        journal, began = self.root / folder / "journal.jsonl", time.monotonic()
        while run.poll() is None and not (journal.is_file() and journal.read_bytes().count(b'"type":"result"') >= after):
            self.assertLess(time.monotonic() - began, 60)
            time.sleep(0.01)
        time.sleep(0.05)
        run.send_signal(sent)
        out, err = run.communicate(timeout=60)
        return run.returncode, out, err

    def test_pages_are_written_and_the_way_on_is_told(self):
        self.make(120)
        for number, sent in enumerate((signal.SIGTERM, signal.SIGINT, signal.SIGHUP)):
            outputs = [text for name in ("html", "csv", "markdown") for text in (f"--{name}", f"page{number}.{name}")]
            code, out, err = self.interrupt(f"r{number}", sent, 20, *outputs)
            self.assertEqual(code, 2, f"{sent.name}: {err[-300:]}")
            self.assertIn(f"--resume -o r{number} goes on", err)
            self.assertIn("this run is not complete", out)
            for name in ("html", "csv", "markdown"):
                self.assertGreater((self.root / f"page{number}.{name}").stat().st_size, 100, name)
            self.assertTrue((self.root / f"r{number}/report.json").is_file())

    def test_a_signal_after_the_last_result_is_one_too(self):
        """The results are there and their judgement is not: it is said so, and nothing is lost."""
        count = 12
        self.make(count)
        # Each case is run twice: as it is, and with every step observed.
        code, _, err = self.interrupt("r", signal.SIGTERM, 2 * count, "--html", "page.html")
        self.assertEqual(code, 2, err[-300:])
        self.assertRegex(err, rf"interrupted: 0 of {count} results not run, [0-9]+ run and not judged; --resume -o r goes on")
        results = self.report("r")["results"]
        self.assertEqual(len(results), count)
        self.assertIn("NOT_RUN", {each["status"] for each in results})
        self.good("run", "-q", "--resume", "-o", "r")
        self.assertEqual({each["status"] for each in self.report("r")["results"]}, {"PASS"})


if __name__ == "__main__":
    unittest.main()
