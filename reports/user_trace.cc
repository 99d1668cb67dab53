// Showing a user's trace.
#include "reports/user_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "harness/base/text.h"
#include "harness/num/dtype.h"
#include "harness/num/float_format.h"
#include "reports/text_safe.h"

namespace ulpscope {
namespace {

std::string TimeText(double us) {
  if (us >= 1000) return fmt::format("{:.1f} ms", us / 1000);
  return us < 10 ? fmt::format("{:.1f} us", us) : fmt::format("{:.0f} us", us);
}

std::string SizeText(int64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  return bytes < 10'000'000 ? fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3)
                            : fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

/// Whether a value comes back from `there` as it was in `from`.
bool KeepsValues(const std::string& from, const std::string& there) {
  const auto narrow = ParseDType(from), wide = ParseDType(there);
  if (!narrow || !wide || !IsFloating(*narrow) || !IsFloating(*wide)) return false;
  const FloatFormat &a = *FormatOf(*narrow), &b = *FormatOf(*wide);
  return b.precision >= a.precision && b.emin - b.precision <= a.emin - a.precision && b.emax >= a.emax;
}

/// "under aten::linear"; a conversion that the program itself requests has no op around it.
std::string Where(const UserConversion& one) {
  return one.under == one.op ? std::string("by itself") : "under " + one.under;
}

std::string ConversionLine(const UserConversion& one, size_t count, int64_t bytes, double us,
                           double kernel_us) {
  std::string line = fmt::format("{:>6}  {} to {} [{}] {}: {}, {}", count, one.from, one.to,
                                 Join(one.shape, ","), Where(one), SizeText(bytes), TimeText(us));
  if (kernel_us > 0) line += fmt::format(", {} in {}", TimeText(kernel_us), one.kernels.front());
  return line + "\n";
}

std::string KindLines(const UserTrace& trace) {
  struct Kind {
    const UserConversion* first = nullptr;
    size_t count = 0;
    int64_t bytes = 0;
    double us = 0, kernel_us = 0;
  };
  std::map<std::tuple<std::string, std::string, std::vector<int64_t>, std::string>, Kind> kinds;
  for (const UserConversion& one : trace.conversions) {
    Kind& kind = kinds[{one.from, one.to, one.shape, one.under}];
    if (kind.first == nullptr) kind.first = &one;
    ++kind.count;
    kind.bytes += one.bytes;
    kind.us += one.us;
    kind.kernel_us += one.kernel_us;
  }
  std::vector<Kind> ordered;
  for (const auto& [key, kind] : kinds) ordered.push_back(kind);
  std::ranges::stable_sort(ordered, [](const Kind& a, const Kind& b) { return a.us > b.us; });
  std::string text;
  for (const Kind& kind : ordered)
    text += ConversionLine(*kind.first, kind.count, kind.bytes, kind.us, kind.kernel_us);
  return text;
}

std::string PairLines(const UserTrace& trace) {
  struct Pairs {
    const UserConversion *there = nullptr, *back = nullptr;
    int64_t count = 0, bytes = 0;
    double us = 0;
  };
  std::map<std::tuple<std::string, std::string, std::vector<int64_t>, std::string, std::string>, Pairs> kinds;
  int64_t all = 0;
  for (const UserConversion& there : trace.conversions) {
    if (!there.undone_by) continue;
    const UserConversion& back = trace.conversions[*there.undone_by];
    Pairs& pairs = kinds[{there.from, there.to, there.shape, there.under, back.under}];
    pairs.there = &there;
    pairs.back = &back;
    ++pairs.count;
    ++all;
    pairs.bytes += there.bytes + back.bytes;
    pairs.us += there.us + back.us;
  }
  if (all == 0) return "";
  std::string text =
      fmt::format("\n{} that may undo each other (by dtypes and extents: such a trace holds no data flow)\n",
                  Counted(all, "pair"));
  for (const auto& [key, pairs] : kinds) {
    text += fmt::format("{:>6}  {} to {} and back [{}] {}, then {}: {}, {}; {}\n", pairs.count,
                        pairs.there->from, pairs.there->to, Join(pairs.there->shape, ","),
                        Where(*pairs.there), Where(*pairs.back), SizeText(pairs.bytes), TimeText(pairs.us),
                        KeepsValues(pairs.there->from, pairs.there->to)
                            ? "where it is the same data and nothing is computed between, no value changes"
                            : "where it is the same data, it is rounded");
  }
  return text;
}

}  // namespace

std::string WriteUserTrace(const UserTrace& trace, UserTraceDetail detail) {
  int64_t bytes = 0;
  double us = 0;
  for (const UserConversion& one : trace.conversions) {
    bytes += one.bytes;
    us += one.us;
  }
  std::string text = fmt::format("{}, {}, {}", Counted(trace.ops, "op"), Counted(trace.kernels, "kernel"),
                                 Counted(static_cast<int64_t>(trace.conversions.size()), "conversion"));
  if (trace.steps > 0) text += fmt::format(", {}", Counted(trace.steps, "profiled step"));
  if (trace.typed_ops < trace.ops)
    text += fmt::format(" ({} of the ops without dtypes: not looked at)", trace.ops - trace.typed_ops);
  text += "\n";
  if (!trace.conversions.empty()) {
    text += fmt::format("conversions move {} and take {}, {:.0f} % of the ops' {}\n", SizeText(bytes),
                        TimeText(us), trace.us > 0 ? 100 * us / trace.us : 0, TimeText(trace.us));
  }
  if (detail == UserTraceDetail::kAll) {
    for (const UserConversion& one : trace.conversions)
      text += ConversionLine(one, 1, one.bytes, one.us, one.kernel_us);
  } else {
    text += KindLines(trace);
  }
  text += PairLines(trace);
  if (!trace.op_kernels.empty()) text += "\nkernels under ops\n";
  for (const auto& row : trace.op_kernels)
    text += fmt::format("{:>6}  {}: {}, {}\n", row.count, row.op, row.kernel, TimeText(row.us));
  std::string safe;
  for (const std::string& line : LinesOf(text)) safe += TerminalSafe(line) + "\n";
  return safe;
}

std::string UserTraceJson(const UserTrace& trace) {
  using Json = nlohmann::ordered_json;
  Json conversions = Json::array(), kernels = Json::array();
  for (const UserConversion& one : trace.conversions) {
    Json row{{"op", one.op},           {"under", one.under}, {"from", one.from}, {"to", one.to},
             {"shape", one.shape},     {"bytes", one.bytes}, {"us", one.us},     {"kernel_us", one.kernel_us},
             {"kernels", one.kernels}, {"at", one.at}};
    if (one.undone_by) row["may_be_undone_by"] = *one.undone_by;
    conversions.push_back(std::move(row));
  }
  for (const auto& row : trace.op_kernels)
    kernels.push_back({{"op", row.op}, {"kernel", row.kernel}, {"count", row.count}, {"us", row.us}});
  const Json json = {{"ops", trace.ops},
                     {"ops_with_dtypes", trace.typed_ops},
                     {"kernels", trace.kernels},
                     {"steps", trace.steps},
                     {"us", trace.us},
                     {"conversions", std::move(conversions)},
                     {"kernels_under_ops", std::move(kernels)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ulpscope
