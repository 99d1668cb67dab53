// Few terms, listed.
#include "oracles/dot/few_terms.h"

#include <optional>

#include "oracles/dot/trees.h"
#include "oracles/models.h"

namespace ulpscope {
namespace {

/// Terms by pass, and their positions.
struct FewTerms {
  std::vector<std::vector<SumTerm>> passes;
  std::vector<int64_t> positions;
};

std::optional<FewTerms> GatherFew(const std::array<RoundSpec, 2>& in, const RoundSpec& prod,
                                  const RawOperands& raw) {
  FewTerms few;
  for (size_t k = 0; k < raw.a.size(); ++k) {
    if (raw.a[k] == 0 || raw.b[k] == 0) continue;
    if (few.positions.size() == SumTrees::kMostSlots) return std::nullopt;
    few.positions.push_back(static_cast<int64_t>(k));
    const Products products = Multiply(in[0], in[1], prod, raw.a[k], raw.b[k]);
    few.passes.resize(static_cast<size_t>(products.count));
    for (size_t pass = 0; pass < few.passes.size(); ++pass) {
      SumTerm term = TermOf(products.a[pass], products.b[pass]);
      term.value = products.value[pass];
      few.passes[pass].push_back(term);
    }
  }
  if (few.positions.empty()) return std::nullopt;
  return few;
}

}  // namespace

std::vector<double> SumsOfPasses(const AccSpec& acc, const std::array<RoundSpec, 2>& in,
                                 const RawOperands& raw) {
  const auto few = GatherFew(in, RoundSpec{}, raw);
  if (!few) return {};
  const auto trees = SumTrees::For(acc, static_cast<int>(few->positions.size()));
  std::vector<double> sums, next;
  trees->Evaluate(few->passes[0], &sums);
  for (size_t pass = 1; pass < few->passes.size(); ++pass) {
    trees->Evaluate(few->passes[pass], &next);
    for (size_t s = 0; s < sums.size(); ++s) sums[s] = AddPartials(acc, sums[s], next[s]);
  }
  return sums;
}

std::vector<double> SumsOfTerms(const AccSpec& acc, std::span<const double> terms) {
  std::vector<SumTerm> few;
  for (const double term : terms) {
    if (term == 0) continue;
    if (few.size() == SumTrees::kMostSlots) return {};
    few.push_back(TermOf(term, 1));
    few.back().value = {.hi = term, .lo = 0};
  }
  if (few.empty()) return {};
  std::vector<double> sums;
  SumTrees::For(acc, static_cast<int>(few.size()))->Evaluate(few, &sums);
  return sums;
}

std::vector<double> SumsFromHalves(const AccSpec& acc, std::span<const SumTerm> terms, SumTerm addend) {
  addend.value.hi /= 2;
  addend.value.lo /= 2;
  addend.exponent -= 1;
  std::vector<double> sums, first, second;
  for (unsigned set = 0; set < 1U << terms.size(); ++set) {
    std::vector<SumTerm> inside{addend}, outside{addend};
    for (size_t i = 0; i < terms.size(); ++i) ((set >> i) & 1 ? inside : outside).push_back(terms[i]);
    SumTrees::For(acc, static_cast<int>(inside.size()))->Evaluate(inside, &first);
    SumTrees::For(acc, static_cast<int>(outside.size()))->Evaluate(outside, &second);
    for (const double one : first) {
      for (const double other : second) sums.push_back(AddPartials(acc, one, other));
    }
  }
  return sums;
}

std::vector<int64_t> PositionsTogether(const AccSpec& acc, const std::array<RoundSpec, 2>& in,
                                       const RoundSpec& prod, const RawOperands& raw,
                                       const std::function<double(double)>& store, double stored) {
  if (acc.partial == nullptr || in[0].pieces > 1 || in[1].pieces > 1) return {};
  auto few = GatherFew(in, prod, raw);
  if (!few || few->positions.size() < 2) return {};
  const auto trees = SumTrees::For(acc, static_cast<int>(few->positions.size()));
  std::vector<double> sums;
  trees->Evaluate(few->passes[0], &sums);
  bool together = false;
  for (size_t s = 0; s < sums.size(); ++s) {
    if (store(sums[s]) != stored) continue;
    if (!trees->one_chunk(s)) return {};
    together = true;
  }
  return together ? std::move(few->positions) : std::vector<int64_t>();
}

}  // namespace ulpscope
