// junit.xml: golden, the structure that both schemas in use demand, hostile text.
#include "reports/junit_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <pugixml.hpp>
#include <set>

#include "reports/console.h"
#include "tests/golden_file.h"
#include "tests/reports/sample.h"

namespace ulpscope {
namespace {

using testing::SampleReport;

pugi::xml_document Parse(const std::string& text) {
  pugi::xml_document document;
  EXPECT_TRUE(document.load_string(text.c_str())) << text;
  return document;
}

std::set<std::string> Attributes(pugi::xml_node node) {
  std::set<std::string> names;
  for (const auto& attribute : node.attributes()) names.insert(attribute.name());
  return names;
}

TEST(Junit, Golden) { testing::ExpectGolden("junit.xml", WriteJunit(SampleReport())); }

// The strict schema (Ant's): no attribute on testsuites, these on each testsuite, children in this order.
TEST(Junit, HasTheStructureThatBothSchemasAllow) {
  const auto document = Parse(WriteJunit(SampleReport()));
  const pugi::xml_node root = document.child("testsuites");
  EXPECT_TRUE(Attributes(root).empty());
  int suites = 0, cases = 0;
  for (const pugi::xml_node suite : root.children()) {
    EXPECT_EQ(std::string(suite.name()), "testsuite");
    EXPECT_EQ(Attributes(suite), (std::set<std::string>{"name", "package", "id", "hostname", "timestamp",
                                                        "tests", "failures", "errors", "skipped", "time"}));
    EXPECT_EQ(suite.attribute("id").as_int(-1), suites);
    EXPECT_STREQ(suite.attribute("timestamp").value(), "2026-11-20T22:53:37");
    std::vector<std::string> order;
    for (const pugi::xml_node child : suite.children()) {
      if (order.empty() || order.back() != child.name()) order.push_back(child.name());
    }
    EXPECT_EQ(order, (std::vector<std::string>{"properties", "testcase", "system-out", "system-err"}));
    int in_suite = 0;
    for (const pugi::xml_node test : suite.children("testcase")) {
      ++in_suite;
      EXPECT_EQ(Attributes(test), (std::set<std::string>{"name", "classname", "time"}));
      for (const pugi::xml_node finding : test.children()) {
        const std::string name = finding.name();
        EXPECT_TRUE(name == "failure" || name == "error" || name == "skipped") << name;
        EXPECT_EQ(Attributes(finding), name == "skipped" ? (std::set<std::string>{"message"})
                                                         : (std::set<std::string>{"message", "type"}));
        if (name == "skipped") continue;
        const std::string text = finding.child_value();
        const std::string last = text.substr(text.rfind('\n') + 1);
        EXPECT_TRUE(last.starts_with("ulpscope run seeds/matmul_out/as_posted -b ")) << last;
      }
    }
    EXPECT_EQ(suite.attribute("tests").as_int(), in_suite);
    cases += in_suite;
    ++suites;
  }
  EXPECT_EQ(suites, 6) << "one a backend, and that of the divergences";
  EXPECT_EQ(cases, 7);
}

TEST(Junit, CountsAndElements) {
  const auto document = Parse(WriteJunit(SampleReport()));
  int failures = 0, errors = 0, skipped = 0;
  for (const pugi::xml_node suite : document.child("testsuites").children()) {
    failures += suite.attribute("failures").as_int();
    errors += suite.attribute("errors").as_int();
    skipped += suite.attribute("skipped").as_int();
  }
  EXPECT_EQ(failures, 1);
  EXPECT_EQ(errors, 1);
  EXPECT_EQ(skipped, 3) << "one refused, and two divergences: they fail nothing";
}

TEST(Junit, EachDivergenceOfClassIsATestCaseThatIsSkippedWithItsSentence) {
  RunReport report = SampleReport();
  report.divergences[1].basis = "likely";
  const auto document = Parse(WriteJunit(report));
  const pugi::xml_node suite = document.child("testsuites").last_child();
  EXPECT_STREQ(suite.attribute("name").value(), "divergences");
  std::vector<std::pair<std::string, std::string>> found;
  for (const pugi::xml_node test : suite.children("testcase")) {
    EXPECT_STREQ(test.attribute("classname").value(), "seeds/matmul_out");
    found.emplace_back(test.attribute("name").value(), test.child("skipped").attribute("message").value());
  }
  const std::vector<std::pair<std::string, std::string>> wanted{
      {"as_posted: outcome, torch-eager | torch-aot-eager", report.divergences[0].sentence},
      {"as_posted: precision of product, torch-aot-eager | openblas",
       "likely: " + report.divergences[1].sentence}};
  EXPECT_EQ(found, wanted) << "that of order only is counted, not listed";
  EXPECT_STREQ(suite.child_value("system-out"), "2 divergences, and 1 of order only\n");
  report.divergences.clear();
  EXPECT_STREQ(Parse(WriteJunit(report)).child("testsuites").last_child().attribute("name").value(), "jax");
}

TEST(Junit, TheTextOfAFailureReadsAsOnTheConsole) {
  const auto document = Parse(WriteJunit(SampleReport()));
  std::map<std::string, pugi::xml_node> suites;
  for (const pugi::xml_node suite : document.child("testsuites").children())
    suites[suite.attribute("name").value()] = suite;
  const std::string text = suites["torch-aot-eager"].child("testcase").child_value("failure");
  const std::string console = WriteConsole(SampleReport(), {.columns = 100});
  const std::string line = text.substr(0, text.find('\n'));
  EXPECT_EQ(line.find("FAIL  seeds/matmul_out/as_posted  torch-aot-eager  changed: "), 0u) << text;
  EXPECT_NE(console.find(line + "\n"), std::string::npos) << console;
  EXPECT_NE(text.find("precision  product and result\n"), std::string::npos) << text;
  EXPECT_NE(text.find("rounds `product` to bfloat16"), std::string::npos) << text;
  EXPECT_EQ(text.find("order "), std::string::npos) << text;
  const std::string output = suites["openblas"].child_value("system-out");
  EXPECT_NE(output.find("seeds/matmul_out/as_posted  product and result\n"), std::string::npos)
      << "also where nothing fails";
}

TEST(Junit, TimesAreDecimalsWhateverAnAdapterReports) {
  RunReport report;
  report.results.push_back(testing::Result("b", Status::kPass, ""));
  report.results[0].durations_ms = {{"run", std::nan("")}, {"warm", -7.0}, {"trace", 1500.0}};
  const auto document = Parse(WriteJunit(report));
  const pugi::xml_node suite = document.child("testsuites").child("testsuite");
  EXPECT_STREQ(suite.child("testcase").attribute("time").value(), "1.500");
}

TEST(Junit, HostileTextIsEscapedAndControlCharactersAreGone) {
  const std::string text = WriteJunit(SampleReport());
  for (const char c : text) EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t');
  EXPECT_EQ(text.find("<b a="), std::string::npos);
  EXPECT_EQ(text.find("\xe2\x80\xae"), std::string::npos) << "no bidirectional override";
  EXPECT_EQ(text.find("&#"), std::string::npos) << "no reference to a character that XML 1.0 forbids";
  const auto document = Parse(text);
  bool found = false;
  for (const pugi::xml_node suite : document.child("testsuites").children()) {
    const std::string message = suite.child("testcase").child("error").attribute("message").value();
    found = found || message.find("<b a=\"1\">&]]>") != std::string::npos;
  }
  EXPECT_TRUE(found) << "the text itself is kept";
}

TEST(Junit, ClassesAreFoldersAndNamesKeepTheirSweep) {
  RunReport report;
  report.results.push_back(testing::Result("b", Status::kPass, ""));
  report.results[0].id = "seeds/matmul_out/as_posted[k=a/b]";
  const auto document = Parse(WriteJunit(report));
  const pugi::xml_node test = document.child("testsuites").child("testsuite").child("testcase");
  EXPECT_STREQ(test.attribute("name").value(), "as_posted[k=a/b]");
  EXPECT_STREQ(test.attribute("classname").value(), "seeds/matmul_out");
}

}  // namespace
}  // namespace ulpscope
