// CSV, Markdown and annotations: what they say, and that text of strangers stays text in each of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "reports/annotations.h"
#include "reports/csv_report.h"
#include "reports/formats.h"
#include "reports/markdown_report.h"
#include "tests/golden_file.h"
#include "tests/reports/sample.h"

namespace ulpscope {
namespace {

using testing::SampleReport;
using Table = std::vector<std::vector<std::string>>;

/// RFC 4180, read back.
Table ParseCsv(const std::string& text) {
  Table rows(1);
  std::string field;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      field += text[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == ',' || c == '\n')) {
      rows.back().push_back(std::move(field));
      field.clear();
      if (c == '\n') rows.emplace_back();
    } else {
      field += c;
    }
  }
  rows.pop_back();
  return rows;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Csv, HasOneRowForEachValue) {
  const Table table = ParseCsv(WriteCsv(SampleReport()));
  ASSERT_EQ(table.size(), 8u) << "a head, two values on two backends, three results without values";
  for (const auto& row : table) EXPECT_EQ(row.size(), table[0].size()) << row[1];
  const auto column = [&](const std::string& name) {
    return static_cast<size_t>(std::find(table[0].begin(), table[0].end(), name) - table[0].begin());
  };
  const auto& product = table[2];
  EXPECT_EQ(product[column("backend")], "torch-aot-eager");
  EXPECT_EQ(product[column("value")], "product");
  EXPECT_EQ(product[column("shape")], "32x7x1x1");
  EXPECT_EQ(product[column("class")], "f32>bf16>f32~");
  EXPECT_EQ(product[column("max_ulp")], "inf");
  EXPECT_EQ(product[column("parts")], "order outcome precision");
  EXPECT_EQ(table[1][column("value")], "") << "torch-eager raised";
  EXPECT_EQ(table[1][column("outcome")], "raised");
  EXPECT_EQ(table[1][column("parts")], "outcome");
}

TEST(Csv, NoFieldOfAStrangerIsAFormulaOrEndsItsCell) {
  for (const std::string text : {"=1+1", "+1", "-1", "@SUM(A1)", "=cmd|' /C calc'!A0",
                                 "\xef\xbc\x9d"
                                 "1",
                                 "\t=1", "\r\n=1", "a\"b", "a,b", "a\nb", ";=1", "\x1b[31m", "\xff"}) {
    RunReport report = SampleReport();
    report.results[0].reason = text;
    report.results[0].id = text;
    report.results[0].backend = text;
    const Table table = ParseCsv(WriteCsv(report));
    ASSERT_EQ(table.size(), 8u) << text;
    for (const auto& row : table) {
      ASSERT_EQ(row.size(), table[0].size()) << text;
      for (const auto& field : row) {
        EXPECT_EQ(std::string("=+-@\t\r\n").find(field.empty() ? 'x' : field[0]), std::string::npos) << field;
        EXPECT_NE(field.rfind("\xef\xbc\x9d", 0), 0u) << field;
        for (const char c : field) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << text;
      }
    }
  }
  EXPECT_EQ(CsvField("=f32"), "'=f32");
  EXPECT_EQ(CsvField("f32>bf16"), "f32>bf16");
}

TEST(Markdown, SaysFindingsThenFailuresThenTheRowsThatPart) {
  const std::string text = WriteMarkdown(SampleReport());
  const size_t finding = text.find("2. **precision** `seeds/matmul_out/as_posted` product and result");
  const size_t failed = text.find("| FAIL | `seeds/matmul_out/as_posted` | `torch-aot-eager` |");
  const size_t matrix = text.find("| `seeds/matmul_out/as_posted` | `product` | `raises` | `f32>bf16>f32~");
  EXPECT_LT(finding, failed) << text;
  EXPECT_LT(failed, matrix) << text;
  EXPECT_NE(matrix, std::string::npos) << text;
  EXPECT_NE(text.find("## ulpscope: 2 divergences, and 1 of order only\n"), std::string::npos) << text;
  EXPECT_NE(text.find("`ulpscope run seeds/matmul_out/as_posted -b torch-aot-eager --seed 0`"),
            std::string::npos);
}

TEST(Markdown, ListsTenFindingsAndSaysHowManyMore) {
  RunReport report = SampleReport();
  report.divergences.assign(23, report.divergences[1]);
  const std::string text = WriteMarkdown(report);
  EXPECT_NE(text.find("\n10. **"), std::string::npos);
  EXPECT_EQ(text.find("\n11. **"), std::string::npos);
  EXPECT_NE(text.find("\nand 13 more\n"), std::string::npos);
}

/// What is outside code spans and not behind a backslash: what Markdown would read.
std::string Live(const std::string& text) {
  std::string live;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '`') {
      size_t fence = 1;
      while (text[i + fence] == '`') ++fence;
      i = text.find(std::string(fence, '`'), i + fence) + fence - 1;
    } else {
      live += text[i];
    }
  }
  return live;
}

TEST(Markdown, TextOfStrangersIsNoMarkup) {
  const std::string evil =
      "<img src=x onerror=alert(1)>[a](javascript:1)![b](http://c)|`x` ``` **b** @all https://e.example "
      "www.e.example #1";
  RunReport report = SampleReport();
  for (auto& result : report.results) {
    result.reason = evil;
    result.backend += evil;
    result.status = Status::kFail;
  }
  report.divergences[0].sentence = evil;
  report.divergences[0].case_id = evil;
  report.divergences[0].value = evil;
  report.versions["x"]["y"] = evil;
  const std::string text = WriteMarkdown(report);
  const std::string live = Live(text);
  for (const char* markup : {"<img", "](", "![", "@all", "://", "www.", "#1", "```"})
    EXPECT_EQ(live.find(markup), std::string::npos) << markup << "\n" << live;
  for (const auto& line : LinesOf(text)) {
    if (!line.starts_with("| FAIL")) continue;
    size_t bars = 0;
    for (size_t i = 0; i < line.size(); ++i) bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
    EXPECT_EQ(bars, 6u) << "five cells: " << line;
  }
  EXPECT_EQ(MarkdownCode("a`b|c", MarkdownPlace::kTable), "``a`b\\|c``");
  EXPECT_EQ(MarkdownCode("a`b|c", MarkdownPlace::kText), "``a`b|c``");
  EXPECT_EQ(MarkdownText("1. x_y"), "1\\. x\\_y");
  EXPECT_EQ(MarkdownText("- x"), "\\- x");
}

TEST(Annotations, AreTenLinesAtMostFailuresFirst) {
  RunReport report = SampleReport();
  const std::vector<std::string> few = LinesOf(WriteAnnotations(report));
  ASSERT_EQ(few.size(), 4u);
  EXPECT_EQ(few[0].find("::error title=FAIL seeds/matmul_out/as_posted::torch-aot-eager%3A"),
            std::string::npos)
      << "a colon is no code in a message";
  EXPECT_EQ(few[0].find("::error title=FAIL seeds/matmul_out/as_posted::torch-aot-eager: changed"), 0u)
      << few[0];
  EXPECT_EQ(few[3].find("::warning title=precision seeds/matmul_out/as_posted  product and result::"), 0u);
  report.divergences.assign(40, report.divergences[1]);
  const std::vector<std::string> many = LinesOf(WriteAnnotations(report));
  ASSERT_EQ(many.size(), 10u);
  EXPECT_EQ(many[9], "::notice title=ulpscope::and 0 more failures, 33 more findings");
}

TEST(Annotations, StandAtTheStepOfTheirValueElseAtTheCase) {
  RunReport report = SampleReport();
  const std::string id = report.results[0].id;
  report.places[id] = {.at = {.file = "cases/a,b.yaml", .line = 3, .column = 5}, .lines = {{"product", 12}}};
  for (CaseResult& result : report.results) result.status_values = {};
  std::vector<std::string> lines = LinesOf(WriteAnnotations(report));
  EXPECT_TRUE(lines[0].starts_with("::error file=cases/a%2Cb.yaml,line=3,title=FAIL ")) << lines[0];
  EXPECT_TRUE(lines[3].starts_with("::warning file=cases/a%2Cb.yaml,line=12,title=precision ")) << lines[3];
  for (CaseResult& result : report.results) result.status_values = {"product"};
  lines = LinesOf(WriteAnnotations(report));
  EXPECT_TRUE(lines[0].starts_with("::error file=cases/a%2Cb.yaml,line=12,title=FAIL ")) << lines[0];
}

TEST(Annotations, TextOfStrangersStartsNoCommand) {
  RunReport report = SampleReport();
  report.results[1].reason = "a\n::add-mask::b\r::error::c %0A::d";
  report.results[1].id = "x,file=/etc/passwd::y%0A";
  const std::vector<std::string> lines = LinesOf(WriteAnnotations(report));
  ASSERT_EQ(lines.size(), 4u);
  for (const auto& line : lines)
    EXPECT_TRUE(line.starts_with("::error ") || line.starts_with("::warning ")) << line;
  EXPECT_EQ(lines[0],
            "::error title=FAIL x%2Cfile=/etc/passwd%3A%3Ay%250A::torch-aot-eager: a ::add-mask::b "
            "::error::c %250A::d");
}

TEST(Formats, EachHasANameOfItsOwnAndWritesARunWithoutAnything) {
  std::set<std::string_view> names, files;
  for (const ReportFormat& format : ReportFormats()) {
    EXPECT_TRUE(names.insert(format.name).second) << format.name;
    if (!format.file.empty()) {
      EXPECT_TRUE(files.insert(format.file).second) << format.file;
    }
    EXPECT_FALSE(format.about.empty()) << format.name;
    EXPECT_EQ(format.write(SampleReport(), {}), format.write(SampleReport(), {})) << format.name;
    format.write(RunReport{}, {});
  }
  EXPECT_EQ(files, (std::set<std::string_view>{"report.json", "junit.xml"}));
}

}  // namespace
}  // namespace ulpscope
