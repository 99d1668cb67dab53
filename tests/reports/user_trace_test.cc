// Chrome traces: those that are written here, and those that somebody else recorded.
#include "reports/user_trace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/chrome_trace.h"
#include "tests/reports/sample.h"

namespace ulpscope {
namespace {

std::string Op(const std::string& name, double ts, double dur, const std::string& args,
               const std::string& category = "cpu_op") {
  return fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":1,"tid":2,"ts":{},"dur":{},"args":{{{}}}}})",
                     category, name, ts, dur, args);
}

std::string Copy(const std::string& to, const std::string& from, const std::string& shape, int external) {
  return fmt::format(R"("External id":{},"Input type":["{}","{}","Scalar"],"Input Dims":[{},{},[]])",
                     external, to, from, shape, shape);
}

std::string File(const std::vector<std::string>& events) {
  std::string text;
  for (const auto& event : events) text += (text.empty() ? "" : ",") + event;
  return R"({"schemaVersion":1,"traceEvents":[)" + text + "]}";
}

/// A product under autocast whose operand is cast down, a cast back of the turned tensor, and what their kernels took.
std::vector<std::string> Sample() {
  return {Op("ProfilerStep#3", 0, 100, "", "user_annotation"),
          Op("aten::linear", 10, 50, R"("External id":1)"),
          Op("aten::to", 11, 9, R"("External id":2)"),
          Op("aten::_to_copy", 12, 8, R"("External id":3)"),
          Op("aten::copy_", 13, 6, Copy("c10::BFloat16", "float", "[4,8]", 4)),
          Op("aten::to", 70, 5, R"("External id":5)"),
          Op("aten::copy_", 71, 3, Copy("float", "c10::BFloat16", "[8,4]", 6)),
          Op("aten::copy_", 80, 3, Copy("float", "float", "[8,4]", 7)),
          Op("cast_kernel", 15, 2, R"("External id":4,"correlation":9)", "kernel")};
}

TEST(UserTrace, NamesEachConversionWithWhatItMovesAndTakes) {
  const auto trace = ReadUserTrace(File(Sample()));
  ASSERT_TRUE(trace.has_value()) << trace.error().Text();
  EXPECT_EQ(trace->ops, 7);
  EXPECT_EQ(trace->typed_ops, 3);
  EXPECT_EQ(trace->steps, 1);
  EXPECT_EQ(trace->us, 50 + 5 + 3);
  ASSERT_EQ(trace->conversions.size(), 2u);
  const UserConversion& down = trace->conversions[0];
  EXPECT_EQ(down.from + ">" + down.to + " " + down.under, "float32>bfloat16 aten::linear");
  EXPECT_EQ(down.shape, (std::vector<int64_t>{4, 8}));
  EXPECT_EQ(down.bytes, 32 * 4 + 32 * 2);
  EXPECT_EQ(down.us, 9);  // of aten::to, the memory for its result included
  EXPECT_EQ(down.kernel_us, 2);
  EXPECT_EQ(down.kernels, std::vector<std::string>{"cast_kernel"});
  ASSERT_TRUE(down.undone_by.has_value());  // the extents are those of a permute
  EXPECT_EQ(*down.undone_by, 1u);
  EXPECT_FALSE(trace->conversions[1].undone_by.has_value());
  const std::string text = WriteUserTrace(*trace, UserTraceDetail::kKinds);
  EXPECT_NE(text.find("float32 to bfloat16 [4,8] under aten::linear: 192 B, 9.0 us, 2.0 us in cast_kernel"),
            text.npos)
      << text;
  EXPECT_NE(text.find("1 pair that may undo each other"), text.npos) << text;
  EXPECT_NE(text.find("it is rounded"), text.npos) << text;
  EXPECT_NE(text.find("4 of the ops without dtypes"), text.npos) << text;
  EXPECT_NE(text.find("aten::copy_: cast_kernel"), text.npos) << text;
  const auto parsed = nlohmann::json::parse(UserTraceJson(*trace));
  EXPECT_EQ(parsed["conversions"][0]["may_be_undone_by"], 1);
}

TEST(UserTrace, OpsOfAnotherThreadEncloseNothing) {
  auto events = Sample();
  events[1] = R"({"ph":"X","cat":"cpu_op","name":"aten::linear","pid":1,"tid":3,"ts":10,"dur":50,"args":{}})";
  const auto trace = ReadUserTrace(File(events));
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(trace->conversions[0].under, "aten::copy_");
}

TEST(UserTrace, RefusesWhatIsNoTraceWithItsPlace) {
  const auto why = [](const std::string& text, UserTraceLimits limits = {}) {
    const auto trace = ReadUserTrace(text, limits);
    return trace ? std::string("read") : trace.error().message;
  };
  const auto has = [&](const std::string& text, const std::string& word, UserTraceLimits limits = {}) {
    const std::string said = why(text, limits);
    EXPECT_NE(said.find(word), said.npos) << said << " for " << text.substr(0, 200);
  };
  const std::string good = Op("aten::copy_", 1, 1, Copy("float", "c10::Half", "[2]", 1));
  EXPECT_EQ(why(File({good})), "read");
  EXPECT_EQ(why("[" + good + "]"), "read");  // a bare list is a chrome trace as well
  has("", "no JSON");
  has(File({good}).substr(0, 60), "byte ");
  has("{}", "no list of traceEvents");
  has("\x1f\x8b", "gzip");
  has(File({}), "no op among them");
  has(File({Op("aten::mm", 1, 1, "")}), "record_shapes=True");
  has(File({R"({"ph":"X","cat":"cpu_op","name":"aten::mm","ts":1})"}),
      "traceEvents[0]: a slice (ph X) without dur");
  has(File({good, Op("aten::mm", 1, -1, "")}), "traceEvents[1]: dur is -1");
  has(File({R"({"ph":"X","ph":"X"})"}), "the key 'ph' stands twice");
  has(File({R"({"ph":"X","ts":"1"})"}), "ts is text");
  has(File({Op("aten::copy_", 1, 1, Copy("float", "c10::Half", "[-2]", 1))}), "no count");
  has(File({good, good, good}), "more than 2 events", {.max_events = 2});
  has(R"({"a":)" + std::string(200, '[') + std::string(200, ']') + "}", "deep");
  has(R"({"traceEvents":[],"traceEvents":[]})", "second list");
  has(File({good}), "more than 10", {.max_bytes = 10});
  // Extents whose product no memory holds say nothing of bytes.
  const auto huge = ReadUserTrace(
      File({good, Op("aten::copy_", 3, 1, Copy("float", "c10::Half", "[4294967296,4294967296]", 1))}));
  ASSERT_TRUE(huge.has_value());
  EXPECT_EQ(huge->conversions.size(), 1u);
}

TEST(ChromeTrace, NestsPartsInsideWhatEnclosesThemAndIsReadBack) {
  RunReport report = testing::SampleReport();
  CaseResult& result = report.results.front();
  result.status = Status::kPass;
  result.casts = {{.from = "float32",
                   .to = "bfloat16",
                   .shape = {2, 3},
                   .bytes = 12,
                   .under = "aten::linear",
                   .stage = "dispatch",
                   .node = 2}};
  std::vector<TraceNode> trace(4);
  const auto set = [&](size_t i, int64_t parent, const char* op, std::optional<double> us) {
    trace[i].id = static_cast<int64_t>(i);
    trace[i].parent = parent;
    trace[i].stage = "dispatch";
    trace[i].op = op;
    trace[i].us = us;
  };
  set(0, -1, "aten::linear", 5);
  set(1, 0, "aten::_to_copy", 4);
  set(2, 1, "aten::copy_", 3);
  set(3, 0, "aten::mm", 8);  // medians of parts may sum up to more than that of the whole
  trace[2].inputs = {{"bfloat16", {2, 3}}, {"float32", {2, 3}}};
  ReportDetails details;
  details.of_trace = [&](const CaseResult& asked) {
    return &asked == &result ? trace : std::vector<TraceNode>();
  };
  const auto parsed = nlohmann::json::parse(WriteChromeTrace(report, details));
  std::map<std::string, nlohmann::json> slices;
  for (const auto& event : parsed["traceEvents"]) {
    if (event["ph"] == "X") slices[event["name"]] = event;
  }
  ASSERT_EQ(slices.size(), 4u);
  const auto within = [&](const std::string& inner, const std::string& outer) {
    const auto &a = slices[inner], &b = slices[outer];
    return a["ts"].get<double>() >= b["ts"].get<double>() &&
           a["ts"].get<double>() + a["dur"].get<double>() <= b["ts"].get<double>() + b["dur"].get<double>();
  };
  EXPECT_TRUE(within("aten::copy_", "aten::_to_copy") && within("aten::_to_copy", "aten::linear") &&
              within("aten::mm", "aten::linear"));
  EXPECT_EQ(slices["aten::linear"]["args"]["us"], 5);
  EXPECT_EQ(slices["aten::copy_"]["args"]["conversion"], "float32 to bfloat16");
  const auto read = ReadUserTrace(WriteChromeTrace(report, details));
  ASSERT_TRUE(read.has_value()) << read.error().Text();
  ASSERT_EQ(read->conversions.size(), 1u);
  EXPECT_EQ(read->conversions[0].under, "aten::linear");
  EXPECT_EQ(read->conversions[0].bytes, 6 * 4 + 6 * 2);
}

}  // namespace
}  // namespace ulpscope
