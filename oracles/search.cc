// One changed thing at a time, dropped at the first elements that refute it.
#include "oracles/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/words/facets.h"

namespace ulpscope {
namespace {

class SumSearch {
 public:
  SumSearch(std::span<const SearchElement> elements, std::span<const SearchOperand> operands,
            const Deviates& deviates)
      : elements_(elements), operands_(operands), deviates_(deviates) {
    for (const SearchElement& element : elements_) {
      double sum = 0;
      for (size_t k = 0; k < element.a.size(); ++k) sum += Term(element, k);
      sums_.push_back(sum);
    }
  }

  Search Run() {
    TryOperands();
    if (found_.proposals.empty()) TryMissing();
    if (found_.proposals.empty() && found_.says.empty()) TryScales();
    if (found_.proposals.empty() && found_.says.empty()) TryAbsolute();
    if (found_.proposals.empty() && found_.says.empty()) TryAddend();
    // Proposals are later compared with all results; a sentence rests on these elements alone.
    if (!found_.says.empty() && IsByChance()) found_.says.clear();
    return std::move(found_);
  }

 private:
  void Show(RemarkKind kind, std::string text) { found_.says.push_back({kind, std::move(text)}); }

  static double Term(const SearchElement& element, size_t k) {
    return element.b.empty() ? element.a[k] : element.a[k] * element.b[k];
  }

  /// Among so many changes, one may bring slightly wrong results as near as others by chance. A change of an element's
  /// own size comes as near to the observation with the probability that "near" has of that size.
  bool IsByChance() const {
    constexpr double kNoChance = 1e-6;
    const auto changes = static_cast<double>(4 * elements_.front().a.size() + 32);
    double evidence = 0;
    for (size_t i = 0; i < elements_.size(); ++i) {
      const double off = deviates_(i, elements_[i].centre);
      if (off > kNearby) evidence += std::log(off / kNearby);
    }
    return evidence < std::log(changes / kNoChance);
  }

  /// `sum(i)`: the changed sum of element i. The unchanged one rounds alike here, so only the difference counts.
  template <class Sum>
  bool Explains(Sum sum) const {
    double moved = 0;
    for (size_t i = 0; i < elements_.size(); ++i) {
      const double change = elements_[i].factor * (sum(i) - sums_[i]);
      if (!(deviates_(i, elements_[i].centre + change) <= kNearby)) return false;
      moved = std::max(moved, std::fabs(change));
    }
    return moved > 0;
  }

  template <class Round>
  bool ExplainsRounded(bool round_a, bool round_b, Round round) const {
    return Explains([&](size_t i) {
      const SearchElement& element = elements_[i];
      double sum = 0;
      for (size_t k = 0; k < element.a.size(); ++k) {
        const double a = round_a ? round(i, 0, element.a[k]) : element.a[k];
        const double b = element.b.empty() ? 1 : round_b ? round(i, 1, element.b[k]) : element.b[k];
        sum += a * b;
      }
      return sum;
    });
  }

  struct Which {
    bool a, b;
  };
  std::vector<Which> Choices() const {
    return operands_.size() > 1 ? std::vector<Which>{{true, true}, {true, false}, {false, true}}
                                : std::vector<Which>{{true, false}};
  }

  void Propose(Which which, const RoundSpec& in) {
    Proposal proposal;
    if (which.a) proposal.in[operands_[0].name] = in;
    if (which.b) proposal.in[operands_[1].name] = in;
    found_.proposals.push_back(std::move(proposal));
  }

  std::string NameOf(Which which) const {
    return which.a && which.b ? fmt::format("operands {} and {}", operands_[0].name, operands_[1].name)
                              : "operand " + operands_[which.a ? 0 : 1].name;
  }

  void TryOperands() {
    for (const Which which : Choices()) {
      const int bits = std::max(which.a ? operands_[0].bits : 0, which.b ? operands_[1].bits : 0);
      for (int p = std::min(bits - 1, 23); p >= 2; --p) {
        for (const Rounding mode : {Rounding::kNearestEven, Rounding::kTowardZero}) {
          const RoundSpec spec{.format = &FormatOfBits(p), .rounding = mode};
          if (!ExplainsRounded(which.a, which.b, [&](size_t, int, double x) { return spec.Apply(x); }))
            continue;
          Propose(which, spec);
        }
        if (!found_.proposals.empty()) break;
      }
      for (const FloatFormat* format : AllFormats()) {
        // Wider ones are among the bits above, but for the range of float16.
        if (format->precision >= bits || format->precision > 11) continue;
        const RoundSpec spec = ToNearest(*format);
        const auto saturated = [&](size_t, int, double x) {
          return spec.Apply(std::clamp(x, -format->max_finite, format->max_finite));
        };
        if (ExplainsRounded(which.a, which.b, [&](size_t, int, double x) { return spec.Apply(x); }))
          Propose(which, spec);
        else if (ExplainsRounded(which.a, which.b, saturated))
          Show(RemarkKind::kChange,
               fmt::format("as if {} had been rounded to {}, saturating", NameOf(which), format->name));
      }
      if (!found_.proposals.empty() || !found_.says.empty()) return;
      TryIntegers(which);
      if (!found_.says.empty()) return;
    }
  }

  /// Symmetric quantisation to integers: a scale for the tensor, or for each row of it.
  void TryIntegers(Which which) {
    for (const int bits : {8, 4}) {
      const double most = std::ldexp(1.0, bits - 1) - 1;
      const auto quantised = [&](double x, double largest) {
        return largest == 0 ? 0.0 : std::nearbyint(x / largest * most) * (largest / most);
      };
      const auto by_tensor = [&](size_t, int side, double x) {
        return quantised(x, operands_[static_cast<size_t>(side)].largest);
      };
      const auto by_row = [&](size_t i, int side, double x) {
        double largest = 0;
        for (const double y : side == 0 ? elements_[i].a : elements_[i].b)
          largest = std::max(largest, std::fabs(y));
        return quantised(x, largest);
      };
      // Another library divides in float32, or rounds the scale: results of the same quantisation may differ in a few
      // numbers.
      for (const bool rows : {false, true}) {
        const bool found =
            rows ? ExplainsRounded(which.a, which.b, by_row) : ExplainsRounded(which.a, which.b, by_tensor);
        if (!found) continue;
        Show(RemarkKind::kChange,
             fmt::format("as if {} had been quantised to {}-bit integers with one scale for {}",
                         NameOf(which), bits, rows ? "each row" : "the tensor"));
        return;
      }
    }
  }

  void TryMissing() {
    const size_t count = elements_.front().a.size();
    const char* terms = elements_.front().b.empty() ? "terms" : "products";
    std::vector<double> last(elements_.size(), 0), first(elements_.size(), 0);
    for (size_t j = 1; j < count; ++j) {
      for (size_t i = 0; i < elements_.size(); ++i) {
        last[i] += Term(elements_[i], count - j);
        first[i] += Term(elements_[i], j - 1);
      }
      for (const bool tail : {true, false}) {
        const auto& left_out = tail ? last : first;
        if (!Explains([&](size_t i) { return sums_[i] - left_out[i]; })) continue;
        Show(RemarkKind::kChange,
             fmt::format("as if the {} {} of {} {} were missing", tail ? "last" : "first", j, count, terms));
        return;
      }
    }
    for (size_t k = 0; k < count; ++k) {
      for (const bool twice : {false, true}) {
        if (!Explains([&](size_t i) { return sums_[i] + (twice ? 1 : -1) * Term(elements_[i], k); }))
          continue;
        Show(RemarkKind::kChange, fmt::format("as if number {} of {} {} were {}", k, count, terms,
                                              twice ? "counted twice" : "missing"));
        return;
      }
    }
  }

  void TryScales() {
    const auto count = static_cast<double>(elements_.front().a.size());
    for (const double factor : {count / (count - 1), (count - 1) / count, 1 / count, count}) {
      if (count < 2 || !Explains([&](size_t i) { return factor * sums_[i]; })) continue;
      Show(RemarkKind::kFactor,
           fmt::format("{:.6g} times the exact value, as if divided by another number of terms", factor));
      return;
    }
  }

  void TryAbsolute() {
    if (operands_.size() < 2) return;
    for (const Which which : Choices()) {
      if (!ExplainsRounded(which.a, which.b, [](size_t, int, double x) { return std::fabs(x); })) continue;
      Show(RemarkKind::kChange, "as if the signs of " + NameOf(which) + " had been dropped");
      return;
    }
  }

  void TryAddend() {
    const bool any = std::ranges::any_of(elements_, [](const auto& each) { return each.addend != 0; });
    if (!any) return;
    for (const double times : {-1.0, 1.0}) {
      bool explains = true;
      for (size_t i = 0; i < elements_.size() && explains; ++i)
        explains = deviates_(i, elements_[i].centre + times * elements_[i].addend) <= kNearby;
      if (!explains) continue;
      Show(RemarkKind::kChange,
           times < 0 ? "as if the addend were missing" : "as if the addend were added twice");
      return;
    }
  }

  std::span<const SearchElement> elements_;
  std::span<const SearchOperand> operands_;
  const Deviates& deviates_;
  std::vector<double> sums_;
  Search found_;
};

}  // namespace

LinearPart LinearPartOf(const Plan& plan, int root) {
  LinearPart part;
  for (int id = plan.Root(root);;) {
    const PlanNode& node = plan.at(id);
    const auto constant = [&](size_t i) -> std::optional<double> {
      const PlanNode& arg = plan.at(plan.Root(node.args[i]));
      return arg.kind == NodeKind::kConstant ? arg.constant() : std::nullopt;
    };
    switch (node.kind) {
      case NodeKind::kContract:
      case NodeKind::kReduce:
        part.reduction = id;
        part.factor *= node.alpha();
        return part;
      case NodeKind::kCast:
      case NodeKind::kStore:
        id = plan.Root(node.args[0]);
        continue;
      case NodeKind::kMul:
        if (const auto by = constant(1)) {
          part.factor *= *by;
          id = plan.Root(node.args[0]);
          continue;
        }
        return part;
      case NodeKind::kDiv:
        if (const auto by = constant(1)) {
          part.factor /= *by;
          id = plan.Root(node.args[0]);
          continue;
        }
        return part;
      default:
        return part;
    }
  }
}

Search SearchSums(std::span<const SearchElement> elements, std::span<const SearchOperand> operands,
                  const Deviates& deviates) {
  if (elements.empty() || elements.front().a.empty()) return {};
  return SumSearch(elements, operands, deviates).Run();
}

}  // namespace ulpscope
