// The rows of the model vocabulary.
#include "oracles/models.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "harness/base/text.h"
#include "oracles/error_free.h"

namespace ulpscope {
namespace {

std::optional<Rounding> ParseMode(std::string_view mode) {
  if (mode == "rne") return Rounding::kNearestEven;
  if (mode == "rna") return Rounding::kNearestAway;
  if (mode == "rz") return Rounding::kTowardZero;
  return std::nullopt;
}

/// "bfloat16_rne" -> format and mode; a trailing "+ftz" or "+daz" flushes subnormals.
std::optional<RoundSpec> ParseFormatAndMode(std::string_view word) {
  RoundSpec spec;
  for (const std::string_view suffix : {"+ftz", "+daz"}) {
    if (word.ends_with(suffix)) {
      spec.subnormals = Subnormals::kFlushed;
      word.remove_suffix(suffix.size());
    }
  }
  const size_t split = word.rfind('_');
  if (split == std::string_view::npos) return std::nullopt;
  const auto mode = ParseMode(word.substr(split + 1));
  spec.format = FindFormat(word.substr(0, split));
  if (!mode || spec.format == nullptr) return std::nullopt;
  spec.rounding = *mode;
  return spec;
}

double Pow2(int exponent) { return std::ldexp(1.0, exponent); }

/// (1 + unit)^n - 1, rounded upwards by a little.
double Growth(double unit, double n) { return n <= 0 ? 0 : std::expm1(n * std::log1p(unit)) * (1 + 0x1p-40); }

}  // namespace

double AccSpec::Unit() const {
  if (exact()) return 0;
  const double unit = Pow2((rounding == Rounding::kTowardZero ? 1 : 0) - format->precision);
  return via_float32 ? unit + 0x1p-24 + unit * 0x1p-24 : unit;
}

double AccSpec::RelativeBound(int64_t n) const {
  if (exact()) return 0;
  const auto steps = static_cast<double>(n);
  if (rounding == Rounding::kNearestEven && !via_float32) return steps * Unit() * (1 + 0x1p-40);
  return Growth(Unit(), steps);
}

double AccSpec::AbsoluteBound(int64_t n) const {
  if (exact()) return 0;
  const double quantum = subnormals == Subnormals::kFlushed ? Pow2(format->emin) : format->SmallestSubnormal();
  return static_cast<double>(n + 1) * quantum;
}

double AccSpec::Step(double s, TwoDoubles t) const {
  if (!std::isfinite(s) || !std::isfinite(t.hi)) return s + t.hi;
  return Store(AddExactly(s, t));
}

double AccSpec::Store(TwoDoubles value) const {
  if (exact()) return value.hi;
  if (via_float32) return RoundTo(RoundTo(value, Binary32()), *format, rounding, subnormals);
  return RoundTo(value, *format, rounding, subnormals);
}

std::optional<RoundSpec> ParseIn(std::string_view word) {
  if (word == "as_is") return RoundSpec{};
  return ParseFormatAndMode(word);
}

std::optional<RoundSpec> ParseProd(std::string_view word) {
  if (word == "exact") return RoundSpec{};
  const FloatFormat* format = FindFormat(word);
  if (format == nullptr) return std::nullopt;
  return RoundSpec{.format = format, .rounding = Rounding::kNearestEven, .subnormals = Subnormals::kGradual};
}

std::optional<AccSpec> ParseAcc(std::string_view word) {
  AccSpec spec;
  if (word.ends_with("+ftz")) {
    spec.subnormals = Subnormals::kFlushed;
    word.remove_suffix(4);
  }
  if (word == "exact") return AccSpec{};
  if (word.ends_with("_via_float32")) {
    spec.via_float32 = true;
    word.remove_suffix(std::string_view("_via_float32").size());
  } else if (word.ends_with("_rz")) {
    spec.rounding = Rounding::kTowardZero;
    word.remove_suffix(3);
  }
  spec.format = FindFormat(word);
  if (spec.format == nullptr) return std::nullopt;
  return spec;
}

std::optional<RoundSpec> ParseMid(std::string_view word) {
  if (word == "none") return RoundSpec{};
  return ParseProd(word);
}

std::optional<RoundSpec> ParseOut(std::string_view word) { return ParseFormatAndMode(word); }

const std::vector<std::string>& InWords() {
  static const std::vector<std::string> words{"as_is", "bfloat16_rne", "bfloat16_rz", "tf32_rne", "tf32_rna", "tf32_rz", "float16_rne"};
  return words;
}
const std::vector<std::string>& ProdWords() {
  static const std::vector<std::string> words{"exact", "float32", "float16", "bfloat16"};
  return words;
}
const std::vector<std::string>& AccWords() {
  static const std::vector<std::string> words{"exact", "float64", "float32", "float32_rz", "float16", "float16_via_float32", "bfloat16", "bfloat16_via_float32"};
  return words;
}
const std::vector<std::string>& MidWords() {
  static const std::vector<std::string> words{"none", "bfloat16", "float16", "tf32", "float32"};
  return words;
}

const std::vector<PrecisionModel>& ModelBank() {
  static const std::vector<PrecisionModel> bank = [] {
    std::vector<PrecisionModel> rows;
    const auto add = [&](const std::string& in, const std::string& prod, const std::string& acc, const std::string& mid, const std::string& out) {
      PrecisionModel model;
      if (in != "as_is") model.in["*"] = in;
      model.prod = prod;
      model.acc = acc;
      model.mid = mid;
      model.out = out;
      rows.push_back(std::move(model));
    };
    for (const auto& acc : AccWords()) add("as_is", "exact", acc, "none", "float32_rne");
    for (const auto& in : InWords()) {
      if (in != "as_is") add(in, "exact", "float32", "none", "float32_rne");
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

Result<PrecisionModel> ParsePrecisionModel(std::string_view name) {
  PrecisionModel model;
  const auto bad = [&](std::string_view what, std::string_view word, std::string_view expected) {
    Error error;
    error.message = "precision model: " + std::string(what);
    error.found = "'" + std::string(word) + "'";
    error.expected = std::string(expected);
    return Fail(std::move(error));
  };
  const auto entries = [](std::string_view text) {
    std::map<std::string, std::string> map;
    for (const auto& part : SplitOutsideParentheses(text, ',')) {
      const size_t colon = part.rfind(':');
      if (colon == std::string::npos) map["*"] = part;
      else map[part.substr(0, colon)] = part.substr(colon + 1);
    }
    return map;
  };
  for (const auto& part : SplitOutsideParentheses(name, ';')) {
    const size_t equals = part.find('=');
    if (equals == std::string::npos) return bad("a part without '='", part, "in=..;prod=..;acc=..;mid=..;out=..");
    const std::string facet = part.substr(0, equals), word = part.substr(equals + 1);
    if (facet == "in") {
      model.in.clear();
      for (const auto& [operand, in] : entries(word)) {
        if (!ParseIn(in)) return bad("unknown input rounding", in, Join(InWords(), ", "));
        if (in != "as_is") model.in[operand] = in;
      }
    } else if (facet == "prod") {
      if (!ParseProd(word)) return bad("unknown product", word, Join(ProdWords(), ", "));
      model.prod = word;
    } else if (facet == "acc") {
      if (!ParseAcc(word)) return bad("unknown accumulator", word, Join(AccWords(), ", "));
      model.acc = word;
    } else if (facet == "mid") {
      if (!ParseMid(word)) return bad("unknown mid rounding", word, Join(MidWords(), ", "));
      model.mid = word;
    } else if (facet == "out") {
      if (!ParseOut(word)) return bad("unknown store", word, "DTYPE_rne, DTYPE_rz or DTYPE_rna");
      model.out = word;
    } else if (facet == "cuts") {
      model.cuts = entries(word);
      for (const auto& [cut, format] : model.cuts) {
        if (!ParseMid(format)) return bad("unknown cut format", format, Join(MidWords(), ", "));
      }
    } else {
      return bad("unknown facet", facet, "in, prod, acc, mid, out, cuts");
    }
  }
  return model;
}

}  // namespace ulpscope
