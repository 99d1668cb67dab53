// Sentences of values that differ, and of which no rounding is known to be the cause.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "harness/base/check.h"
#include "harness/base/text.h"
#include "harness/judge/asked.h"
#include "harness/judge/deed.h"
#include "harness/judge/sentence.h"
#include "harness/judge/witness.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

/// "17 of 256 elements", "17 to 20 of 256 elements" where not every pair has the same number.
std::string Share(std::span<const TensorDifference* const> differences, bool special) {
  int64_t fewest = differences.front()->elements, most = 0;
  for (const TensorDifference* each : differences) {
    const int64_t part = special ? each->special : each->number;
    fewest = std::min(fewest, part);
    most = std::max(most, part);
  }
  return fmt::format("{}{} of {} elements", fewest == most ? "" : fmt::format("{} to ", fewest), most,
                     differences.front()->elements);
}

/// What is rounded on the way and what is not, of a value that was asked as a whole or judged as one: where each intermediate is known
/// to be the one or the other, and some are not rounded.
std::map<std::string, Words> OnTheWay(const Classification& classification) {
  if (!classification.on_the_way.empty()) return classification.on_the_way;
  if (!classification.piece.empty() || !classification.fits || classification.models.empty()) return {};
  std::map<std::string, Words> on_the_way;
  bool any = false, values = false;
  for (const auto& [name, words] : classification.cuts) {
    const bool inside = name.find('.') != name.npos;
    const auto mid = words.size() == 1 ? ParseMid(words.front()) : std::nullopt;
    if (!mid) return {};
    if (!mid->none() && (inside || mid->bits() > Binary16().precision)) return {};
    any = any || mid->none();
    values = values || (mid->none() && !inside);
    on_the_way[name] = {mid->none() ? "unrounded" : "rounded"};
  }
  if (!any) return {};
  // Of steps inside an op that are not rounded nothing is said beside values that are not.
  const auto inside = [](const auto& each) { return each.first.find('.') != each.first.npos; };
  if (values) std::erase_if(on_the_way, inside);
  const bool rounded =
      std::ranges::any_of(on_the_way, [](const auto& each) { return each.second == Words{"rounded"}; });
  return values || !rounded ? on_the_way : std::map<std::string, Words>();
}

/// The first element that shows the difference, best where each side is of one mind.
int64_t ShownElement(const Side& a, const Side& b, const std::string& value, bool special,
                     const TensorDifference& difference) {
  const int64_t first = special ? difference.first_special : difference.first_number;
  const TensorData &left = *TensorOf(a, value), &right = *TensorOf(b, value);
  for (int64_t index = first; index < left.size(); ++index) {
    const double x = left.At(index), y = right.At(index);
    if ((special ? DiffersInKind(x, y) : DiffersInNumber(x, y)) && IsShared(a, value, index) &&
        IsShared(b, value, index))
      return index;
  }
  return first;
}

std::string ValueAt(const Side& side, const std::string& value, int64_t index) {
  return FormatDecimal(side.speaker.observation->values.at(value).At(index));
}

/// What every backend of a side gave.
std::vector<const TensorData*> TensorsOf(const Side& side, const std::string& value) {
  std::vector<const TensorData*> all{&side.speaker.observation->values.at(value)};
  for (const Observation* each : side.all) {
    if (each == nullptr) continue;
    if (const auto tensor = each->values.find(value); tensor != each->values.end())
      all.push_back(&tensor->second);
  }
  return all;
}

/// "jax gives zero where torch-eager gives subnormal numbers in product"; empty where neither does, or both, or anything else
/// differs too.
std::string WhoFlushes(const Side& a, const Side& b, const std::string& value) {
  bool left_zero = false, right_zero = false;
  for (const TensorData* left : TensorsOf(a, value)) {
    for (const TensorData* right : TensorsOf(b, value)) {
      const Flushing flushing = FindFlushing(*left, *right);
      if (!flushing.alone) return "";
      left_zero = left_zero || flushing.left;
      right_zero = right_zero || flushing.right;
    }
  }
  if (left_zero == right_zero) return "";
  const Side &zero = left_zero ? a : b, &keeps = left_zero ? b : a;
  return fmt::format("{} {} zero where {} {} subnormal numbers in {}", JoinNames(zero.names),
                     Verb(zero, "gives", "give"), JoinNames(keeps.names), Verb(keeps, "gives", "give"),
                     value);
}

/// Of a step that both sides compute in one precision, how far each is from the exact result of its operands: "torch-inductor has
/// it correctly rounded, torch-eager up to 0.73 ulp off". That is no cause, and where it is not known of every element, nothing is.
std::string HowFarOff(const Side& a, const Side& b, const std::string& value) {
  const Classification &left = ValueOf(a, value).classification, &right = ValueOf(b, value).classification;
  const auto whole = [](const Classification& one) { return one.checked > 0 && one.checked == one.elements; };
  const bool left_is = left.max_ulp <= 0.5, right_is = right.max_ulp <= 0.5;
  // What is known is known of those who speak, and of all that have the same bits of it.
  const auto of_one_mind = [&](const Side& side) {
    for (int64_t k = 0; k < TensorOf(side, value)->size(); ++k) {
      if (!IsShared(side, value, k)) return false;
    }
    return true;
  };
  if ((left_is && right_is) || left.piece != "step" || right.piece != "step" || !whole(left) ||
      !whole(right) || !of_one_mind(a) || !of_one_mind(b))
    return "why was not found";
  const bool telling = left.max_ulp < kMostTellingUlp && right.max_ulp < kMostTellingUlp;
  const auto off = [&](const Classification& one) {
    // 0.5008 is no longer 0.5, which is what correct rounding comes to.
    const std::string ulps = Ulps(one.max_ulp);
    return telling ? (ulps == "0.5" ? "a little over 0.5" : ulps) + " ulp"
                   : fmt::format("{:.2g}", one.max_abs);
  };
  if (!left_is && !right_is)
    return fmt::format("neither is correctly rounded: {} {} up to {} off, {} up to {}", JoinNames(a.names),
                       Verb(a, "is", "are"), off(left), JoinNames(b.names), off(right));
  const Side &is = left_is ? a : b, &is_not = left_is ? b : a;
  return fmt::format(
      "{} {} it correctly rounded, {} {}", JoinNames(is.names), Verb(is, "has", "have"),
      JoinNames(is_not.names),
      telling ? fmt::format("up to {} off", off(left_is ? right : left))
              : fmt::format("{} not, where the exact value is near zero", Verb(is_not, "has", "have")));
}

/// In how many elements one side is infinite, or NaN, and the other is finite; the fewest and the most of all pairs.
struct OutOfRange {
  int64_t fewest = std::numeric_limits<int64_t>::max(), most = 0;

  void Add(int64_t count) {
    fewest = std::min(fewest, count);
    most = std::max(most, count);
  }
  std::string Text() const {
    return fewest == most ? std::to_string(most) : fmt::format("{} to {}", fewest, most);
  }
};

/// Infinities, then NaNs, of `mine` where `other` is finite.
std::pair<OutOfRange, OutOfRange> CountOutOfRange(const Side& mine, const Side& other,
                                                  const std::string& value) {
  std::pair<OutOfRange, OutOfRange> counts;
  for (const Observation* one : mine.all) {
    for (const Observation* rival : other.all) {
      if (one == nullptr || rival == nullptr) continue;
      const TensorData &left = one->values.at(value), &right = rival->values.at(value);
      int64_t infinite = 0, nan = 0;
      for (int64_t k = 0; k < left.size(); ++k) {
        if (!std::isfinite(right.At(k))) continue;
        infinite += std::isinf(left.At(k)) ? 1 : 0;
        nan += std::isnan(left.At(k)) ? 1 : 0;
      }
      counts.first.Add(infinite);
      counts.second.Add(nan);
    }
  }
  return counts;
}

}  // namespace

std::string DifferenceSentence(DivergenceKind kind, const Side& a, const Side& b, const std::string& value,
                               std::span<const TensorDifference* const> differences,
                               const std::string& from) {
  const bool special = kind == DivergenceKind::kSpecial;
  const int64_t index = ShownElement(a, b, value, special, *differences.front());
  const Shape& shape = ValueOf(a, value).shape;
  const auto against = [&](const Side& first, const Side& second) {
    return fmt::format("{} = {}{} against {}{}", Bracketed(Coordinates(index, shape)),
                       ValueAt(first, value, index), OnWhom(first, value, index),
                       ValueAt(second, value, index), OnWhom(second, value, index));
  };
  const std::string witness = against(a, b);
  const std::string share = Share(differences, special);
  double largest = 0;
  for (const TensorDifference* each : differences) largest = std::max(largest, each->largest_ulp);
  const std::string other = JoinNames(b.names);
  const std::string differs =
      fmt::format("{} {} from {}", JoinNames(a.names), Verb(a, "differs", "differ"), other);
  if (special) {
    const bool signs = std::ranges::all_of(
        differences, [](const TensorDifference* each) { return each->special == each->zero_signs; });
    return fmt::format("{} in the {} of {} ({}, e.g. {}).", differs,
                       signs ? "signs of zeros" : "special values", value, share, witness);
  }
  const std::string spread = Ulps(largest);
  if (kind == DivergenceKind::kOrder || kind == DivergenceKind::kBits) {
    if (kind == DivergenceKind::kBits)
      return fmt::format("{} in {} ({}, by up to {} ulp, e.g. {}); {}.", differs, value, share, spread,
                         witness,
                         from.empty() ? HowFarOff(a, b, value)
                                      : from + ", which it is computed from, differs there already");
    return fmt::format("{} in {} ({}, by up to {} ulp, e.g. {}): another order of accumulation explains it.",
                       differs, value, share, spread, witness);
  }
  if (const std::string zero = WhoFlushes(a, b, value); !zero.empty()) {
    const bool b_first = zero.starts_with(JoinNames(b.names) + " give");
    return fmt::format("{} ({}, e.g. {}).", zero, share, b_first ? against(b, a) : witness);
  }
  const std::string size = largest > 0 ? fmt::format(", by up to {} ulp", spread) : "";
  std::vector<std::string> asked;
  for (const Side* side : {&a, &b}) {
    const Classification& classification = ValueOf(*side, value).classification;
    const auto on_the_way = OnTheWay(classification);
    if (on_the_way.empty()) continue;
    asked.push_back(fmt::format("{}{} {} to {}", JoinNames(side->names),
                                classification.rests_on_likelihood ? " likely" : "",
                                DescribeOnTheWay(on_the_way, side->names.size() > 1), value));
  }
  if (!asked.empty()) {
    return fmt::format("{} in {} ({}{}, e.g. {}): where its steps are not observed, {}.", differs, value,
                       share, size, witness, Join(asked, "; "));
  }
  return fmt::format("{} in {} ({}{}, e.g. {}).", differs, value, share, size, witness);
}

std::string RangeSentence(const Side& a, const Side& b, const std::string& value, Infinity infinity) {
  const TensorData &left = *TensorOf(a, value), &right = *TensorOf(b, value);
  const auto clause = [&](const Side& side, const Side& other) -> std::string {
    const auto [infinite, nan] = CountOutOfRange(side, other, value);
    std::vector<std::string> deeds, counts;
    if (infinite.most > 0) {
      deeds.push_back(infinity == Infinity::kOverflow
                          ? std::string(Verb(side, "overflows to inf", "overflow to inf"))
                          : std::string(Verb(side, "gives inf", "give inf")));
      counts.push_back(infinite.Text());
    }
    if (nan.most > 0) {
      deeds.push_back(std::string(Verb(side, "gives NaN", "give NaN")));
      counts.push_back(nan.Text());
    }
    if (deeds.empty()) return "";
    std::string text = fmt::format("{} {} in {} ({} of {} elements", JoinNames(side.names),
                                   Join(deeds, " and "), value, Join(counts, " and "), left.size());
    const TensorData &mine = *TensorOf(side, value), &rival = *TensorOf(other, value);
    for (int64_t k = 0; k < mine.size(); ++k) {
      if (std::isfinite(mine.At(k)) || !std::isfinite(rival.At(k))) continue;
      text += fmt::format(", first {} = {}{} against {}{}", Bracketed(Coordinates(k, mine.shape)),
                          FormatDecimal(mine.At(k)), OnWhom(side, value, k), FormatDecimal(rival.At(k)),
                          OnWhom(other, value, k));
      break;
    }
    return text + ")";
  };
  ULPSCOPE_CHECK(left.size() == right.size(), "tensors of one shape");
  const std::string first = clause(a, b), second = clause(b, a);
  if (!first.empty() && !second.empty()) return fmt::format("{}; {}.", first, second);
  const Side& stays = first.empty() ? a : b;
  return fmt::format("{}{}; {} {} there.", first, second, JoinNames(stays.names),
                     Verb(stays, "does not", "do not"));
}

}  // namespace ulpscope
