// Sorted sums and forms of a mean, in float32.
#include "oracles/dot/further_orders.h"

#include <algorithm>
#include <cmath>

#include "harness/num/error_free.h"
#include "harness/num/float_format.h"

namespace ulpscope {
namespace {

using Kind = FurtherOrder::Kind;

std::vector<FurtherOrder> MakeFurther(bool of_mean) {
  std::vector<FurtherOrder> all{{Kind::kAscending, {}, "from the most negative term up"},
                                {Kind::kDescending, {}, "from the largest term down"},
                                {Kind::kSmallestFirst, {}, "from the smallest term up"},
                                {Kind::kLargestFirst, {}, "from the largest magnitude down"},
                                {Kind::kSignsApart, {}, "positive and negative terms apart"}};
  if (!of_mean) return all;
  all.push_back({Kind::kRunning, {}, "as a running mean"});
  all.push_back({Kind::kRunningReciprocals, {}, "as a running mean, by reciprocals"});
  for (const SumOrder& order : SumOrders(AddendOrders::kNone)) {
    all.push_back({Kind::kTimesReciprocal, order, "times 1/n, " + order.name});
    all.push_back({Kind::kTermsScaled, order, "of terms times 1/n, " + order.name});
  }
  return all;
}

AccSpec AccFloat32() { return {.format = &Binary32()}; }
double AsFloat(double value) { return RoundTo(value, Binary32()); }

double SumInTurn(std::span<const SumTerm> terms) {
  static const SumOrder sequential;
  return SumInOrder(AccFloat32(), sequential, terms, nullptr).hi;
}

/// Each step rounded to float32, as a loop over the terms has it.
double RunningMean(bool reciprocals, std::span<const double> terms) {
  double mean = 0, count = 0;
  for (const double term : terms) {
    ++count;
    const double apart = AsFloat(term - mean);
    mean = AsFloat(mean + AsFloat(reciprocals ? apart * AsFloat(1 / count) : apart / count));
  }
  return mean;
}

std::vector<SumTerm> AsTerms(std::span<const double> values) {
  std::vector<SumTerm> terms;
  for (const double value : values) terms.push_back(TermOf(value, 1));
  return terms;
}

}  // namespace

const std::vector<FurtherOrder>& FurtherOrders(bool of_mean) {
  static const std::vector<FurtherOrder> sums = MakeFurther(false), means = MakeFurther(true);
  return of_mean ? means : sums;
}

double SumFurther(const FurtherOrder& further, std::span<const SumTerm> terms) {
  std::vector<SumTerm> sorted(terms.begin(), terms.end());
  const auto by = [&](auto key) {
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](const SumTerm& a, const SumTerm& b) { return key(a.value.hi) < key(b.value.hi); });
  };
  switch (further.kind) {
    case Kind::kAscending:
      by([](double value) { return value; });
      break;
    case Kind::kDescending:
      by([](double value) { return -value; });
      break;
    case Kind::kSmallestFirst:
      by([](double value) { return std::fabs(value); });
      break;
    case Kind::kLargestFirst:
      by([](double value) { return -std::fabs(value); });
      break;
    case Kind::kSignsApart: {
      const auto negative = std::stable_partition(sorted.begin(), sorted.end(),
                                                  [](const SumTerm& term) { return !(term.value.hi < 0); });
      const auto positive = static_cast<size_t>(negative - sorted.begin());
      const std::span<const SumTerm> all(sorted);
      return AddPartials(AccFloat32(), SumInTurn(all.first(positive)), SumInTurn(all.subspan(positive)));
    }
    default:
      return std::nan("");
  }
  return SumInTurn(sorted);
}

double MeanFurther(const FurtherOrder& further, std::span<const double> terms) {
  const auto n = static_cast<double>(terms.size());
  const double reciprocal = AsFloat(1 / n);
  switch (further.kind) {
    case Kind::kRunning:
    case Kind::kRunningReciprocals:
      return RunningMean(further.kind == Kind::kRunningReciprocals, terms);
    case Kind::kTimesReciprocal:
      return SumInOrder(AccFloat32(), further.order, AsTerms(terms), nullptr).hi * reciprocal;
    case Kind::kTermsScaled: {
      std::vector<double> scaled;
      for (const double term : terms) scaled.push_back(AsFloat(term * reciprocal));
      return SumInOrder(AccFloat32(), further.order, AsTerms(scaled), nullptr).hi;
    }
    default: {
      const double total = SumFurther(further, AsTerms(terms)), quotient = total / n;
      return ToOdd(TwoDoubles{.hi = quotient, .lo = std::fma(-quotient, n, total) / n});
    }
  }
}

}  // namespace ulpscope
