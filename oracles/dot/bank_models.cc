// Enumerates the models of a matrix product.
#include <cstring>
#include <mutex>
#include <set>

#include "harness/model/conforming.h"
#include "harness/num/error_free.h"
#include "harness/num/float_format.h"
#include "oracles/dot/bank.h"
#include "oracles/dot/trees.h"

namespace ulpscope {
namespace {

int FormatPrecision(const RoundSpec& in, DType dtype) {
  if (in.pieces > 1) return 24;
  return in.format != nullptr ? in.format->precision : FormatOf(dtype)->precision;
}

/// Another model of a product of `in` than those that it is a detour of; identities have one name: see hypothesis.h.
bool IsOfItsOwn(const DotModel& model, DType in, const FloatFormat& stored) {
  const FloatFormat& operand = *FormatOf(in);
  if (model.in.format != nullptr && (Holds(*model.in.format, operand) || operand.precision <= 11))
    return false;
  // Units with float16 accumulators take float16.
  if (model.acc.block > 0 && model.acc.format->precision < 24 && in != DType::kFloat16) return false;
  // A rounding after the sum is tried if the accumulator itself is a plain wide one.
  const bool plain_wide = model.acc.partial == nullptr && !model.acc.in_two_words() && !model.acc.exact() &&
                          model.acc.format->precision >= 24;
  if (!model.mid.none() && !plain_wide) return false;
  if (model.in.drops_operands() && !plain_wide) return false;
  const bool narrow_sum =
      !model.acc.exact() && (model.acc.partial != nullptr || model.acc.format->precision < 24);
  if (model.in.passes > 1 &&
      (narrow_sum || (model.in.passes == 9 &&
                      (model.acc.exact() || model.acc.in_two_words() || model.acc.format->precision == 53))))
    return false;
  // Sums of float16 products are multiples of 2^-48: float32 has no subnormal there.
  if (model.acc.subnormals == Subnormals::kFlushed &&
      (operand.emin > -126 || stored.emin > -126 ||
       (model.in.format != nullptr && model.in.format->emin > -126) ||
       (model.mid.format != nullptr && model.mid.format->emin > -126)))
    return false;
  if (model.prod.format != nullptr && 2 * FormatPrecision(model.in, in) <= model.prod.format->precision &&
      model.prod.format->emin <= -126)
    return false;
  const FloatFormat* sum = SumFormat(model.acc);
  if (model.mid.format != nullptr &&
      (*model.mid.format == stored || (sum != nullptr && Holds(*model.mid.format, *sum))))
    return false;
  const FloatFormat* before = model.mid.format != nullptr ? model.mid.format : sum;
  if (model.name.out.rounding != Rounding::kNearestEven && before != nullptr && Holds(stored, *before))
    return false;
  return true;
}

}  // namespace

DotModel DotModelOf(const PrecisionModel& model, DType in) {
  DotModel dot{.name = model,
               .in = model.in.empty() ? RoundSpec{} : model.in.begin()->second,
               .prod = model.prod,
               .mid = model.mid,
               .out = model.out,
               .acc = model.acc};
  if (dot.in.format == nullptr && dot.in.drops_operands()) dot.in.daz_below = FormatOf(in)->emin;
  return dot;
}

double EmulateDot(const DotModel& model, const SumOrder& order, std::span<const double> a,
                  std::span<const double> b) {
  thread_local std::vector<std::vector<SumTerm>> passes;
  const size_t count = model.in.pieces > 1 ? static_cast<size_t>(model.in.passes) : 1;
  passes.resize(count);
  for (auto& pass : passes) pass.assign(a.size(), SumTerm{.value = {}, .exponent = -4000});
  for (size_t k = 0; k < a.size(); ++k) {
    if (a[k] == 0 && b[k] == 0) continue;
    const Products products = Multiply(model.in, model.in, model.prod, a[k], b[k]);
    for (size_t pass = 0; pass < count; ++pass) {
      SumTerm term = TermOf(products.a[pass], products.b[pass]);
      term.value = products.value[pass];
      passes[pass][k] = term;
    }
  }
  TwoDoubles sum = SumInOrder(model.acc, order, passes[0], nullptr);
  for (size_t pass = 1; pass < count; ++pass) {
    const TwoDoubles next = SumInOrder(model.acc, order, passes[pass], nullptr);
    sum = model.acc.exact() ? Add(sum, next)
                            : TwoDoubles{.hi = AddPartials(model.acc, sum.hi, next.hi), .lo = 0};
  }
  return model.Store(sum);
}

DotBank::DotBank(DType in, DType out) {
  const FloatFormat& stored = *FormatOf(out);
  std::set<std::string> seen;
  const auto add = [&](const std::string& in_word, const std::string& prod, const std::string& acc_word,
                       const std::string& mid, Rounding mode) {
    PrecisionModel name;
    if (in_word != "as_is") name.in["*"] = *ParseIn(in_word);
    name.prod = *ParseProd(prod);
    name.acc = *ParseAcc(acc_word);
    name.mid = *ParseMid(mid);
    name.out = {.format = &stored, .rounding = mode};
    DotModel model = DotModelOf(name, in);
    if (!IsOfItsOwn(model, in, stored)) return;
    // A block unit of n, and split-K, round float32 sums: a float64 accumulator of float16 operands and exact sums
    // differ only in long sums.
    if (!seen.insert(name.Name()).second) return;
    models_.push_back(std::move(model));
  };
  constexpr Rounding kModes[] = {Rounding::kNearestEven, Rounding::kTowardZero, Rounding::kNearestAway};
  std::vector<std::string> ins = InWords(), accs = AccWords();
  ins.push_back("as_is+daz");
  accs.push_back("float32+ftz");
  if (in == DType::kBfloat16) accs.insert(accs.end(), {"float32_odd", "float32_odd+ftz"});
  if (in == DType::kFloat64 && out == DType::kFloat64) accs.push_back("float64+ftz");
  for (const auto& in_word : ins) {
    for (const auto& acc : accs) {
      for (const auto& mid : MidWords()) {
        for (const Rounding mode : kModes) {
          if (mid != "none" && mode != Rounding::kNearestEven) continue;
          add(in_word, "exact", acc, mid, mode);
        }
      }
    }
  }
  // Rounded products, as in kernels: one multiplication and one addition in the accumulator's own format, or narrow
  // products in float32 sums.
  constexpr std::pair<const char*, const char*> kRoundedProducts[] = {{"float32", "float32"},
                                                                      {"float32", "float32_rz"},
                                                                      {"float16", "float32"},
                                                                      {"float16", "float64"},
                                                                      {"float16", "float16"},
                                                                      {"bfloat16", "float32"},
                                                                      {"bfloat16", "float64"},
                                                                      {"bfloat16", "bfloat16"},
                                                                      {"float16", "float16_via_float32"},
                                                                      {"bfloat16", "bfloat16_via_float32"}};
  for (const auto& [prod, acc] : kRoundedProducts) {
    for (const Rounding mode : kModes) add("as_is", prod, acc, "none", mode);
  }
  std::map<std::string, size_t> known;
  for (const DotModel& model : models_) {
    PrecisionModel key = model.name;
    key.mid = {};
    key.out = {};
    const auto [entry, is_new] = known.emplace(key.Name(), cores_.size());
    if (is_new) cores_.push_back({.in = model.in, .prod = model.prod, .acc = model.acc});
    core_of_.push_back(entry->second);
  }
}

const DotBank& DotBank::For(DType in, DType out) {
  static std::mutex mutex;
  static std::map<std::pair<DType, DType>, std::unique_ptr<DotBank>> banks;
  const std::lock_guard lock(mutex);
  auto& bank = banks[{in, out}];
  if (!bank) bank = std::make_unique<DotBank>(in, out);
  return *bank;
}

}  // namespace ulpscope
