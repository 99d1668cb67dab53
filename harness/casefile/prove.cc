// Turns a case into its auxiliary inputs.
#include "harness/casefile/prove.h"

#include <algorithm>
#include <optional>
#include <set>

#include "harness/base/find.h"
#include "harness/casefile/open.h"
#include "harness/casefile/proved_products.h"
#include "harness/model/cross.h"

namespace ulpscope {
namespace {

constexpr char kTilde = '~';
/// The number of results that a probe has to show before it counts as run: a few hundred random significands leave no
/// rival by chance.
constexpr int64_t kWantedResults = 192;
/// The most auxiliary inputs of one product and probe, and of one case.
constexpr int64_t kMostRounds = 6;
constexpr size_t kMostCompanions = 30;
/// Shorter sums are not split: no candidate model splits them either.
constexpr int64_t kLeastSplitLength = 128;

/// Sums of fewer terms are tested with ordinary numbers.
constexpr int64_t kFewTerms = 3;
/// Another one: numbers of sizes that float16 does not hold.
constexpr char kRange[] = "range";

/// And numbers far from zero with small differences: a mean that is rounded to 16 bits moves everything.
constexpr char kShifted[] = "shifted";
/// The probe of ops that take a mean away.
constexpr char kOpposed[] = "opposed";

bool IsFill(std::string_view probe) { return probe == kOrdinary || probe == kRange || probe == kShifted; }

Attr FillOf(std::string_view probe) {
  if (probe == kOrdinary) return Attr{.value = std::string(kOrdinary)};
  Attr::Map parameters, fill;
  const bool shifted = probe == kShifted;
  parameters[shifted ? "mean" : "low"] = Attr{.value = std::string(shifted ? "8" : "-30")};
  parameters[shifted ? "scale" : "high"] = Attr{.value = std::string(shifted ? "1" : "30")};
  fill[shifted ? "normal" : "wide_exponent"] = Attr{.value = std::move(parameters)};
  return Attr{.value = std::move(fill)};
}

/// The probes for a demand. Accumulators are probed whatever facet is demanded: a rounding after the sum can be
/// distinguished from one in it only if the sum itself is known.
std::vector<std::string> ProbesFor(const ValueDemand& demand, const ProvedProduct& product) {
  if (demand.facets.empty()) return {};
  const int64_t k = product.a.k();
  if (!product.probe.empty()) {
    if (product.probe != kOrdinary && k < LeastCrossLength(product.probe)) return {};
    // Around a large mean, one-pass forms have larger errors than float32 output rounding hides.
    if (product.probe == kOpposed && product.is_short) return {product.probe, kShifted};
    return {product.probe};
  }
  // Narrow sums of products show in the products' own bits; a sum of single values needs a tie.
  std::vector<std::string> probes =
      product.IsSum() ? std::vector<std::string>{"tie", "swamp", "wide", "half"}
                      : std::vector<std::string>{"single", "cancel", "swamp", "wide", "half"};
  // Single values of 16 bits are stored unchanged between chunks, so splitting them has no effect.
  const FloatFormat* format = FormatOf(product.a.tensor->dtype);
  const bool traced = !product.IsSum() || (format != nullptr && format->precision > Binary16().precision);
  if (k >= kLeastSplitLength && traced) probes.emplace_back("chunk");
  // For two products and their sum, ordinary numbers are as informative. With a 16-bit output they show how near sums
  // come to exact ones.
  if (k < kFewTerms || product.is_short) probes.emplace_back(kOrdinary);
  // Sums of so few terms have no rows that leave float16's range.
  if (k < kFewTerms && product.IsSum() && format != nullptr && format->emax > Binary16().emax)
    probes.emplace_back(kRange);
  std::erase_if(probes,
                [&](const std::string& probe) { return !IsFill(probe) && k < LeastCrossLength(probe); });
  return probes;
}

Attr CrossFill(const std::string& name, const char* role, const ProvedOperand& operand, int64_t from) {
  Attr::Map parameters;
  parameters["name"] = Attr{.value = name};
  parameters["role"] = Attr{.value = std::string(role)};
  parameters["dim"] = Attr{.value = std::to_string(operand.dim)};
  parameters["from"] = Attr{.value = std::to_string(from)};
  Attr::Map fill;
  fill["cross"] = Attr{.value = std::move(parameters)};
  return Attr{.value = std::move(fill)};
}

void Refill(Case* one, const TensorSpec* tensor, Attr fill) {
  for (TensorSpec& each : one->tensors) {
    if (each.name == tensor->name) each.fill = std::move(fill);
  }
}

Companion MakeCompanion(const Case& base, const ProvedProduct& product, const std::string& probe,
                        int64_t round, std::string name) {
  Companion companion{.name = std::move(name), .probe = probe, .test_case = base};
  Case& one = companion.test_case;
  one.companion_of = base.id;
  one.id += kTilde + companion.name;
  one.asked_of = base.contract.values;
  one.contract = {};
  one.expect.clear();
  if (IsFill(probe)) {
    for (const TensorSpec* tensor : {product.a.tensor, product.b.tensor, product.addend}) {
      if (tensor != nullptr) Refill(&one, tensor, FillOf(probe));
    }
    return companion;
  }
  Refill(&one, product.a.tensor,
         CrossFill(probe, product.IsSum() ? "sum" : "a", product.a, round * product.a.lines()));
  if (product.IsSum()) return companion;
  Refill(&one, product.b.tensor, CrossFill(probe, "b", product.b, round * product.b.lines()));
  // An addend is kept with single products only; elsewhere it would hide the rest of the sum, and small products too.
  if ((probe != "single" || round % 2 == 1) && product.addend != nullptr &&
      product.addend != product.a.tensor && product.addend != product.b.tensor)
    Refill(&one, product.addend, Attr{.value = std::string("zeros")});
  return companion;
}

/// The number of runs of one probe until enough results have shown it, and every row of its own was used.
int64_t RoundsOf(const ProvedProduct& product, const std::string& probe) {
  if (IsFill(probe)) return 1;
  int64_t rounds = (kWantedResults + product.results - 1) / std::max<int64_t>(1, product.results);
  if (probe == "single" && product.addend != nullptr) rounds = std::max<int64_t>(rounds, 2);
  if (probe == "chunk") {
    const auto partners = static_cast<int64_t>(ChunkPartners(product.a.k()).size());
    const int64_t lines = std::max<int64_t>(1, product.IsSum() ? product.a.lines() : product.b.lines());
    rounds = std::max(rounds, (partners + lines - 1) / lines);
  }
  return std::clamp<int64_t>(rounds, 1, kMostRounds);
}

/// The products that a demanded value depends on. Gradients do not depend on the forward value's own sum.
bool IsOnPath(const ProvedProduct& product, const std::string& value, const std::set<std::string>& path) {
  if (product.value == value) return true;
  return !value.ends_with(".grad") && path.contains(product.value);
}

}  // namespace

std::vector<Companion> CompanionsOf(const Case& test_case) {
  std::vector<Companion> companions;
  if (!test_case.contract.prove) return companions;
  const ProvedProducts found = FindProducts(test_case);
  std::vector<std::pair<const ProvedProduct*, std::vector<std::string>>> asked;
  for (const ProvedProduct& product : found.products) {
    std::vector<std::string> probes;
    for (const auto& [value, demand] : test_case.contract.values) {
      if (!IsOnPath(product, value, found.PathOf(value))) continue;
      for (const std::string& probe : ProbesFor(demand, product)) {
        if (!Contains(probes, probe)) probes.push_back(probe);
      }
    }
    if (!probes.empty()) asked.emplace_back(&product, std::move(probes));
  }
  // Each probe once before any a second time: if there are too many, none is left out.
  for (int64_t round = 0; round < kMostRounds; ++round) {
    for (const auto& [product, probes] : asked) {
      for (const std::string& probe : probes) {
        if (round >= RoundsOf(*product, probe) || companions.size() >= kMostCompanions) continue;
        std::string name = asked.size() > 1 ? product->value + "." + probe : probe;
        if (round > 0) name += "." + std::to_string(round + 1);
        companions.push_back(MakeCompanion(test_case, *product, probe, round, std::move(name)));
      }
    }
  }
  return companions;
}

std::set<std::string> Provable(const Case& test_case) {
  const auto products = FindProducts(test_case).products;
  std::set<std::string> values;
  for (const auto& [value, demand] : test_case.contract.values) {
    for (const ProvedProduct& product : products) {
      if ((product.value == value || product.buffer == value) && !ProbesFor(demand, product).empty())
        values.insert(value);
    }
  }
  return values;
}

std::vector<Case> WithCompanions(const std::vector<Case>& cases, Steps steps) {
  std::vector<Case> all;
  for (const Case& one : cases) {
    all.push_back(one);
    for (Companion& companion : CompanionsOf(one)) all.push_back(std::move(companion.test_case));
    if (auto opened = steps == Steps::kOpened ? Opened(one) : std::nullopt) all.push_back(std::move(*opened));
  }
  return all;
}

bool IsOrdinary(const Case& companion) {
  const auto ends_with = [&](char before) { return companion.id.ends_with(before + std::string(kOrdinary)); };
  return !companion.companion_of.empty() && (ends_with(kTilde) || ends_with('.'));
}

std::string_view BaseOf(std::string_view id) {
  const size_t tilde = id.rfind(kTilde);
  return tilde == id.npos ? std::string_view() : id.substr(0, tilde);
}

}  // namespace ulpscope
