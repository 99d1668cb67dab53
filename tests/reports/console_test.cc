// The console report: golden, width, hostile text, verbosity.
#include "reports/console.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "reports/text_safe.h"
#include "tests/golden_file.h"
#include "tests/reports/sample.h"

namespace ulpscope {
namespace {

using testing::SampleReport;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Console, Golden) { testing::ExpectGolden("console.txt", WriteConsole(SampleReport(), {})); }

TEST(Console, NoControlCharacterReachesTheTerminal) {
  const std::string plain = WriteConsole(SampleReport(), {});
  const auto control = std::count_if(
      plain.begin(), plain.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n'; });
  EXPECT_EQ(control, 0);
  EXPECT_EQ(plain.find("\xe2\x80\xae"), std::string::npos) << "a right-to-left override";
  EXPECT_NE(plain.find("]0;title"), std::string::npos) << "the text itself is kept";
  const std::string colored = WriteConsole(SampleReport(), {.color = ConsoleOptions::Color::kAlways});
  EXPECT_NE(colored.find("\x1b[31m"), std::string::npos);
  EXPECT_EQ(colored.find("\x1b[2J"), std::string::npos) << "only colours of our own";
}

TEST(Console, NarrowTerminalsGetTheColumnsInBlocks) {
  for (const size_t columns : {60, 80, 100, 120}) {
    const auto lines = Lines(WriteConsole(SampleReport(), {.columns = columns}));
    for (const auto& line : lines) {
      const bool one_word = line.find(' ', line.find_first_not_of(' ')) == std::string::npos;
      const bool repro = line.find("    ulpscope run") == 0;
      EXPECT_TRUE(DisplayWidth(line) <= columns || one_word || repro) << columns << ": " << line;
    }
    const auto heads = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.find(" torch-eager") != std::string::npos && line.find("raises") == std::string::npos;
    });
    EXPECT_GE(heads, 1) << columns;
  }
}

TEST(Console, DivergencesAreMarkedAndOrderIsOnlyCounted) {
  const std::string text = WriteConsole(SampleReport(), {});
  EXPECT_NE(text.find("raises "), std::string::npos);
  EXPECT_EQ(text.find("raises A"), std::string::npos) << "what refused has no bits";
  EXPECT_NE(text.find("f32>bf16>f32~ A FAIL"), std::string::npos);
  EXPECT_NE(text.find("f32 B"), std::string::npos);
  EXPECT_NE(text.find("2 divergences, and 1 of order only (-v lists them)"), std::string::npos);
  const std::string verbose =
      WriteConsole(SampleReport(), {.verbosity = ConsoleOptions::Verbosity::kVerbose});
  EXPECT_NE(verbose.find("3 divergences\n"), std::string::npos);
}

TEST(Console, OrderAndCastsMarkNothingInOneClass) {
  RunReport report = SampleReport();
  const ValueResult* first = nullptr;
  for (CaseResult& result : report.results) {
    for (auto& [name, value] : result.values) {
      if (first == nullptr) first = &value;
      value.classification = first->classification;
      value.dtype = first->dtype;
    }
  }
  for (const DivergenceKind kind : {DivergenceKind::kOrder, DivergenceKind::kCasts}) {
    report.divergences = {report.divergences.back()};
    report.divergences[0].kind = kind;
    const std::string text = WriteConsole(report, {});
    for (const char* mark : {" A\n", " A  ", " B\n", " B  "})
      EXPECT_EQ(text.find(mark), std::string::npos) << text;
    EXPECT_NE(text.find("0 divergences, and 1 of " + std::string(Name(kind)) + " only"), std::string::npos);
  }
}

TEST(Console, BitsOfSeveralClassesHaveLettersThoughNoFindingIsOfThem) {
  RunReport report = SampleReport();
  const std::string with = WriteConsole(report, {});
  report.divergences.clear();
  const std::string without = WriteConsole(report, {});
  for (const char* mark : {" A  ", " B"}) {
    EXPECT_NE(with.find(mark), std::string::npos) << with;
    EXPECT_NE(without.find(mark), std::string::npos) << without;
  }
}

TEST(Console, FindingsComeFirstInThreeLinesEach) {
  RunReport report = SampleReport();
  for (int i = 0; i < 40; ++i)
    report.divergences[1].sentence += " A further reason, " + std::to_string(i) + ".";
  const std::string text = WriteConsole(report, {});
  EXPECT_LT(text.find("2 divergences"), text.find("torch-eager  torch-aot-eager"));
  const auto lines = Lines(text);
  const auto head = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("2  precision  seeds/matmul_out/as_posted  product and result") != line.npos;
  });
  ASSERT_NE(head, lines.end()) << text;
  EXPECT_TRUE((head + 2)->ends_with(" ...")) << *(head + 2);
  EXPECT_EQ((head + 3)->find("       "), std::string::npos) << *(head + 3);
  const std::string whole = WriteConsole(report, {.verbosity = ConsoleOptions::Verbosity::kVerbose});
  EXPECT_NE(whole.find("39."), std::string::npos);
}

/// One case on three backends that agree in one value and not in the other.
RunReport Agreeing() {
  RunReport report;
  for (const char* backend : {"a", "b", "c"}) {
    CaseResult result = testing::Result(backend, Status::kPass, "");
    result.outcome.kind = OutcomeKind::kCompleted;
    result.value_order = {"same", "other"};
    result.values["same"] = testing::Value({testing::Model("float32", "none")});
    result.values["same"].bits = "0123456789abcdef";
    result.values["other"] =
        testing::Value({testing::Model(*backend == 'c' ? "bfloat16" : "float32", "none")});
    report.results.push_back(result);
  }
  return report;
}

TEST(Console, RowsInWhichAllAgreeFoldIntoOneLine) {
  RunReport report = Agreeing();
  const std::string text = WriteConsole(report, {});
  EXPECT_NE(text.find("the same on all backends, bit for bit, in 1 row (-v unfolds it)\n  f32  "
                      "seeds/matmul_out/as_posted same\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("\n  same"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  other"), std::string::npos) << text;
  const std::string whole = WriteConsole(report, {.verbosity = ConsoleOptions::Verbosity::kVerbose});
  EXPECT_NE(whole.find("\n  same"), std::string::npos) << whole;
  EXPECT_EQ(whole.find("on all backends"), std::string::npos);
  // One class says nothing of bits: those of one backend are others, or are not known.
  for (const char* bits : {"fedcba9876543210", ""}) {
    report.results[1].values["same"].bits = bits;
    EXPECT_NE(WriteConsole(report, {}).find("one class on all backends, bits not the same, in 1 row"),
              std::string::npos)
        << bits;
  }
  report.results.resize(1);
  EXPECT_NE(WriteConsole(report, {}).find("\n  same"), std::string::npos) << "one backend agrees with nobody";
}

TEST(Console, AStatusStandsInTheRowsThatItIsAbout) {
  RunReport report = Agreeing();
  report.results[0].status = Status::kFail;
  report.results[0].reason = "other is not as it should be";
  const auto row = [&](const char* label) {
    for (const std::string& line : Lines(WriteConsole(report, {}))) {
      if (line.starts_with(std::string("  ") + label)) return line;
    }
    return std::string();
  };
  EXPECT_NE(row("same").find("FAIL"), std::string::npos) << "of the whole result: in its first row";
  EXPECT_EQ(row("other").find("FAIL"), std::string::npos);
  report.results[0].status_values = {"other"};
  EXPECT_EQ(row("same").find("FAIL"), std::string::npos);
  EXPECT_NE(row("other").find("FAIL"), std::string::npos);
  report.results[0].status_values = {"gone"};
  EXPECT_NE(row("same").find("FAIL"), std::string::npos) << "a value without a row";
}

TEST(Console, EqualLettersAreEqualBits) {
  RunReport report = Agreeing();
  Divergence divergence;
  divergence.case_id = report.results[0].id;
  divergence.kind = DivergenceKind::kPrecision;
  divergence.value = "other";
  divergence.backends = {{"a", "b"}, {"c"}};
  divergence.sentence = "a and b do not; c does.";
  report.divergences = {divergence};
  const auto row = [&](const std::vector<const char*>& bits) {
    for (size_t i = 0; i < bits.size(); ++i) report.results[i].values["other"].bits = bits[i];
    const std::string text = WriteConsole(report, {});
    const size_t at = text.find("\n  other");
    return text.substr(at + 1, text.find('\n', at + 1) - at - 1);
  };
  EXPECT_EQ(row({"01", "01", "02"}), "  other  f32 A  f32 A  bf16>f32 B");
  EXPECT_EQ(row({"01", "03", "02"}), "  other  f32 A  f32 B  bf16>f32 C")
      << "one side of a finding, two results";
}

TEST(Console, TheFooterSaysWhatWasJudgedAgainstWhat) {
  RunReport report = Agreeing();
  report.results[0].demanded = true;
  for (auto& [name, value] : report.results[1].values) value.classification.checked = 0;
  CaseResult raised = testing::Result("d", Status::kPass, "");
  raised.outcome = {.kind = OutcomeKind::kRaised, .error_class = "E", .text = "shapes do not fit"};
  report.results.push_back(raised);
  const std::string text = WriteConsole(report, {});
  EXPECT_NE(text.find("1 judged against a contract or an expectation, 1 observed only, 1 without a "
                      "reference, 1 raised\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("seeds/matmul_out/as_posted: E shapes do not fit (d)"), std::string::npos) << text;
}

TEST(Console, QuietHasFailuresAndCountsOnly) {
  const auto lines =
      Lines(WriteConsole(SampleReport(), {.columns = 500, .verbosity = ConsoleOptions::Verbosity::kQuiet}));
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[0],
            "FAIL  seeds/matmul_out/as_posted  torch-aot-eager  changed: expected product mid none, observed "
            "bfloat16");
  EXPECT_EQ(lines[1], "    ulpscope run seeds/matmul_out/as_posted -b torch-aot-eager --seed 0");
  EXPECT_EQ(lines[5], "2 PASS  1 FAIL  1 SKIP  1 CRASH   (896 elements checked against exact values)");
}

TEST(Console, EveryFailingLineEndsInItsReproLine) {
  const auto lines = Lines(WriteConsole(SampleReport(), {.columns = 500}));
  int failing = 0;
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    if (!lines[i].starts_with("FAIL") && !lines[i].starts_with("CRASH")) continue;
    ++failing;
    EXPECT_TRUE(lines[i + 1].starts_with("    ulpscope run seeds/matmul_out/as_posted -b ")) << lines[i + 1];
  }
  EXPECT_EQ(failing, 2);
}

TEST(Console, NothingRan) { EXPECT_NE(WriteConsole(RunReport{}, {}).find("nothing ran"), std::string::npos); }

TEST(Console, LongBackendNamesAreNumberedAndSpelledOut) {
  RunReport report = SampleReport();
  const std::string longest = "emulated:model=in=as_is;prod=exact;acc=float32;mid=bfloat16;out=float32_rne";
  report.results[2].backend = longest;
  const std::string text = WriteConsole(report, {});
  EXPECT_NE(text.find("emulated:#1 = " + longest), std::string::npos);
}

TEST(Wrap, WordsAndIndentation) {
  EXPECT_EQ(Wrap("ab ", "one two three", 10), "ab one two\n   three\n");
  EXPECT_EQ(Wrap("", "unbreakable", 4), "unbreakable\n");
  EXPECT_EQ(Wrap("h ", "", 10), "h\n");
}

TEST(TextSafe, Sinks) {
  EXPECT_EQ(TerminalSafe("a\nb\tc\rd\x1b[0m\x7f\xc2\x9b"
                         "e\xffz\xc3\xa9"),
            "a b c d?[0m??e?z\xc3\xa9");
  EXPECT_EQ(TerminalSafe("\xed\xa0\x80 \xc0\xaf \xf4\x90\x80\x80"), "??? ?? ????")
      << "surrogate, overlong, above U+10FFFF";
  EXPECT_EQ(XmlSafe("a\x01\n\t\xef\xbf\xbe"), "a\xef\xbf\xbd\n\t\xef\xbf\xbd");
  EXPECT_EQ(Utf8Safe("\x01\xff"), "\x01\xef\xbf\xbd");
}

}  // namespace
}  // namespace ulpscope
