#!/usr/bin/env python3
"""Files of a run folder are opened in one place, harness/record/run_file.cc: every other line of the sources that opens, makes, copies
or removes a file stands in the table below with the reason why it is none of a run folder.
"""
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOME = "harness/record/run_file.cc"
FOLDERS = ("harness", "reports", "oracles")

# Calls that open a file, or change what a name stands for.
OPENS = re.compile(r"""\b(?:std::)?[io]?fstream\b(?!>)|\bf?open(?:at)?\s*\(|\bcreat\s*\(|\btruncate\s*\(|\bfopen\s*\(|\bmkfifo|\bmkstemp
                       |\b(?:fs|filesystem)::(?:copy\w*|rename|resize_file|create_\w+|permissions)\b|::(?:rename|link|symlink|mkdir)\s*\(
                       |\b(?:Read|Write)Safetensors\s*\(|\b(?:ReadFileBytes|WriteFileBytes|MakeFolders)\s*\(|\bsqlite3_open""", re.VERBOSE)
COMMENT = re.compile(r"//.*|#\s*include.*")
# An adapter's calls in the folders that it was given, and text that is spelled like a call and is none.
NO_FILE = re.compile(r"std::unordered_set<int64_t> open\(|std::vector<size_t> open\(|oracle = open\((?:piece|kernel\.program|alone->piece), ")

INPUT = "the user names it: a case file, or what lies beside it"
OUTPUT = "the user names it: a report, a page, a bundle"
SCRATCH = "a folder of this run alone (harness/run/scratch.h), handed to a worker"
SYSTEM = "the system's own, or what is installed"
ELSEWHERE = {
    "harness/base/build_info.cc": SYSTEM,
    "harness/casefile/fill_data.cc": INPUT + "; of a run folder, in a folder that recorded_cases.cc has looked at",
    "harness/casefile/yaml_tree.cc": INPUT,
    "harness/cli/cli.cc": "/dev/null",
    "harness/cli/command_baseline.cc": INPUT,
    "harness/cli/command_new.cc": OUTPUT,
    "harness/cli/command_probe.cc": OUTPUT,
    "harness/cli/command_repro.cc": OUTPUT,
    "harness/cli/command_shrink.cc": OUTPUT,
    "harness/cli/command_trace.cc": INPUT,
    "harness/cli/frozen_plan.cc": INPUT,
    "harness/workspace/recorded_cases.cc": INPUT,
    "harness/cli/run_report_files.cc": OUTPUT,
    "harness/conform/adapter_check_runs.cc": SCRATCH,
    "harness/conform/adapter_session.cc": SCRATCH,
    "harness/record/file_bytes.cc": "what opens the files that a user names",
    "harness/record/file_bytes.h": "what opens the files that a user names",
    "harness/record/history_index.cc": "SQLite's own file, opened with SQLITE_OPEN_NOFOLLOW",
    "harness/record/journal_reader.cc": "the run folder itself, and the link runs/latest",
    "harness/run/case_runner.cc": SCRATCH,
    "harness/run/child_process.cc": SYSTEM,
    "harness/run/descendants.cc": SYSTEM,
    "harness/run/registry.cc": SYSTEM,
    "harness/run/scratch.cc": SCRATCH,
}
# Names of files of a run folder, which only its readers and writers need to name.
NAMES = re.compile(r'"(?:journal|cases|classified)\.jsonl"|"(?:tensors|traces|inputs)/|"report\.json"|"junit\.xml"')
NAMED_IN = {HOME, "harness/record/cases.cc", "harness/record/classified.cc", "harness/record/journal_format.cc",
            "harness/record/journal_reader.cc", "harness/record/journal_writer.cc", "harness/cli/command_history.cc",
            "harness/workspace/recorded_cases.cc", "harness/cli/run_selection.cc", "reports/formats.cc"}


def lines_of(root, pattern):
    """file -> its lines that match, comments apart."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".h", ".cc") or not path.is_file():
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                code = NO_FILE.sub("", COMMENT.sub("", line))
                if pattern.search(code):
                    found.setdefault(path.relative_to(root).as_posix(), []).append(f"{number}: {line.strip()}")
    return found


def wrong(root):
    opens = {file: lines for file, lines in lines_of(root, OPENS).items() if file != HOME and file not in ELSEWHERE}
    names = {file: lines for file, lines in lines_of(root, NAMES).items() if file not in NAMED_IN}
    return [f"{file}:{line}" for found in (opens, names) for file, lines in found.items() for line in lines]


class Sources(unittest.TestCase):
    def test_every_file_is_opened_where_it_may_be(self):
        self.assertEqual(wrong(ROOT), [], "open it with harness/record/run_file.h, or say in this test why it is no file of a run folder")
        opened = lines_of(ROOT, OPENS)
        self.assertGreater(len(opened[HOME]), 5)
        self.assertEqual([file for file in ELSEWHERE if file not in opened], [], "an entry that is not needed any more has to go")

    def test_the_one_place_follows_no_link(self):
        """Each of its calls says so, but for the one that opens the run folder itself."""
        text = (ROOT / HOME).read_text(encoding="utf-8")
        calls = re.findall(r"::open(?:at)?\((?:[^()]|\([^()]*\))*\)", text)
        self.assertGreater(len(calls), 6)
        following = [call for call in calls if "O_NOFOLLOW" not in call and "kReading" not in call]
        self.assertEqual(following, ['::open(file.folder.empty() ? "." : file.folder.c_str(), kFolder)'])
        self.assertIn("kReading = O_RDONLY | O_NOFOLLOW | O_NONBLOCK", text)

    def test_each_way_to_open_is_seen(self):
        for line in ('std::ifstream in(run.dir / "x");', 'std::ofstream(dir / "x") << 1;', "int fd = ::open(file.c_str(), O_RDONLY);",
                     'FILE* f = std::fopen(name, "w");', "fs::copy_file(from, to, code);", "std::filesystem::rename(a, b);",
                     "auto text = ReadFileBytes(file, 10);", "sdk::WriteSafetensors(file, tensors);", 'auto x = dir / "journal.jsonl";',
                     'const auto file = dir / "tensors/000001.safetensors";', "std::filesystem::resize_file(file, 3);"):
            with tempfile.TemporaryDirectory() as held:
                root = pathlib.Path(held)
                (root / "harness/judge").mkdir(parents=True)
                (root / "harness/judge/a.cc").write_text(f"void F() {{\n  {line}\n}}\n", encoding="utf-8")
                self.assertEqual(wrong(root), [f"harness/judge/a.cc:2: {line}"], line)


if __name__ == "__main__":
    unittest.main()
