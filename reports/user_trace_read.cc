// Reads chrome traces: JSON's events into slices, slices into ops with their parts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/base/text.h"
#include "harness/num/dtype.h"
#include "reports/user_trace.h"

namespace ulpscope {
namespace {

/// The parts of an event that are used.
struct Slice {
  std::string name, category, phase, place;  ///< place: process and thread
  std::optional<double> ts, dur;
  std::optional<int64_t> external;
  std::vector<std::string> types;
  std::vector<std::vector<int64_t>> dims;
};

/// The dtypes of PyTorch's C++ as torch.profiler prints them; long names stay as they are.
std::string DTypeOf(const std::string& printed) {
  static const std::map<std::string, std::string> names{{"float", "float32"},
                                                        {"double", "float64"},
                                                        {"c10::Half", "float16"},
                                                        {"c10::BFloat16", "bfloat16"},
                                                        {"int", "int32"},
                                                        {"long", "int64"},
                                                        {"long int", "int64"},
                                                        {"short", "int16"},
                                                        {"short int", "int16"},
                                                        {"signed char", "int8"},
                                                        {"unsigned char", "uint8"},
                                                        {"c10::Float8_e4m3fn", "float8_e4m3fn"},
                                                        {"c10::Float8_e5m2", "float8_e5m2"}};
  const auto found = names.find(printed);
  return found == names.end() ? printed : found->second;
}

class SliceReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit SliceReader(const UserTraceLimits& limits) : limits_(limits) {}

  std::vector<Slice> slices;
  std::string problem;
  int64_t events = 0;
  bool found = false;  ///< there was a list of events

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override { return Number(static_cast<double>(value), value); }
  bool number_unsigned(number_unsigned_t value) override {
    return Number(static_cast<double>(value),
                  value <= INT64_MAX ? std::optional(static_cast<int64_t>(value)) : std::nullopt);
  }
  bool number_float(number_float_t value, const string_t&) override { return Number(value, std::nullopt); }
  bool binary(binary_t&) override { return Stop("binary data"); }
  bool string(string_t& value) override { return Text(value); }

  bool start_object(std::size_t) override {
    if (!Enter('{')) return false;
    if (levels_.size() == event_level_ + 1 && event_level_ > 0) {
      if (static_cast<size_t>(++events) > limits_.max_events)
        return Stop(fmt::format("more than {} events", limits_.max_events));
      slice_ = {};
      seen_.clear();
    }
    return true;
  }
  bool end_object() override {
    const bool event = InEvent(0);
    Leave();
    return !event || Keep();
  }
  bool start_array(std::size_t) override {
    const bool root = levels_.empty();
    const bool named = levels_.size() == 1 && levels_[0].kind == '{' && levels_[0].key == "traceEvents";
    if (!Enter('[')) return false;
    if (root || named) {
      if (found) return Stop("a second list of traceEvents");
      found = true;
      event_level_ = levels_.size();
    }
    // "Input Dims": a list of shapes.
    if (InArgs(1) && ArgsKey() == "Input Dims") in_dims_ = true;
    if (InArgs(2) && in_dims_) slice_.dims.emplace_back();
    if (InArgs(1) && ArgsKey() == "Input type") in_types_ = true;
    if (InArgs(2) && in_types_) slice_.types.emplace_back();  // of a list of tensors: not distinguished
    return true;
  }
  bool end_array() override {
    if (InArgs(1)) in_dims_ = in_types_ = false;
    if (levels_.size() == event_level_) event_level_ = 0;
    Leave();
    return true;
  }
  bool key(string_t& name) override {
    Level& level = levels_.back();
    level.key = name;
    const bool own = InEvent(0) || InArgs(0);
    if (own && !seen_.insert((InArgs(0) ? "args." : "") + name).second)
      return Stop(fmt::format("{}: the key '{}' stands twice", Place(), name.substr(0, 80)));
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    if (problem.empty()) problem = fmt::format("byte {}: no JSON", position);
    return false;
  }

 private:
  struct Level {
    char kind;
    std::string key = {};
  };

  bool Stop(std::string why) {
    if (problem.empty()) problem = std::move(why);
    return false;
  }
  std::string Place() const { return fmt::format("traceEvents[{}]", events - 1); }
  bool Enter(char kind) {
    if (levels_.size() >= static_cast<size_t>(limits_.max_depth))
      return Stop(fmt::format("nested more than {} deep", limits_.max_depth));
    levels_.push_back({.kind = kind});
    return true;
  }
  void Leave() { levels_.pop_back(); }

  /// Inside an event, `below` levels further down.
  bool InEvent(size_t below) const {
    return event_level_ > 0 && levels_.size() == event_level_ + 1 + below &&
           levels_[event_level_].kind == '{';
  }
  bool InArgs(size_t below) const {
    return InEvent(1 + below) && levels_[event_level_].key == "args" && levels_[event_level_ + 1].kind == '{';
  }
  const std::string& ArgsKey() const { return levels_[event_level_ + 1].key; }

  bool Number(double value, std::optional<int64_t> whole) {
    if (InEvent(0)) {
      const std::string& key = levels_.back().key;
      if (key == "ts") slice_.ts = value;
      if (key == "dur") slice_.dur = value;
      if (key == "pid" || key == "tid") slice_.place += key + fmt::format("{} ", value);
    } else if (InArgs(0) && ArgsKey() == "External id") {
      slice_.external = whole;
    } else if (InArgs(2) && in_dims_ && !slice_.dims.empty()) {
      if (!whole || *whole < 0) return Stop(Place() + ": an extent in 'Input Dims' that is no count");
      slice_.dims.back().push_back(*whole);
    }
    return true;
  }
  bool Text(const std::string& value) {
    if (InEvent(0)) {
      const std::string& key = levels_.back().key;
      if (key == "name") slice_.name = value.substr(0, kMostName);
      if (key == "cat") slice_.category = value.substr(0, kMostName);
      if (key == "ph") slice_.phase = value.substr(0, kMostName);
      if (key == "pid" || key == "tid") slice_.place += key + value.substr(0, kMostName) + " ";
      if (key == "ts" || key == "dur")
        return Stop(fmt::format("{}: {} is text, expected a number", Place(), key));
    } else if (InArgs(1) && in_types_) {
      slice_.types.push_back(DTypeOf(value.substr(0, kMostName)));
    }
    return true;
  }

  bool Keep() {
    if (slice_.phase != "X") return true;
    if (!slice_.ts || !slice_.dur)
      return Stop(fmt::format("{}: a slice (ph X) without {}", Place(), slice_.ts ? "dur" : "ts"));
    if (!std::isfinite(*slice_.ts) || !std::isfinite(*slice_.dur) || *slice_.dur < 0)
      return Stop(fmt::format("{}: dur is {}, expected a time from 0 on", Place(), *slice_.dur));
    slices.push_back(std::move(slice_));
    return true;
  }

  static constexpr size_t kMostName = 4096;
  const UserTraceLimits& limits_;
  std::vector<Level> levels_;
  size_t event_level_ = 0;  ///< levels down to the list of events, itself included; 0: not in it
  Slice slice_;
  std::set<std::string> seen_;  ///< keys of this event
  bool in_dims_ = false, in_types_ = false;
};

bool IsOp(const Slice& slice) { return slice.category == "cpu_op" || slice.category == "Operator"; }
bool IsOnDevice(const Slice& slice) {
  return slice.category == "kernel" || slice.category == "gpu_memcpy" || slice.category == "gpu_memset";
}

bool IsPartOfCast(const std::string& op) {
  static const std::set<std::string> parts{"aten::to", "aten::_to_copy", "aten::copy_", "aten::type_as"};
  return parts.contains(op);
}

int64_t BytesOfElement(const std::string& dtype) {
  const auto known = ParseDType(dtype);
  return known ? static_cast<int64_t>(SizeOf(*known)) : 0;
}

class UserTraceBuilder {
 public:
  UserTraceBuilder(std::vector<Slice> slices, const UserTraceLimits& limits)
      : slices_(std::move(slices)), limits_(limits) {}

  Result<UserTrace> Build() {
    std::ranges::stable_sort(slices_, [](const Slice& a, const Slice& b) {
      return *a.ts != *b.ts ? *a.ts < *b.ts : *a.dur > *b.dur;
    });
    parents_.assign(slices_.size(), -1);
    for (size_t i = 0; i < slices_.size(); ++i) {
      if (slices_[i].name.starts_with("ProfilerStep")) ++trace_.steps;
      if (IsOp(slices_[i])) AddOp(i);
    }
    for (size_t i = 0; i < slices_.size(); ++i) {
      if (IsOnDevice(slices_[i])) AddKernel(i);
    }
    for (size_t i = 0; i < slices_.size(); ++i) {
      if (IsOp(slices_[i]) && slices_[i].name == "aten::copy_") AddConversion(i);
      if (trace_.conversions.size() > limits_.max_conversions)
        return Fail(fmt::format("more than {} conversions", limits_.max_conversions));
    }
    Pair();
    for (auto& [key, row] : rows_) trace_.op_kernels.push_back(std::move(row));
    std::ranges::stable_sort(trace_.op_kernels, [](const auto& a, const auto& b) { return a.us > b.us; });
    return std::move(trace_);
  }

 private:
  void AddOp(size_t i) {
    const Slice& slice = slices_[i];
    auto& open = open_[slice.place];
    while (!open.empty() && *slices_[open.back()].ts + *slices_[open.back()].dur <= *slice.ts)
      open.pop_back();
    if (open.empty()) {
      trace_.us += *slice.dur;
    } else {
      parents_[i] = static_cast<int64_t>(open.back());
    }
    open.push_back(i);
    ++trace_.ops;
    trace_.typed_ops += !slice.types.empty();
    if (slice.external) by_external_[*slice.external] = i;
  }

  void AddKernel(size_t i) {
    const Slice& slice = slices_[i];
    ++trace_.kernels;
    if (!slice.external) return;
    const auto op = by_external_.find(*slice.external);
    if (op == by_external_.end()) return;
    kernels_[op->second].push_back(i);
    auto& row = rows_[{slices_[op->second].name, slice.name}];
    row.op = slices_[op->second].name;
    row.kernel = slice.name;
    ++row.count;
    row.us += *slice.dur;
  }

  void AddConversion(size_t i) {
    const Slice& slice = slices_[i];
    if (slice.types.size() < 2 || slice.dims.size() < 2) return;
    const std::string &to = slice.types[0], &from = slice.types[1];
    const int64_t wide = BytesOfElement(from), narrow = BytesOfElement(to);
    if (to == from || wide == 0 || narrow == 0) return;
    UserConversion found{.op = slice.name,
                         .under = slice.name,
                         .from = from,
                         .to = to,
                         .shape = slice.dims[0],
                         .at = *slice.ts};
    const int64_t read = Elements(slice.dims[1]), written = Elements(slice.dims[0]);
    if (read < 0 || written < 0) return;
    found.bytes = read * wide + written * narrow;
    size_t whole = i;
    while (parents_[whole] >= 0 && IsPartOfCast(slices_[static_cast<size_t>(parents_[whole])].name))
      whole = static_cast<size_t>(parents_[whole]);
    found.us = *slices_[whole].dur;
    if (parents_[whole] >= 0) found.under = slices_[static_cast<size_t>(parents_[whole])].name;
    if (const auto own = kernels_.find(i); own != kernels_.end()) {
      for (const size_t kernel : own->second) {
        found.kernel_us += *slices_[kernel].dur;
        found.kernels.push_back(slices_[kernel].name);
      }
    }
    trace_.conversions.push_back(std::move(found));
  }

  /// -1: more than any memory holds.
  static int64_t Elements(const std::vector<int64_t>& shape) {
    constexpr int64_t kMost = int64_t{1} << 48;
    int64_t count = 1;
    for (const int64_t extent : shape) {
      if (extent > kMost || (extent > 0 && count > kMost / extent)) return -1;
      count *= extent;
    }
    return count;
  }

  /// Pairs each conversion with the next one back, of the same extents in any order (a permute may be between them).
  void Pair() {
    std::map<std::string, std::vector<size_t>> waiting;  // what undoes it -> those that wait for it
    auto& all = trace_.conversions;
    for (size_t i = 0; i < all.size(); ++i) {
      auto extents = all[i].shape;
      std::ranges::sort(extents);
      const std::string size = Join(extents, "x");
      auto& undoes = waiting[all[i].from + ">" + all[i].to + " " + size];
      if (!undoes.empty()) {
        all[undoes.back()].undone_by = i;
        undoes.pop_back();
      } else {
        waiting[all[i].to + ">" + all[i].from + " " + size].push_back(i);
      }
    }
  }

  std::vector<Slice> slices_;
  const UserTraceLimits& limits_;
  UserTrace trace_;
  std::vector<int64_t> parents_;
  std::map<std::string, std::vector<size_t>> open_;
  std::map<int64_t, size_t> by_external_;
  std::map<size_t, std::vector<size_t>> kernels_;
  std::map<std::pair<std::string, std::string>, UserTrace::OpKernels> rows_;
};

}  // namespace

Result<UserTrace> ReadUserTrace(std::string_view bytes, const UserTraceLimits& limits) {
  if (bytes.size() > limits.max_bytes)
    return Fail(fmt::format("{} bytes, more than {}", bytes.size(), limits.max_bytes));
  if (bytes.starts_with("\x1f\x8b")) return Fail("compressed with gzip: unpack it first");
  SliceReader reader(limits);
  const bool whole = nlohmann::json::sax_parse(bytes.begin(), bytes.end(), &reader);
  if (!whole || !reader.problem.empty()) return Fail(reader.problem.empty() ? "no JSON" : reader.problem);
  if (!reader.found) return Fail("no chrome trace: it holds no list of traceEvents");
  const int64_t events = reader.events;
  auto trace = UserTraceBuilder(std::move(reader.slices), limits).Build();
  if (!trace) return trace;
  trace->events = events;
  if (trace->ops == 0)
    return Fail(fmt::format(
        "{} events and no op among them: expected a trace of torch.profiler with ProfilerActivity.CPU",
        events));
  if (trace->typed_ops == 0)
    return Fail(
        fmt::format("{} ops and no dtypes of their operands: record it with record_shapes=True", trace->ops));
  return trace;
}

}  // namespace ulpscope
