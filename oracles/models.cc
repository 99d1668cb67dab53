// The rows of the model vocabulary.
#include "oracles/models.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <charconv>
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

/// blockfma's arguments: n, F, mode.
std::optional<AccSpec> ParseBlock(AccSpec spec, const std::vector<std::string>& arguments) {
  const auto number = [](const std::string& text) {
    int value = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
    return end.ec == std::errc() && end.ptr == text.data() + text.size() ? value : 0;
  };
  std::string mode = arguments[2];
  for (char& letter : mode) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  spec.format = &Binary32();
  if (mode.ends_with("_float16")) {
    spec.format = &Binary16();
    mode.resize(mode.size() - std::string_view("_float16").size());
  }
  const auto rounding = ParseMode(mode);
  spec.block = number(arguments[0]);
  spec.fraction = number(arguments[1]);
  if (spec.block < 2 || spec.block > 64 || spec.fraction < 8 || spec.fraction > 40 || !rounding)
    return std::nullopt;
  spec.rounding = *rounding;
  return spec;
}

double Pow2(int exponent) { return std::ldexp(1.0, exponent); }

/// (1 + unit)^n - 1, rounded upwards by a little.
double Growth(double unit, double n) { return n <= 0 ? 0 : std::expm1(n * std::log1p(unit)) * (1 + 0x1p-40); }

}  // namespace

double AccSpec::Unit() const {
  if (exact()) return 0;
  if (partial != nullptr)
    return std::max(std::max(Pow2(-24), Pow2(-partial->precision)), Pow2(-combine->precision));
  if (block > 0) return Pow2(1 - format->precision);
  const double unit = Pow2((rounding == Rounding::kTowardZero ? 1 : 0) - format->precision);
  return via_float32 ? unit + 0x1p-24 + unit * 0x1p-24 : unit;
}

double AccSpec::RelativeBound(int64_t n) const {
  if (exact()) return 0;
  const auto steps = static_cast<double>(n);
  // The chunk's float32 sum, its store, and at most n - 1 additions of partials.
  if (partial != nullptr)
    return Growth(0x1p-24, steps) +
           (1 + Growth(0x1p-24, steps)) *
               (Pow2(-partial->precision) +
                (1 + Pow2(-partial->precision)) * Growth(Pow2(-combine->precision), steps));
  // Each of at most n block steps cuts up to block + 1 terms below 2^(emax-F), where 2^emax is at most the
  // largest product or running sum, and rounds the result (at most 2^-23 of it; a promoted partial sum is
  // added to nearest, which errs by less). A cut is counted against sum|t|, to which every running sum stays
  // close: Growth covers its own error.
  if (block > 0) return Growth((block + 1) * Pow2(-fraction) + Pow2(1 - format->precision), steps);
  if (compensated) return 0x1p-24 + Growth(0x1p-24, steps) * Growth(0x1p-24, steps);
  if (rounding == Rounding::kNearestEven && !via_float32) return steps * Unit() * (1 + 0x1p-40);
  return Growth(Unit(), steps);
}

double AccSpec::AbsoluteBound(int64_t n) const {
  if (exact()) return 0;
  const double quantum =
      subnormals == Subnormals::kFlushed ? Pow2(format->emin) : format->SmallestSubnormal();
  return static_cast<double>(n + 1) * quantum;
}

double AccSpec::Step(double s, TwoDoubles t) const {
  if (!std::isfinite(s) || !std::isfinite(t.hi)) return s + t.hi;
  return Store(AddExactly(s, t));
}

double AccSpec::Store(TwoDoubles value) const {
  if (exact()) return value.hi;
  if (combine != nullptr)
    return RoundTo(value, combine->precision > 24 ? Binary32() : *combine, rounding, subnormals);
  if (via_float32) return RoundTo(RoundTo(value, Binary32()), *format, rounding, subnormals);
  return RoundTo(value, *format, rounding, subnormals);
}

double RoundSpec::Apply(double value) const {
  if (daz_below > -100000 && std::fabs(value) < Pow2(daz_below)) return std::copysign(0.0, value);
  if (format == nullptr) return value;
  double sum = RoundTo(value, *format, rounding, subnormals), rest = value - sum;
  for (int piece = 1; piece < pieces && std::isfinite(sum); ++piece) {
    const double next = RoundTo(rest, *format, rounding, subnormals);
    sum += next;
    rest -= next;
  }
  return sum;
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

std::optional<RoundSpec> ParseIn(std::string_view word) {
  RoundSpec spec;
  bool daz = false;
  if (word.ends_with("+daz")) {
    daz = true;
    word.remove_suffix(4);
  }
  if (word == "bf16x3" || word == "bf16x6" || word == "bf16x9" || word == "tf32x3") {
    spec.format = word.starts_with("bf16") ? &Bfloat16() : &Tf32();
    spec.passes = word.back() - '0';
    spec.pieces = spec.passes == 3 ? 2 : 3;
  } else if (word != "as_is") {
    const auto parsed = ParseFormatAndMode(word);
    if (!parsed) return std::nullopt;
    spec = *parsed;
  }
  if (daz) spec.daz_below = spec.format == nullptr ? -126 : spec.format->emin;
  return spec;
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
  if (word == "compensated") {
    spec.compensated = true;
    spec.format = &Binary32();
    return spec;
  }
  const size_t open = word.find('(');
  if (open != std::string_view::npos && word.ends_with(')')) {
    const auto arguments = SplitOutsideParentheses(word.substr(open + 1, word.size() - open - 2), ',');
    const std::string_view name = word.substr(0, open);
    if (name == "blockfma" && arguments.size() == 3) return ParseBlock(spec, arguments);
    if (name != "split_k" || arguments.size() != 2) return std::nullopt;
    spec.partial = FindFormat(arguments[0]);
    spec.combine = FindFormat(arguments[1]);
    spec.format = &Binary32();
    if (spec.partial == nullptr || spec.combine == nullptr) return std::nullopt;
    return spec;
  }
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
  static const std::vector<std::string> words{"as_is",    "bfloat16_rne", "bfloat16_rz", "tf32_rne",
                                              "tf32_rna", "tf32_rz",      "float16_rne", "bf16x3",
                                              "bf16x6",   "bf16x9",       "tf32x3"};
  return words;
}
const std::vector<std::string>& ProdWords() {
  static const std::vector<std::string> words{"exact", "float32", "float16", "bfloat16"};
  return words;
}
const std::vector<std::string>& AccWords() {
  static const std::vector<std::string> words{"exact",
                                              "float64",
                                              "compensated",
                                              "float32",
                                              "float32_rz",
                                              "blockfma(4,23,rz)",
                                              "blockfma(8,23,rz)",
                                              "blockfma(4,24,rz)",
                                              "blockfma(8,24,rz)",
                                              "blockfma(16,24,rz)",
                                              "blockfma(8,25,rz)",
                                              "blockfma(16,25,rz)",
                                              "blockfma(16,26,rz)",
                                              "blockfma(32,25,rz)",
                                              "blockfma(32,13,rz)",
                                              "blockfma(4,23,rne_float16)",
                                              "blockfma(8,24,rne_float16)",
                                              "blockfma(16,25,rne_float16)",
                                              "float16",
                                              "float16_via_float32",
                                              "bfloat16",
                                              "bfloat16_via_float32",
                                              "split_k(bfloat16,float32)",
                                              "split_k(bfloat16,bfloat16)",
                                              "split_k(float16,float32)",
                                              "split_k(float16,float16)"};
  return words;
}
const std::vector<std::string>& MidWords() {
  static const std::vector<std::string> words{"none", "bfloat16", "float16", "tf32", "float32"};
  return words;
}

const std::vector<PrecisionModel>& ModelBank() {
  static const std::vector<PrecisionModel> bank = [] {
    std::vector<PrecisionModel> rows;
    const auto add = [&](const std::string& in, const std::string& prod, const std::string& acc,
                         const std::string& mid, const std::string& out) {
      PrecisionModel model;
      if (in != "as_is") model.in["*"] = in;
      model.prod = prod;
      model.acc = acc;
      model.mid = mid;
      model.out = out;
      rows.push_back(std::move(model));
    };
    // Of the families that differ in a number alone, one member; ci/selfcheck has them all.
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
      if (colon == std::string::npos)
        map["*"] = part;
      else
        map[part.substr(0, colon)] = part.substr(colon + 1);
    }
    return map;
  };
  for (const auto& part : SplitOutsideParentheses(name, ';')) {
    const size_t equals = part.find('=');
    if (equals == std::string::npos)
      return bad("a part without '='", part, "in=..;prod=..;acc=..;mid=..;out=..");
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
