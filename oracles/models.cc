// Arithmetic and bounds of the words of precision models, and the rows that are tested.
#include "oracles/models.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "harness/base/text.h"
#include "harness/num/error_free.h"
#include "oracles/dot/two_word_sums.h"
#include "oracles/growth.h"

namespace ulpscope {
namespace {

double Pow2(int exponent) { return std::ldexp(1.0, exponent); }

}  // namespace

const FloatFormat* SumFormat(const AccSpec& acc) {
  if (acc.exact()) return nullptr;
  return acc.combine != nullptr
             ? (acc.combine->precision >= acc.partial->precision ? acc.combine : acc.partial)
             : acc.format;
}

double UnitOf(const AccSpec& acc) {
  if (acc.exact()) return 0;
  if (acc.partial != nullptr)
    return std::max(std::max(Pow2(-24), Pow2(-acc.partial->precision)), Pow2(-acc.combine->precision));
  if (acc.block > 0) return Pow2(1 - acc.bits());
  const bool nearest = acc.rounding == Rounding::kNearestEven || acc.rounding == Rounding::kNearestAway;
  const double unit = Pow2((nearest ? 0 : 1) - acc.format->precision);
  return acc.via_float32 ? unit + 0x1p-24 + unit * 0x1p-24 : unit;
}

double RelativeBound(const AccSpec& acc, int64_t n) {
  if (acc.exact()) return 0;
  const auto steps = static_cast<double>(n);
  // The chunk's float32 sum, its rounding to the stored format, and at most n - 1 additions of partials.
  if (acc.partial != nullptr)
    return Growth(0x1p-24, steps) +
           (1 + Growth(0x1p-24, steps)) *
               (Pow2(-acc.partial->precision) +
                (1 + Pow2(-acc.partial->precision)) * Growth(Pow2(-acc.combine->precision), steps));
  // Below 2^(emax-F), where 2^emax is at most the largest product or running sum of a block, each of n terms is
  // truncated once, and the running sum once in each of at most n steps, of which each rounds its result (at most 2^-23
  // of it, or 2^-F). A sum of parts begins with a zero, which is not truncated, for each addition of one to another, to
  // nearest in float32. A truncation is counted against sum|t|, to which every running sum stays close: Growth covers
  // its own error, and is largest if all steps err alike.
  if (acc.block > 0)
    return Growth(Pow2(-acc.fraction) + std::max(Pow2(-acc.fraction), Pow2(-24)) + Pow2(1 - acc.bits()),
                  steps);
  if (acc.in_two_words()) return RowOf(acc.two_words).relative_bound(steps);
  if (acc.rounding == Rounding::kNearestEven && !acc.via_float32) return steps * UnitOf(acc) * (1 + 0x1p-40);
  return Growth(UnitOf(acc), steps);
}

double AbsoluteBound(const AccSpec& acc, int64_t n) {
  if (acc.exact()) return 0;
  const double quantum =
      acc.subnormals == Subnormals::kFlushed ? Pow2(acc.format->emin) : acc.format->SmallestSubnormal();
  return static_cast<double>(n + 1) * quantum;
}

bool SumsExactly(const AccSpec& acc, int lowest, double most) {
  if (acc.exact() || most == 0) return true;
  if (!std::isfinite(most)) return false;
  // Each multiple of 2^lowest below 2^(lowest + p) has at most p bits, and a block unit truncates nothing
  // when it aligns to one of them.
  int bits = acc.bits();
  const auto holds = [&](const FloatFormat& format) {
    const int quantum =
        acc.subnormals == Subnormals::kFlushed ? format.emin : format.emin - format.precision + 1;
    bits = std::min(bits, format.precision);
    return lowest >= quantum && most <= format.max_finite;
  };
  const bool held = acc.partial != nullptr ? holds(Binary32()) && holds(*acc.partial) && holds(*acc.combine)
                                           : holds(*acc.format) && (!acc.via_float32 || holds(Binary32()));
  // Running sums are aligned by their stored exponents, which subnormal ones share.
  const int largest = acc.block > 0 ? std::max(std::ilogb(most), acc.format->emin) : std::ilogb(most);
  return held && largest < lowest + bits;
}

double StepIn(const AccSpec& acc, double s, TwoDoubles t) {
  if (!std::isfinite(s) || !std::isfinite(t.hi)) return s + t.hi;
  // Most sums are of this form: float32 to nearest, products that one double holds. The sum in round to odd
  // leaves the second rounding to the conversion.
  if (acc.format == &Binary32() && t.lo == 0 && acc.rounding == Rounding::kNearestEven && !acc.via_float32 &&
      acc.combine == nullptr && acc.subnormals == Subnormals::kGradual)
    return static_cast<float>(ToOdd(TwoSum(s, t.hi)));
  return StoreIn(acc, AddExactly(s, t));
}

double StoreIn(const AccSpec& acc, TwoDoubles value) {
  if (acc.exact()) return value.hi;
  if (acc.combine != nullptr) return RoundTo(value, *acc.combine, acc.rounding, acc.subnormals);
  if (acc.via_float32) return RoundTo(RoundTo(value, Binary32()), *acc.format, acc.rounding, acc.subnormals);
  return RoundTo(value, *acc.format, acc.rounding, acc.subnormals);
}

Products Multiply(const RoundSpec& in_a, const RoundSpec& in_b, const RoundSpec& prod, double a, double b) {
  Products products;
  const auto add = [&](double x, double y) {
    const auto i = static_cast<size_t>(products.count++);
    products.a[i] = x;
    products.b[i] = y;
    const double plain = x * y;
    products.value[i] =
        std::isfinite(plain) && plain != 0 ? TwoProduct(x, y) : TwoDoubles{.hi = plain, .lo = 0};
    if (prod.format != nullptr) products.value[i] = {.hi = prod.Apply(products.value[i]), .lo = 0};
  };
  if (in_a.pieces == 1 && in_b.pieces == 1) {
    add(in_a.Apply(a), in_b.Apply(b));
    return products;
  }
  const auto split = [](const RoundSpec& spec, double value) {
    std::array<double, 3> pieces{};
    RoundSpec one = spec;
    one.pieces = 1;
    double rest = value;
    for (int i = 0; i < spec.pieces; ++i) {
      pieces[static_cast<size_t>(i)] = one.Apply(rest);
      rest = std::isfinite(pieces[static_cast<size_t>(i)]) ? rest - pieces[static_cast<size_t>(i)] : 0;
    }
    return pieces;
  };
  const auto pieces_a = split(in_a, a), pieces_b = split(in_b, b);
  // By falling weight of i + j: three passes keep weights 0 and 1, six keep 0 to 2, nine keep all.
  const int passes = std::max(in_a.passes, in_b.passes), most = passes == 3 ? 1 : passes == 6 ? 2 : 4;
  for (int weight = most; weight >= 0; --weight) {
    for (int i = std::max(0, weight - 2); i <= std::min(2, weight); ++i) {
      if (i < in_a.pieces && weight - i < in_b.pieces)
        add(pieces_a[static_cast<size_t>(i)], pieces_b[static_cast<size_t>(weight - i)]);
    }
  }
  return products;
}

const std::vector<PrecisionModel>& ModelBank() {
  static const std::vector<PrecisionModel> bank = [] {
    std::vector<PrecisionModel> rows;
    const auto add = [&](const std::string& in, const std::string& prod, const std::string& acc,
                         const std::string& mid, const std::string& out) {
      PrecisionModel model;
      if (in != "as_is") model.in["*"] = *ParseIn(in);
      model.prod = *ParseProd(prod);
      model.acc = *ParseAcc(acc);
      model.mid = *ParseMid(mid);
      model.out = *ParseOut(out);
      rows.push_back(std::move(model));
    };
    // Families that differ only in a number have one member here; ci/selfcheck has them all.
    for (const char* acc :
         {"exact", "float64", "compensated", "float32", "float32_rz", "blockfma(8,24,rz)", "float16",
          "float16_via_float32", "bfloat16", "bfloat16_via_float32", "split_k(bfloat16,float32)"}) {
      add("as_is", "exact", acc, "none", "float32_rne");
    }
    for (const auto& in : InWords()) {
      if (in != "as_is" && in != "bf16x6" && in != "bf16x9")
        add(in, "exact", "float32", "none", "float32_rne");
    }
    for (const auto& prod : ProdWords()) {
      if (prod != "exact") add("as_is", prod, "float32", "none", "float32_rne");
    }
    for (const auto& mid : MidWords()) {
      if (mid != "none") add("as_is", "exact", mid == "float32" ? "float64" : "float32", mid, "float32_rne");
    }
    add("as_is", "bfloat16", "bfloat16", "none", "float32_rne");
    add("bfloat16_rne", "exact", "float32", "bfloat16", "float32_rne");
    add("as_is", "exact", "float64", "bfloat16", "float32_rne");
    add("as_is", "exact", "float32", "none", "float32_rz");
    return rows;
  }();
  return bank;
}

namespace {

Error BadModel(std::string_view what, std::string_view word, std::string_view expected) {
  Error error;
  error.message = "precision model: " + std::string(what);
  error.found = "'" + std::string(word) + "'";
  error.expected = std::string(expected);
  return error;
}

/// "x:bfloat16_rne,y:tf32_rne": words by name; one without a name is under "*".
std::map<std::string, std::string> EntriesOf(std::string_view text) {
  std::map<std::string, std::string> entries;
  for (const auto& part : SplitOutsideParentheses(text, ',')) {
    const size_t colon = part.rfind(':');
    if (colon == std::string::npos)
      entries["*"] = part;
    else
      entries[part.substr(0, colon)] = part.substr(colon + 1);
  }
  return entries;
}

template <class Spec>
Result<Spec> Read(std::optional<Spec> (*parse)(std::string_view), std::string_view what,
                  const std::string& word, const std::vector<std::string>& words) {
  const auto spec = parse(word);
  if (!spec) return Fail(BadModel(what, word, Join(words, ", ")));
  return *spec;
}

Result<void> ReadFacet(const std::string& facet, const std::string& word, PrecisionModel* model) {
  if (facet == "in") {
    model->in.clear();
    for (const auto& [operand, each] : EntriesOf(word)) {
      const RoundSpec in = ULPSCOPE_TRY(Read(ParseIn, "unknown input rounding", each, InWords()));
      if (!in.none()) model->in[operand] = in;
    }
  } else if (facet == "prod") {
    model->prod = ULPSCOPE_TRY(Read(ParseProd, "unknown product", word, ProdWords()));
  } else if (facet == "acc") {
    model->acc = ULPSCOPE_TRY(Read(ParseAcc, "unknown accumulator", word, AccWords()));
  } else if (facet == "mid") {
    model->mid = ULPSCOPE_TRY(Read(ParseMid, "unknown mid rounding", word, MidWords()));
  } else if (facet == "out") {
    model->out = ULPSCOPE_TRY(
        Read(ParseOut, "unknown store", word, {"DTYPE_rne", "DTYPE_rz", "DTYPE_rna or DTYPE_faithful"}));
  } else if (facet == "cuts") {
    model->cuts.clear();
    for (const auto& [cut, format] : EntriesOf(word))
      model->cuts[cut] = ULPSCOPE_TRY(Read(ParseMid, "unknown cut format", format, MidWords()));
  } else {
    return Fail(BadModel("unknown facet", facet, "in, prod, acc, mid, out, cuts"));
  }
  return {};
}

}  // namespace

Result<PrecisionModel> ParsePrecisionModel(std::string_view name) {
  PrecisionModel model;
  for (const auto& part : SplitOutsideParentheses(name, ';')) {
    const size_t equals = part.find('=');
    if (equals == std::string::npos)
      return Fail(BadModel("a part without '='", part, "in=..;prod=..;acc=..;mid=..;out=.."));
    ULPSCOPE_TRY(ReadFacet(part.substr(0, equals), part.substr(equals + 1), &model));
  }
  return model;
}

}  // namespace ulpscope
