// Traces beside numbers.
#include "harness/judge/graph_execution.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "harness/num/float_format.h"

namespace ulpscope {
namespace {

/// Stages from the program towards the machine.
constexpr std::array<std::string_view, 14> kStages{
    "dispatch",  "torchscript", "dynamo", "aot_joint", "aot_forward", "aot_backward",  "post_grad",
    "generated", "lazy_ir",     "jaxpr",  "stablehlo", "hlo",         "hlo_optimized", "kernel"};

size_t Rank(const std::string& stage) {
  return static_cast<size_t>(std::find(kStages.begin(), kStages.end(), stage) - kStages.begin());
}

int Precision(std::string_view dtype) {
  const FloatFormat* format = FindFormat(dtype);
  return format == nullptr ? 0 : format->precision;
}

/// Significant bits that a word of a model keeps; large where it rounds nothing, 0 (unknown) for what is not
/// understood.
int Kept(std::string_view word) {
  constexpr int kAll = 1000;
  if (word == "none" || word == "exact" || word == "as_is" || word == "compensated") return kAll;
  if (word.starts_with("blockfma(")) return word.find("_float16)") != word.npos ? 11 : word.find(",13,") != word.npos ? 14 : 24;
  if (word.starts_with("split_k(")) return Kept(word.substr(std::string_view("split_k(").size()));
  for (const char* name :
       {"float64", "float32", "bfloat16", "float16", "tf32", "float8_e4m3fn", "float8_e5m2"}) {
    if (word.starts_with(name)) return Precision(name);
  }
  int bits = 0;
  if (word.starts_with("p")) std::from_chars(word.data() + 1, word.data() + word.size(), bits);
  return bits;
}

/// True if nothing in `model` rounds to `precision` bits or fewer. Operands do not count: they were not
/// computed here.
bool KeepsMore(const PrecisionModel& model, int precision) {
  const auto wide = [&](const std::string& word) { return Kept(word) > precision; };
  return wide(model.prod) && wide(model.acc) && wide(model.mid) && wide(model.out) &&
         std::all_of(model.cuts.begin(), model.cuts.end(), [&](const auto& cut) { return wide(cut.second); });
}

using Models = std::vector<PrecisionModel> Classification::*;

/// The observed values of `elements` elements, in program order; empty when one of `models` rounds so, or
/// when the program's last value is not among them.
std::vector<std::string> ValuesThatKeepMore(const CaseResult& result, int64_t elements, int precision,
                                            Models models) {
  std::vector<std::string> names;
  for (const auto& name : result.value_order) {
    const auto value = result.values.find(name);
    if (value == result.values.end() || ElementCount(value->second.shape) != elements) continue;
    const auto& surviving = value->second.classification.*models;
    const auto keeps = [&](const PrecisionModel& model) { return KeepsMore(model, precision); };
    if (surviving.empty() || !std::all_of(surviving.begin(), surviving.end(), keeps)) return {};
    names.push_back(name);
  }
  return !names.empty() && names.back() == result.value_order.back() ? names : std::vector<std::string>{};
}

bool HasPair(const CaseResult& result, const std::string& stage, const Cast& narrowing) {
  const int64_t elements = ElementCount(narrowing.shape);
  return std::any_of(result.casts.begin(), result.casts.end(), [&](const Cast& cast) {
    return cast.stage == stage && cast.from == narrowing.to && Precision(cast.to) > Precision(narrowing.to) &&
           ElementCount(cast.shape) == elements;
  });
}

/// The stage after `stage` in this trace.
std::string NextStage(const CaseResult& result, const std::string& stage) {
  std::string next;
  for (const Cast& cast : result.casts) {
    if (Rank(cast.stage) >= kStages.size() || Rank(cast.stage) <= Rank(stage)) continue;
    if (next.empty() || Rank(cast.stage) < Rank(next)) next = cast.stage;
  }
  return next.empty() ? "execution" : next;
}

}  // namespace

std::optional<LostRounding> FindLostRounding(const CaseResult& result) {
  if (result.outcome.kind != OutcomeKind::kCompleted || result.value_order.empty()) return std::nullopt;
  std::optional<LostRounding> lost;
  for (const Cast& cast : result.casts) {
    const int precision = Precision(cast.to);
    if (precision == 0 || Precision(cast.from) <= precision || Rank(cast.stage) >= kStages.size()) continue;
    if (lost && Rank(cast.stage) <= Rank(lost->from)) continue;
    if (!HasPair(result, cast.stage, cast)) continue;
    const int64_t elements = ElementCount(cast.shape);
    const auto proved = ValuesThatKeepMore(result, elements, precision, &Classification::models_proved);
    const auto likely = ValuesThatKeepMore(result, elements, precision, &Classification::models);
    const auto& values = proved.empty() ? likely : proved;
    if (values.empty()) continue;
    lost = LostRounding{.value = values.front(),
                        .format = cast.to,
                        .from = cast.stage,
                        .to = NextStage(result, cast.stage),
                        .basis = proved.empty() ? "likely" : "proved"};
  }
  return lost;
}

}  // namespace ulpscope
