// The page: what it holds, that text of strangers stays text, and that ten thousand cells fit.
#include "reports/html_report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "reports/findings.h"
#include "reports/html_assets.h"
#include "tests/reports/sample.h"

namespace ulpscope {
namespace {

using testing::SampleReport;
using PageData = nlohmann::json;

constexpr std::string_view kDataTag = "<script type=application/json id=data>";

PageData DataOf(const std::string& page) {
  const size_t begin = page.find(kDataTag) + kDataTag.size();
  return PageData::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

/// What is neither the style, the script nor the data.
std::string MarkupOf(std::string page) {
  const size_t begin = page.find(kDataTag);
  page.erase(begin, page.find("</script>", begin) - begin);
  for (const std::string_view part : {kPageStyle, kPageScript}) page.erase(page.find(part), part.size());
  return page;
}

size_t CountOf(const std::string& text, std::string_view what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

std::string TextAt(const PageData& data, const PageData& place) { return data["texts"][place.get<size_t>()]; }

/// One case, two tensors, a trace with a conversion, and errors.
ReportDetails SampleDetails() {
  ReportDetails details;
  details.of_case = [](const std::string&) {
    return Explanation{.about = "a product",
                       .source = {},
                       .tensors = "x bfloat16[2]",
                       .program = {"{op: matmul, of: [x, y], as: product}"},
                       .trace = {}};
  };
  details.of_cell = [](const CaseResult& result) {
    CellDetails cell;
    TraceNode node;
    node.op = "aten::matmul </script><b>";
    node.stage = "dispatch";
    node.us = 12.5;
    cell.trace = {node};
    if (!result.values.empty())
      cell.errors["product"] = {.ulp = {0, 0.5, -0.5, 1e9, std::nan("")}, .elements = 224};
    return cell;
  };
  return details;
}

TEST(Html, CellsThatAreNotGreenOrPartOpenWhatTheyAreDerivedFrom) {
  const std::string page = WriteHtml(SampleReport(), SampleDetails());
  const PageData data = DataOf(page);
  ASSERT_EQ(data["cells"].size(), 4u)
      << "two failing, two that part; the refusal of jax is told below the matrix";
  std::set<std::string> backends;
  for (const auto& cell : data["cells"]) backends.insert(TextAt(data, cell[1]));
  EXPECT_EQ(backends, (std::set<std::string>{"torch-aot-eager", "custom", "torch-eager", "openblas"}));
  const PageData& aot = data["cells"][0];
  EXPECT_EQ(TextAt(data, data["cases"][aot[0].get<size_t>()][0]), "seeds/matmul_out/as_posted");
  EXPECT_EQ(TextAt(data, aot[1]), "torch-aot-eager") << "what fails comes first";
  EXPECT_EQ(TextAt(data, aot[2]), "FAIL");
  EXPECT_EQ(TextAt(data, aot[5]), "ulpscope run \xee\x80\x80 -b \xee\x80\x81 --seed 0");
  ASSERT_EQ(aot[6].size(), 2u);
  EXPECT_EQ(TextAt(data, aot[6][0][2]), "f32>bf16>f32~");
  EXPECT_EQ(TextAt(data, aot[7][0]),
            "product[0,3,0,0] = 2.328125 on torch-aot-eager; the exact value is 2.3300781");
  EXPECT_EQ(TextAt(data, aot[8][0][2]), "1") << "threads, effective";
  EXPECT_EQ(aot[9].size(), 3u) << "that of order too";
  EXPECT_EQ(TextAt(data, data["finds"][aot[9][1].get<size_t>()][3]), "product");
  EXPECT_EQ(TextAt(data, aot[11][1]).find("us"), std::string::npos) << "no times: " << aot[11];
  // Of five elements: exact, half an ulp up and down, off the scale, not finite.
  EXPECT_EQ(aot[12][0][3], "ggiiee__~~");
  EXPECT_EQ(TextAt(data, aot[12][0][4]), "1e+09") << "as it is: the codes end at a quarter of a million";
  for (size_t i = 0; i < data["cells"].size(); ++i)
    EXPECT_GE(CountOf(page, fmt::format("<a href=#c{}>", i)), 1u) << i;
  EXPECT_EQ(CountOf(page, "<a href=#c4>"), 0u);
}

TEST(Html, TheSameTextStandsOnce) {
  const PageData data = DataOf(WriteHtml(SampleReport(), SampleDetails()));
  std::set<std::string> texts;
  for (const auto& text : data["texts"]) EXPECT_TRUE(texts.insert(text).second) << text;
}

TEST(Html, FindingsComeFirstGroupedByCause) {
  RunReport report = SampleReport();
  Divergence again = report.divergences[1];
  again.case_id = "other/case";
  again.value = "y";
  again.backends = {{"jax", "torch-eager"}, {"openblas"}};
  again.sentence = "jax and torch-eager round `y` to bfloat16 before the float32 buffer; openblas does not.";
  report.divergences.push_back(again);
  const std::string page = WriteHtml(report, {});
  const size_t cause = page.find(
      "<h3>rounds a value to bfloat16 before the float32 buffer <span class=kind>precision, 2 findings "
      "in 2 cases");
  ASSERT_NE(cause, std::string::npos) << page.substr(0, 3000);
  EXPECT_LT(cause, page.find("<h3>raises RuntimeError"));
  EXPECT_LT(cause, page.find("<h2 id=failed>"));
  EXPECT_LT(page.find("<h2 id=failed>"), page.find(" id=matrix>"));
}

TEST(Html, TextOfStrangersIsText) {
  const std::string evil =
      "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\xe2\x80\xae\x1b[2J\xff{{}}<!--";
  RunReport report = SampleReport();
  for (auto& result : report.results) {
    result.id += evil;
    result.backend += evil;
    result.reason = result.outcome.text = evil;
    result.notes = {evil};
    result.knobs_asked[evil] = evil;
    result.repro = evil;
    for (auto& [name, value] : result.values) value.classification.label = evil;
  }
  for (auto& divergence : report.divergences) {
    divergence.case_id += evil;
    for (auto& group : divergence.backends) {
      for (auto& backend : group) backend += evil;
    }
    divergence.sentence = divergence.value = evil;
  }
  report.versions[evil][evil] = evil;
  report.not_installed[evil] = evil;
  ReportDetails details = SampleDetails();
  details.of_case = [&](const std::string&) {
    return Explanation{.about = evil, .source = evil, .tensors = evil, .program = {evil}, .trace = {}};
  };
  const std::string page = WriteHtml(report, details);
  EXPECT_EQ(CountOf(page, "<script"), 2u) << "the data and the script";
  EXPECT_EQ(CountOf(page, "</script>"), 2u);
  const std::string markup = MarkupOf(page);
  EXPECT_EQ(markup.find("<img"), std::string::npos);
  EXPECT_EQ(markup.find("<!--"), std::string::npos);
  EXPECT_EQ(markup.find('\x1b'), std::string::npos);
  EXPECT_EQ(page.find("\xe2\x80\xae"), std::string::npos);
  EXPECT_NE(markup.find("&lt;img src=x onerror=alert(2)&gt;&quot;&#39;&amp;"), std::string::npos)
      << "and it is shown";
  const PageData data = DataOf(page);
  EXPECT_NE(TextAt(data, data["cells"][0][3]).find("<img src=x"), std::string::npos);
}

TEST(Html, FetchesNothing) {
  const std::string page = WriteHtml(SampleReport(), SampleDetails());
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  for (const char* door :
       {" src=", "url(", "@import", "<link", "fetch(", "XMLHttpRequest", "innerHTML", "eval("})
    EXPECT_EQ(page.find(door), std::string::npos) << door;
  EXPECT_EQ(std::string(kPageScript).find("http://"), std::string(kPageScript).rfind("http://"))
      << "the name of SVG alone";
}

/// 1000 cases on ten backends; in three of ten cases half of the backends part from the others, each with a trace and errors.
RunReport BigReport() {
  const RunReport sample = SampleReport();
  RunReport report;
  report.versions = sample.versions;
  for (int i = 0; i < 1000; ++i) {
    const std::string id =
        fmt::format("folder_{}/file_{}/case_{}[dtype=bfloat16,k={}]", i / 100, i / 10, i, 64 + i);
    Divergence divergence = sample.divergences[1];
    divergence.case_id = id;
    divergence.backends.assign(2, {});
    divergence.sentence = fmt::format(
        "backends round `product` to bfloat16 before the float32 buffer; others do not: `product[0,{}]` is "
        "{} on jax and 2.5 on openblas.",
        i, i);
    for (int b = 0; b < 10; ++b) {
      CaseResult result = i % 10 < 3 && b < 5 ? sample.results[1] : sample.results[2];
      result.status = Status::kPass;
      result.reason.clear();
      result.id = id;
      result.backend = fmt::format("torch-inductor:threads={}", b);
      result.repro = "ulpscope run '" + id + "' -b " + result.backend + " --seed 0";
      for (auto& [name, value] : result.values) value.classification.max_ulp = i + b * 0.1;
      divergence.backends[b < 5 ? 0 : 1].push_back(result.backend);
      report.results.push_back(std::move(result));
    }
    if (i % 10 < 3) report.divergences.push_back(std::move(divergence));
  }
  return report;
}

ReportDetails BigDetails() {
  ReportDetails details = SampleDetails();
  details.of_cell = [](const CaseResult& result) {
    CellDetails cell;
    const auto seed = static_cast<int64_t>(std::hash<std::string>()(result.id + result.backend) % 997);
    for (int64_t i = 0; i < 40; ++i) {
      TraceNode node;
      node.id = i;
      node.op = fmt::format("aten::op_{}", i % 7);
      node.stage = "dispatch";
      node.inputs = {{.dtype = "bfloat16", .shape = {seed, i}}};
      cell.trace.push_back(std::move(node));
    }
    ErrorSample& errors = cell.errors["product"];
    errors.elements = 4096;
    for (int64_t i = 0; i < 1024; ++i) errors.ulp.push_back(std::sin(static_cast<double>(i * seed)) * 1000);
    return cell;
  };
  return details;
}

// ULPSCOPE_WRITE_PAGE names a file for tests/browser.
TEST(Html, TenThousandCellsFitTwoMebibytes) {
  const std::string page = WriteHtml(BigReport(), BigDetails());
  if (const char* file = std::getenv("ULPSCOPE_WRITE_PAGE")) std::ofstream(file, std::ios::binary) << page;
  EXPECT_LE(page.size(), size_t{2} << 20);
  EXPECT_GT(page.size(), size_t{3} << 19) << "and what fits is there";
  EXPECT_EQ(CountOf(page, "<td"), 23000u)
      << "two values of each of 10,000 results, and an observation of some";
  const PageData data = DataOf(page);
  const size_t cells = data["cells"].size();
  EXPECT_GT(cells, 1000u);
  std::set<std::string> links;
  const std::regex link("href=#c([0-9]+)>");
  for (std::sregex_iterator at(page.begin(), page.end(), link), end; at != end; ++at) links.insert((*at)[1]);
  EXPECT_EQ(links.size(), cells) << "every link opens something, and everything has a link";
  std::smatch left;
  const bool told =
      std::regex_search(page, left, std::regex("<p class=soft>([0-9]+) cells? more would open"));
  EXPECT_EQ(cells + (told ? std::stoul(left[1]) : 0), 3000u) << "what does not fit is told";
}

}  // namespace
}  // namespace ulpscope
