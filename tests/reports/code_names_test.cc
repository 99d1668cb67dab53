// Names in backticks, on the page and in the summary of a CI job.
#include "reports/code_names.h"

#include <gtest/gtest.h>

#include "reports/html_report.h"
#include "reports/markdown_report.h"
#include "tests/reports/sample.h"

namespace ulpscope {
namespace {

using testing::SampleReport;

/// Plain text in parentheses, names in brackets: how a sentence is taken apart.
std::string Apart(std::string_view sentence) {
  return ShowNames(
      sentence, [](std::string_view text) { return "(" + std::string(text) + ")"; },
      [](std::string_view text) { return "[" + std::string(text) + "]"; });
}

TEST(CodeNames, WhatStandsInBackticksIsAName) {
  EXPECT_EQ(Apart("a rounds `y` to bfloat16: `y[0,3]` is 2."),
            "(a rounds )[y]( to bfloat16: )[y[0,3]]( is 2.)");
  EXPECT_EQ(Apart("`x * (1 / s)`"), "[x * (1 / s)]");
  EXPECT_EQ(Apart("no name"), "(no name)");
  EXPECT_EQ(Apart(""), "");
}

TEST(CodeNames, ABacktickOfAMessageIsText) {
  EXPECT_EQ(Apart("a raises E (\"expected `x'\"); b returns `y`."),
            "(a raises E (\"expected `x'\"); b returns )[y](.)");
  EXPECT_EQ(Apart("one ` alone"), "(one ` alone)");
  EXPECT_EQ(Apart("none: ``, `y`"), "(none: ``, )[y]");
  EXPECT_EQ(Apart("``x`` and `y`"), "(``x`` and )[y]");
  EXPECT_EQ(Apart("`a``b`"), "(`a``b`)");
  EXPECT_EQ(Apart("```"), "(```)");
}

TEST(CodeNames, APageShowsThemAsCode) {
  EXPECT_EQ(HtmlSentence("a rounds `y<z>` & more"), "a rounds <code>y&lt;z&gt;</code> &amp; more");
  EXPECT_EQ(HtmlSentence("`</code><script>`"), "<code>&lt;/code&gt;&lt;script&gt;</code>");
  RunReport report = SampleReport();
  report.divergences[1].sentence = "a rounds `product` to bfloat16; b does not.";
  report.divergences[1].summary = "computes a value as `x * (1 / s)`";
  const std::string page = WriteHtml(report, {});
  EXPECT_NE(page.find("a rounds <code>product</code> to bfloat16"), std::string::npos);
  EXPECT_NE(page.find("<h3>computes a value as <code>x * (1 / s)</code> <span"), std::string::npos);
}

TEST(CodeNames, MarkdownShowsThemAsCode) {
  EXPECT_EQ(MarkdownSentence("a_b rounds `x_y`.", MarkdownPlace::kText), "a\\_b rounds `x_y`.");
  EXPECT_EQ(MarkdownSentence("`x|y` * 2", MarkdownPlace::kTable), "`x\\|y` \\* 2");
  EXPECT_EQ(MarkdownSentence("1. `x`", MarkdownPlace::kText), "1\\. `x`");
  RunReport report = SampleReport();
  report.divergences[1].sentence = "a rounds `out_sum` to bfloat16; b does not.";
  EXPECT_NE(WriteMarkdown(report).find("a rounds `out_sum` to bfloat16; b does not."), std::string::npos);
}

}  // namespace
}  // namespace ulpscope
