// What is said of budgets.
#include "reports/budget.h"

#include <gtest/gtest.h>

#include "reports/html_report.h"
#include "reports/markdown_report.h"
#include "tests/reports/sample.h"

namespace ulpscope {
namespace {

TEST(BudgetText, HasTheThreeLargestEntriesAndWhereTheyAre) {
  ErrorBudget budget = testing::SampleReport().budgets.at(0);
  EXPECT_EQ(
      BudgetText(budget),
      "error of result on torch-aot-eager: rms 0.3; 75 % from product (model.norm, llama.py:67), -50 % from "
      "<b>\x1b[2J, 50 % from result, and 1 more");
  budget.entries.pop_back();
  EXPECT_EQ(SharesText(budget),
            "75 % from product (model.norm, llama.py:67), -50 % from <b>\x1b[2J, 25 % from 2 steps with "
            "smaller errors");
  budget.at_stored_values = true;
  budget.together = 0;
  EXPECT_EQ(SharesText(budget),
            "75 % from the steps up to product (model.norm, llama.py:67), -50 % from the steps up to "
            "<b>\x1b[2J, 25 % from "
            "what no "
            "stored value accounts for");
  budget.at_stored_values = false;
  budget.entries = {{.step = "shares", .with = {"logits", "chances"}, .share = 1}};
  EXPECT_EQ(SharesText(budget), "100 % from logits, chances and shares");
  budget.entries.clear();
  EXPECT_EQ(BudgetText(budget), "error of result on torch-aot-eager: rms 0.3");
}

TEST(BudgetText, ARemedyIsNamedWhereItLowersTheError) {
  ErrorBudget budget = testing::SampleReport().budgets.at(0);
  EXPECT_EQ(InFloat32Text(budget), "product in float32 lowers the error of result from 0.3 to 0.12");
  budget.in_float32->before = 0.31;
  EXPECT_EQ(InFloat32Text(budget), "") << "it is not the backend that is made better";
  budget.in_float32->before = 0.3;
  budget.in_float32->lowers = false;
  EXPECT_EQ(InFloat32Text(budget), "");
}

TEST(ShownBudgets, AreThoseOfValuesThatDiffer) {
  RunReport report = testing::SampleReport();
  ASSERT_EQ(ShownBudgets(report).size(), 1u);
  report.budgets[0].left_out = "observing its steps changes it";
  EXPECT_TRUE(ShownBudgets(report).empty());
  report.budgets[0].left_out.clear();
  report.budgets[0].value = "product";
  EXPECT_TRUE(ShownBudgets(report).empty()) << "no ledger is of it";
}

TEST(ShownBudgets, AreATableInMarkdownAndOnThePage) {
  RunReport report = testing::SampleReport();
  report.budgets[0].entries.resize(1);
  const std::string markdown = WriteMarkdown(report), page = WriteHtml(report, {});
  EXPECT_NE(markdown.find(
                "| `torch-aot-eager` | 0.3 | 75 % from product \\(model.norm, llama.py:67\\) | product in "
                "float32 lowers the error of result from 0.3 to 0.12 |\n"),
            std::string::npos)
      << markdown;
  EXPECT_NE(
      page.find("<td>torch-aot-eager<td>0.3<td>75 % from product (model.norm, llama.py:67)<td>product in "
                "float32 lowers the error of result from 0.3 to 0.12"),
      std::string::npos);
  report.budgets.clear();
  EXPECT_EQ(WriteMarkdown(report).find("Which rounding"), std::string::npos);
  EXPECT_EQ(WriteHtml(report, {}).find("Which rounding"), std::string::npos);
}

}  // namespace
}  // namespace ulpscope
