// Sentences about values that differ without a rounding as a known cause.
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

/// The elements that are counted: those whose numbers differ, those whose special values do, or both.
enum class Counted { kNumbers, kSpecials, kAll };

/// "17 of 256 elements", "17 to 20 of 256 elements" if pairs have different numbers.
std::string Share(std::span<const TensorDifference* const> differences, Counted counted) {
  int64_t fewest = differences.front()->elements, most = 0;
  for (const TensorDifference* each : differences) {
    const int64_t part = (counted != Counted::kSpecials ? each->number : 0) +
                         (counted != Counted::kNumbers ? each->special : 0);
    fewest = std::min(fewest, part);
    most = std::max(most, part);
  }
  return fmt::format("{}{} of {} elements", fewest == most ? "" : fmt::format("{} to ", fewest), most,
                     differences.front()->elements);
}

/// Which intermediates of a value are rounded and which are not, for a value observed alone or judged as a whole, if
/// each intermediate is known to be one or the other, and some are not rounded.
std::map<std::string, Words> OnTheWay(const Classification& classification) {
  if (!classification.on_the_way.empty()) return classification.on_the_way;
  if (!classification.piece.empty() || !classification.fits || classification.models.empty()) return {};
  std::map<std::string, Words> on_the_way;
  bool any = false, values = false;
  for (const auto& [name, roundings] : classification.cuts) {
    const bool inside = name.find('.') != name.npos;
    if (roundings.size() != 1) return {};
    const RoundSpec& mid = roundings.front();
    if (!mid.none() && (inside || mid.bits() > Binary16().precision)) return {};
    any = any || mid.none();
    values = values || (mid.none() && !inside);
    on_the_way[name] = {mid.none() ? "unrounded" : "rounded"};
  }
  if (!any) return {};
  // Unrounded steps inside an op are not mentioned next to unrounded values.
  const auto inside = [](const auto& each) { return each.first.find('.') != each.first.npos; };
  if (values) std::erase_if(on_the_way, inside);
  const bool rounded =
      std::ranges::any_of(on_the_way, [](const auto& each) { return each.second == Words{"rounded"}; });
  return values || !rounded ? on_the_way : std::map<std::string, Words>();
}

const TensorData* TensorIn(const Observation* run, const std::string& value) {
  if (run == nullptr) return nullptr;
  const auto found = run->values.find(value);
  return found == run->values.end() ? nullptr : &found->second;
}

/// The element that a sentence shows, and the two backends whose numbers it shows: the pair that differs most.
struct Shown {
  int64_t index = 0;
  const CaseResult *left = nullptr, *right = nullptr;
  const TensorData *of_left = nullptr, *of_right = nullptr;
};

/// Among equally different elements, the first in which each side agrees. `first`: for integers beyond 2^53.
Shown ShownElement(const Side& a, const Side& b, const std::string& value, bool special, int64_t first) {
  Shown shown{.index = first,
              .left = a.speaker.result,
              .right = b.speaker.result,
              .of_left = TensorOf(a, value),
              .of_right = TensorOf(b, value)};
  double furthest = -1;
  bool shared = false;
  for (size_t i = 0; i < a.all.size(); ++i) {
    for (size_t j = 0; j < b.all.size(); ++j) {
      const TensorData *one = TensorIn(a.all[i], value), *rival = TensorIn(b.all[j], value);
      if (one == nullptr || rival == nullptr) continue;
      const TensorData &left = *one, &right = *rival;
      for (int64_t index = 0; index < left.size(); ++index) {
        const double x = left.At(index), y = right.At(index);
        if (!(special ? DiffersInKind(x, y) : DiffersInNumber(x, y))) continue;
        const double distance = special ? 0 : ElementDistance(x, y, left.dtype);
        if (distance < furthest || (distance == furthest && shared)) continue;
        const bool here = IsShared(a, value, index) && IsShared(b, value, index);
        if (distance == furthest && !here) continue;
        shown = {
            .index = index, .left = a.results[i], .right = b.results[j], .of_left = one, .of_right = rival};
        furthest = distance;
        shared = here;
      }
    }
  }
  return shown;
}

/// "2.5 on jax".
std::string ShownValue(const CaseResult& member, const TensorData& tensor, int64_t index) {
  return FormatDecimal(tensor.At(index)) + " on " + member.backend;
}

/// The tensors of all backends of a side.
std::vector<const TensorData*> TensorsOf(const Side& side, const std::string& value) {
  std::vector<const TensorData*> all{&side.speaker.observation->values.at(value)};
  for (const Observation* each : side.all) {
    if (each == nullptr) continue;
    if (const auto tensor = each->values.find(value); tensor != each->values.end())
      all.push_back(&tensor->second);
  }
  return all;
}

/// The side that gives zero where the other gives subnormal numbers: neither if both do or anything else differs too.
enum class Flushes { kNeither, kFirst, kSecond };
Flushes WhoFlushes(const Side& a, const Side& b, const std::string& value) {
  bool left_zero = false, right_zero = false;
  for (const TensorData* left : TensorsOf(a, value)) {
    for (const TensorData* right : TensorsOf(b, value)) {
      const Flushing flushing = FindFlushing(*left, *right);
      if (!flushing.alone) return Flushes::kNeither;
      left_zero = left_zero || flushing.left;
      right_zero = right_zero || flushing.right;
    }
  }
  if (left_zero == right_zero) return Flushes::kNeither;
  return left_zero ? Flushes::kFirst : Flushes::kSecond;
}

/// "jax gives zero where torch-eager gives subnormal numbers in product".
std::string FlushSentence(const Side& zero, const Side& keeps, const std::string& value) {
  return fmt::format("{} {} zero where {} {} subnormal numbers in {}", JoinNames(zero.names),
                     Verb(zero, "gives", "give"), JoinNames(keeps.names), Verb(keeps, "gives", "give"),
                     Code(value));
}

/// "jax computes it as x * (1 / s)", for sides that compute a step in another form, if that distinguishes them.
std::string FormsOf(const Side& a, const Side& b, const std::string& value) {
  if (ValueOf(a, value).classification.form == ValueOf(b, value).classification.form) return "";
  std::vector<std::string> clauses;
  for (const Side* side : {&a, &b}) {
    const std::string& form = ValueOf(*side, value).classification.form;
    const bool shared = std::ranges::all_of(side->results, [&](const CaseResult* each) {
      const auto found = each->values.find(value);
      return found != each->values.end() && found->second.classification.form == form;
    });
    if (!shared) return "";
    if (!form.empty())
      clauses.push_back(fmt::format("{} {} it as {}", JoinNames(side->names),
                                    Verb(*side, "computes", "compute"), Code(form)));
  }
  return Join(clauses, ", ");
}

/// How far each side is from the exact result on its operands, for a step that both compute in one precision:
/// "torch-inductor has it correctly rounded, torch-eager up to 0.73 ulp off". No cause; empty unless known everywhere.
std::string HowFarOff(const Side& a, const Side& b, const std::string& value) {
  const Classification &left = ValueOf(a, value).classification, &right = ValueOf(b, value).classification;
  const auto whole = [](const Classification& one) { return one.checked > 0 && one.checked == one.elements; };
  const bool left_is = left.max_ulp <= 0.5, right_is = right.max_ulp <= 0.5;
  const std::string as = FormsOf(a, b, value), forms = as.empty() ? "" : as + "; ";
  // The representatives' errors are known, and apply to all backends with the same bits.
  const auto of_one_mind = [&](const Side& side) {
    for (int64_t k = 0; k < TensorOf(side, value)->size(); ++k) {
      if (!IsShared(side, value, k)) return false;
    }
    return true;
  };
  if ((left_is && right_is) || left.piece != "step" || right.piece != "step" || !whole(left) ||
      !whole(right) || !of_one_mind(a) || !of_one_mind(b))
    return as.empty() ? "no cause was found" : as;
  const bool telling = left.max_ulp < kMostTellingUlp && right.max_ulp < kMostTellingUlp;
  const auto off = [&](const Classification& one) {
    // 0.5008 is no longer 0.5, the limit of correct rounding.
    const std::string ulps = Ulps(one.max_ulp);
    return telling ? (ulps == "0.5" ? "a little over 0.5" : ulps) + " ulp"
                   : fmt::format("{:.2g}", one.max_abs);
  };
  if (!left_is && !right_is)
    return forms + fmt::format("neither is correctly rounded: {} {} up to {} off, {} up to {}",
                               JoinNames(a.names), Verb(a, "is", "are"), off(left), JoinNames(b.names),
                               off(right));
  const Side &is = left_is ? a : b, &is_not = left_is ? b : a;
  return forms + fmt::format("{} {} it correctly rounded, {} {}", JoinNames(is.names),
                             Verb(is, "has", "have"), JoinNames(is_not.names),
                             telling ? fmt::format("up to {} off", off(left_is ? right : left))
                                     : fmt::format("{} not, where the exact value is near zero",
                                                   Verb(is_not, "has", "have")));
}

/// "; a: accumulated in float32, stored float16; b: ...", if each side is one backend with a readable class: no cause.
std::string LabelsOf(const Side& a, const Side& b, const std::string& value) {
  constexpr size_t kReadable = 110;  // chosen: a line
  std::string text;
  for (const Side* side : {&a, &b}) {
    const Classification& classification = ValueOf(*side, value).classification;
    if (side->names.size() != 1 || classification.models.empty() || classification.label.empty() ||
        classification.label.size() > kReadable)
      return "";
    text += fmt::format("; {}: {}", side->names.front(), classification.label);
  }
  return text;
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

/// Infinities, then NaNs, of `mine` in elements where `other` is finite.
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

std::string DifferenceSentence(Divergence* divergence, const Side& a, const Side& b,
                               std::span<const TensorDifference* const> differences,
                               const DifferingOperands& operands) {
  const DivergenceKind kind = divergence->kind;
  const std::string& value = divergence->value;
  const bool special = kind == DivergenceKind::kSpecial ||
                       (kind == DivergenceKind::kCarried && differences.front()->number == 0);
  const Shown shown = ShownElement(
      a, b, value, special, special ? differences.front()->first_special : differences.front()->first_number);
  const std::string where = Code(value + Bracketed(Coordinates(shown.index, ValueOf(a, value).shape))),
                    left = ShownValue(*shown.left, *shown.of_left, shown.index),
                    right = ShownValue(*shown.right, *shown.of_right, shown.index);
  const std::string witness = fmt::format("{} is {} and {}", where, left, right),
                    turned = fmt::format("{} is {} and {}", where, right, left);
  const std::string share = Share(differences, special ? Counted::kSpecials : Counted::kNumbers);
  double largest = 0;
  for (const TensorDifference* each : differences) largest = std::max(largest, each->largest_ulp);
  const std::string other = JoinNames(b.names);
  const std::string differs =
      fmt::format("{} {} from {}", JoinNames(a.names), Verb(a, "differs", "differ"), other);
  divergence->summary = "differs in a value";
  if (kind == DivergenceKind::kSpecial) {
    const bool signs = std::ranges::all_of(
        differences, [](const TensorDifference* each) { return each->special == each->zero_signs; });
    // If only one side gives zeros a sign other than IEEE 754's, that side is the subject.
    const bool first = ValueOf(a, value).classification.wrong_zeros > 0,
               second = ValueOf(b, value).classification.wrong_zeros > 0;
    if (signs && first != second) {
      const Side &wrong = first ? a : b, &sound = first ? b : a;
      divergence->summary = "gives zeros of a value the wrong sign";
      return fmt::format("{} {} zeros of {} the wrong sign ({}, e.g. {}); {} {}.", JoinNames(wrong.names),
                         Verb(wrong, "gives", "give"), Code(value), share, first ? witness : turned,
                         JoinNames(sound.names), Verb(sound, "does not", "do not"));
    }
    divergence->summary =
        fmt::format("differs in the {} of a value", signs ? "signs of zeros" : "special values");
    return fmt::format("{} in the {} of {} ({}, e.g. {}).", differs,
                       signs ? "signs of zeros" : "special values", Code(value), share, witness);
  }
  const std::string spread = Ulps(largest);
  if (kind == DivergenceKind::kOrder || kind == DivergenceKind::kBits) {
    const auto bound = [&](std::string_view what) {
      return fmt::format(
          "(the differences are at most {:.2g} of the largest value; {} may change up to {:.2g} of it)",
          divergence->size.Relative(), what, divergence->bound);
    };
    if (kind == DivergenceKind::kBits)
      return fmt::format("{} in {} ({}, by up to {} ulp, e.g. {}): no more than rounding {}; {}.", differs,
                         Code(value), share, spread, witness, bound("rounding"),
                         operands.everywhere.empty() ? HowFarOff(a, b, value)
                                                     : fmt::format("its operand {} differs there already",
                                                                   Code(operands.everywhere)));
    return fmt::format("{} in {} ({}, by up to {} ulp, e.g. {}): another order of accumulation {} it {}.",
                       differs, Code(value), share, spread, witness,
                       divergence->basis == "proved" ? "explains" : "may explain", bound("another order"));
  }
  if (kind == DivergenceKind::kCarried)
    return fmt::format(
        "{} in {} ({}{}, e.g. {}): {} already {}{}.", differs, Code(value), Share(differences, Counted::kAll),
        largest > 0 ? ", by up to " + spread + " ulp" : "", witness,
        operands.names.empty()       ? "its operands"
        : operands.names.size() == 1 ? "its operand " + Code(operands.names.front())
                                     : "its operands " + JoinCode(operands.names),
        operands.names.size() == 1 ? "differs" : "differ",
        operands.from_equal > 0
            ? fmt::format("; in {}{} of these elements the operands are equal, and no cause was found",
                          differences.size() > 1 ? "up to " : "", operands.from_equal)
            : "");
  divergence->has_cause = false;
  if (const auto flushes = WhoFlushes(a, b, value); flushes != Flushes::kNeither) {
    const bool a_flushes = flushes == Flushes::kFirst;
    divergence->has_cause = true;
    divergence->summary = "gives zero for subnormal numbers of a value";
    return fmt::format("{} ({}, e.g. {}).", FlushSentence(a_flushes ? a : b, a_flushes ? b : a, value), share,
                       a_flushes ? witness : turned);
  }
  const std::string size = largest > 0 ? fmt::format(", by up to {} ulp", spread) : "";
  std::vector<std::string> asked;
  for (const Side* side : {&a, &b}) {
    const Classification& classification = ValueOf(*side, value).classification;
    const auto on_the_way = OnTheWay(classification);
    if (on_the_way.empty()) continue;
    asked.push_back(fmt::format("{}{} {} when computing {}", JoinNames(side->names),
                                classification.rests_on_likelihood ? " likely" : "",
                                DescribeOnTheWay(on_the_way, side->names.size() > 1), Code(value)));
  }
  if (!asked.empty()) {
    divergence->has_cause = true;
    return fmt::format("{} in {} ({}{}, e.g. {}): in the run without observation, {}.", differs, Code(value),
                       share, size, witness, Join(asked, "; "));
  }
  return fmt::format("{} in {} ({}{}, e.g. {}{}).", differs, Code(value), share, size, witness,
                     LabelsOf(a, b, value));
}

Sentence RangeSentence(const Side& a, const Side& b, const std::string& value, Infinity infinity) {
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
                                   Join(deeds, " and "), Code(value), Join(counts, " and "), left.size());
    const TensorData &mine = *TensorOf(side, value), &rival = *TensorOf(other, value);
    for (int64_t k = 0; k < mine.size(); ++k) {
      if (std::isfinite(mine.At(k)) || !std::isfinite(rival.At(k))) continue;
      text += fmt::format(", first {} is {} on {} and {} on {}",
                          Code(value + Bracketed(Coordinates(k, mine.shape))), FormatDecimal(mine.At(k)),
                          side.speaker.result->backend, FormatDecimal(rival.At(k)),
                          other.speaker.result->backend);
      break;
    }
    return text + ")";
  };
  ULPSCOPE_CHECK(left.size() == right.size(), "tensors of one shape");
  const std::string first = clause(a, b), second = clause(b, a);
  const std::string summary =
      infinity == Infinity::kOverflow ? "overflows in a value" : "leaves the finite range in a value";
  if (!first.empty() && !second.empty())
    return {.claim = fmt::format("{}; {}", first, second), .summary = summary};
  const Side& stays = first.empty() ? a : b;
  return {.claim = fmt::format("{}{}; {} {} there", first, second, JoinNames(stays.names),
                               Verb(stays, "does not", "do not")),
          .summary = summary};
}

}  // namespace ulpscope
