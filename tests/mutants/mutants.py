"""The rules and numbers of the classifier, and which test notices when one is switched off or scaled.

A mutant is one row of a table of rules (harness/judge/rules_*.cc) that does not apply, or one number of harness/judge/rule_numbers.h
times a factor. In a build with ULPSCOPE_MUTANTS the environment variable of that name sets it; every other build has none of it.
"""
import dataclasses
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ROOT  # noqa: E402

JUDGE = ROOT / "harness" / "judge"
SURVIVORS = pathlib.Path(__file__).with_name("survivors")
TABLES = ("rules_ranking.cc", "rules_conclusion.cc", "rules_outcome.cc")
NUMBER = re.compile(r"^ULPSCOPE_RULE_NUMBER\(\w+, (\w+), ", re.MULTILINE)
FACTORS = ("0.5", "2")
# The suites of test_judge that classify values: the quick ones, and one that is asked where none of these notices.
QUICK = ("Likelihood.*:LinesOfAnOp.*:Flushing.*:FunctionsInFloat32.*:Search.*:SignificantBits.*:RuleByRule.*:Doubts.*:Causes.*:Unlisted.*:"
         "Asked.*:AsWritten.*:WholeNumbers.*:SameErrors.*:Sample.*:Local.*:Ranking.*:Outcome.*:Limits.*")
SLOW = "Prove.*"
LIMITS = "Limits.*"  # results just above and just below a number
MOST_SECONDS = 240


@dataclasses.dataclass(frozen=True)
class Rule:
    name: str
    numbers: tuple
    test: str


def strings(text):
    """What a C++ string literal, or several that follow each other, spells."""
    return "".join(re.findall(r'"((?:\\.|[^"\\])*)"', text))


def rules(judge=JUDGE):
    found = []
    for table in TABLES:
        text = (judge / table).read_text(encoding="utf-8")
        for row in re.split(r"\bRule\{", text)[1:]:
            fields = {name: strings(value) for name, value in
                      re.findall(r'\.(name|numbers|test) =((?:\s*"(?:\\.|[^"\\])*")+)', row)}
            found.append(Rule(fields["name"], tuple(fields["numbers"].split()), fields["test"]))
    return found


def numbers(judge=JUDGE):
    return NUMBER.findall((judge / "rule_numbers.h").read_text(encoding="utf-8"))


def mutants(judge=JUDGE):
    return ([f"rule {rule.name}" for rule in rules(judge)] +
            [f"number {number} {factor}" for number in numbers(judge) for factor in FACTORS])


def survivors():
    """Mutant -> the reason for which no test notices it."""
    found = {}
    for line in SURVIVORS.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            mutant, _, reason = line.partition(": ")
            found[mutant] = reason.strip()
    return found


def named_tests(mutant, judge=JUDGE):
    """The tests that the tables name for this rule, or for the rules that use this number, as a filter: they notice mostly, in a second."""
    kind, name = mutant.split()[:2]
    named = {rule.test for rule in rules(judge) if rule.test and (rule.name == name if kind == "rule" else name in rule.numbers)}
    return ":".join(sorted(named) + ([LIMITS] if kind == "number" else []))


def run(binary, mutant, suites):
    """The exit status of test_judge under this mutant, and the test that failed first, died or took too long; "" for none."""
    environment = {**os.environ, "ULPSCOPE_MUTANT": mutant}
    command = [str(binary), f"--gtest_filter={suites}", "--gtest_fail_fast"]
    try:
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
        output, code = ran.stdout, ran.returncode
    except subprocess.TimeoutExpired as late:
        output, code = (late.stdout or b"").decode(), -1
    failed = re.findall(r"\[  FAILED  \] (\S+?)(?:,| \()", output)
    if code < 0 and not failed:
        failed = re.findall(r"\[ RUN      \] (\S+)", output)[-1:]
    return code, failed[0] if failed else ""


def noticed_by(binary, mutant, suites):
    return run(binary, mutant, suites)[1]


def build(folder):
    """test_judge with mutants, in a build folder that may hold everything else already."""
    for command in (["cmake", "--preset", "release", "-B", str(folder), "-DULPSCOPE_MUTANTS=ON"],
                    ["cmake", "--build", str(folder), "--target", "test_judge_mutants"]):
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return pathlib.Path(folder) / "bin" / "test_judge_mutants"
