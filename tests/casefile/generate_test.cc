// Inputs: the same bits everywhere (golden digests), the formulas they claim, and the statistics of the
// random fills.
#include "harness/casefile/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "harness/casefile/normal_table.h"
#include "harness/casefile/philox.h"
#include "harness/model/probe.h"

namespace ulpscope {
namespace {

using Parameters = Attr::Map;

Attr Fill(const std::string& name, const Parameters& parameters = {}) {
  if (parameters.empty()) return {.value = name};
  return {.value = Attr::Map{{name, Attr{.value = parameters}}}};
}

Attr Text(std::string text) { return {.value = std::move(text)}; }

TensorSpec Spec(DType dtype, Shape shape, Attr fill, std::string name = "x") {
  TensorSpec spec;
  spec.name = std::move(name);
  spec.dtype = dtype;
  spec.shape = std::move(shape);
  spec.fill = std::move(fill);
  return spec;
}

TensorData Generate(const TensorSpec& spec, int64_t seed = 0) {
  auto data = GenerateTensor(spec, seed);
  if (!data) {
    ADD_FAILURE() << data.error().Text();
    return TensorData::Zeros(spec.dtype, spec.shape);
  }
  return *data;
}

uint64_t Digest(const TensorData& data) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const std::byte byte : data.bytes) hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001b3u;
  return hash;
}

TEST(Philox, KnownAnswers) {
  // The test vectors published with the generator (Random123, kat_vectors, philox4x32 with 10 rounds).
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

struct Golden {
  std::string fill;
  DType dtype;
  uint64_t digest;
};

const std::map<std::string, Attr>& GoldenFills() {
  static const std::map<std::string, Attr> fills{
      {"normal", Fill("normal")},
      {"normal_tenth", Fill("normal", {{"scale", Text("0.1")}, {"mean", Text("1/3")}})},
      {"uniform", Fill("uniform")},
      {"uniform_thirds", Fill("uniform", {{"low", Text("-1/3")}, {"high", Text("0.7")}})},
      {"positive", Fill("positive")},
      {"integers", Fill("integers", {{"low", Text("-4")}, {"high", Text("11")}})},
      {"wide_exponent", Fill("wide_exponent", {{"low", Text("-5")}, {"high", Text("7")}})},
      {"lattice", Fill("lattice", {{"mul", Text("37")},
                                   {"add", Text("5")},
                                   {"mod", Text("127")},
                                   {"sub", Text("63")},
                                   {"div", Text("32")}})},
      {"arange", Fill("arange", {{"start", Text("-3")}, {"step", Text("1/3")}})},
      {"subnormals", Fill("subnormals")},
      {"ties", Fill("ties")},
      {"full", Fill("full", {{"value", Text("0.1")}})},
  };
  return fills;
}

// 1000 elements of tensor "x", seed 0. A changed digest changes every recorded result: never edit one to make
// it pass.
const std::vector<Golden>& Goldens() {
  static const std::vector<Golden> goldens{
#include "tests/casefile/generate_golden.inc"
  };
  return goldens;
}

TEST(Generate, GoldenDigests) {
  size_t checked = 0;
  std::string table;
  std::map<std::pair<std::string, DType>, uint64_t> wanted;
  for (const Golden& golden : Goldens()) wanted[{golden.fill, golden.dtype}] = golden.digest;
  for (const auto& [name, fill] : GoldenFills()) {
    for (const auto& dtype_name : AllDTypeNames()) {
      const DType dtype = *ParseDType(dtype_name);
      const TensorSpec spec = Spec(dtype, {10, 100}, fill);
      if (!CheckFill(spec)) continue;  // integers have no normal deviates
      const uint64_t digest = Digest(Generate(spec));
      char row[120];
      std::snprintf(row, sizeof row, "{\"%s\", *ParseDType(\"%s\"), 0x%016lxu},\n", name.c_str(),
                    dtype_name.c_str(), digest);
      table += row;
      EXPECT_EQ(digest, (wanted[{name, dtype}])) << name << " " << dtype_name;
      ++checked;
    }
  }
  EXPECT_EQ(checked, Goldens().size());
  EXPECT_GE(checked, 70u);
  if (HasFailure()) std::printf("%s", table.c_str());
}

TEST(Generate, DependsOnSeedNameAndIndexAlone) {
  const TensorSpec spec = Spec(DType::kFloat32, {8, 8}, Fill("normal"));
  const TensorData base = Generate(spec);
  EXPECT_EQ(Generate(spec), base);
  EXPECT_NE(Generate(spec, 1), base);
  EXPECT_NE(Generate(Spec(DType::kFloat32, {8, 8}, Fill("normal"), "y")).bytes, base.bytes);
  EXPECT_EQ(Generate(Spec(DType::kFloat32, {64}, Fill("normal"))).bytes, base.bytes);
  TensorSpec transposed = spec;
  transposed.strides = {1, 8};
  EXPECT_EQ(Generate(transposed), base);
  // A longer tensor begins with the shorter one, and another dtype rounds the same exact values.
  const TensorData wide = Generate(Spec(DType::kFloat64, {100}, Fill("normal")));
  for (int64_t i = 0; i < 64; ++i) {
    EXPECT_EQ(RoundTo(wide.At(i), Bfloat16()), Generate(Spec(DType::kBfloat16, {64}, Fill("normal"))).At(i))
        << i;
  }
}

/// P(|N(0,1)| > x).
double Tail(double x) { return std::erfc(x / std::sqrt(2.0)); }

TEST(NormalTable, EveryEntryIsTheInverseItClaims) {
  size_t checked = 0;
  for (size_t z = 0; z < kNormalOctaves; ++z) {
    for (size_t i = 0; i < kNormalPoints; ++i) {
      const double t = std::ldexp(1.0 + static_cast<double>(i) / kNormalPoints, -static_cast<int>(z) - 1);
      const double entry = kNormalTable[z * kNormalPoints + i];
      // Half a unit to either side brackets t (with room for erfc's own error).
      ASSERT_GE(Tail(std::ldexp(entry - 0.5, -kNormalTableBits)), t * (1 - 1e-13)) << z << " " << i;
      ASSERT_LE(Tail(std::ldexp(entry + 0.5, -kNormalTableBits)), t * (1 + 1e-13)) << z << " " << i;
      ++checked;
    }
  }
  EXPECT_EQ(checked, kNormalTable.size());
}

struct Moments {
  double mean = 0, variance = 0, skewness = 0, kurtosis = 0;
};

Moments MomentsOf(const TensorData& data) {
  Moments m;
  const auto n = static_cast<double>(data.size());
  for (int64_t i = 0; i < data.size(); ++i) m.mean += data.At(i) / n;
  for (int64_t i = 0; i < data.size(); ++i) m.variance += std::pow(data.At(i) - m.mean, 2) / n;
  for (int64_t i = 0; i < data.size(); ++i) {
    const double z = (data.At(i) - m.mean) / std::sqrt(m.variance);
    m.skewness += z * z * z / n;
    m.kurtosis += z * z * z * z / n;
  }
  return m;
}

TEST(Generate, NormalDeviatesAreNormal) {
  constexpr int64_t n = 1 << 20;
  TensorData data = Generate(Spec(DType::kFloat64, {n}, Fill("normal")));
  const Moments m = MomentsOf(data);
  // Five standard errors of each moment of n normal deviates.
  EXPECT_LT(std::fabs(m.mean), 5 * std::sqrt(1.0 / n));
  EXPECT_LT(std::fabs(m.variance - 1), 5 * std::sqrt(2.0 / n));
  EXPECT_LT(std::fabs(m.skewness), 5 * std::sqrt(6.0 / n));
  EXPECT_LT(std::fabs(m.kurtosis - 3), 5 * std::sqrt(24.0 / n));
  // Kolmogorov and Smirnov: 1.95 / sqrt(n) is exceeded once in a thousand times.
  std::vector<double> sorted;
  for (int64_t i = 0; i < n; ++i) sorted.push_back(data.At(i));
  std::sort(sorted.begin(), sorted.end());
  double distance = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double below = 0.5 * std::erfc(-sorted[static_cast<size_t>(i)] / std::sqrt(2.0));
    distance = std::max(distance,
                        std::max(below - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - below));
  }
  EXPECT_LT(distance, 1.95 / std::sqrt(static_cast<double>(n)));
  // The tail is there: about 63 of 2^20 lie beyond 4.
  const auto beyond = std::count_if(sorted.begin(), sorted.end(), [](double x) { return std::fabs(x) > 4; });
  EXPECT_NEAR(static_cast<double>(beyond), n * Tail(4), 5 * std::sqrt(n * Tail(4)));
}

TEST(Generate, UniformIsUniform) {
  constexpr int64_t n = 1 << 18;
  const TensorData data = Generate(Spec(DType::kFloat64, {n}, Fill("uniform")));
  const Moments m = MomentsOf(data);
  EXPECT_LT(std::fabs(m.mean), 5 * std::sqrt(1.0 / 3 / n));
  EXPECT_LT(std::fabs(m.variance - 1.0 / 3), 5 * std::sqrt(4.0 / 45 / n));
  double low = 1, high = -1;
  for (int64_t i = 0; i < n; ++i) low = std::min(low, data.At(i)), high = std::max(high, data.At(i));
  EXPECT_GE(low, -1);
  EXPECT_LT(high, 1);
}

TEST(Generate, IntegersReachBothEndsEquallyOften) {
  constexpr int64_t n = 1 << 16;
  const TensorData data =
      Generate(Spec(DType::kInt64, {n}, Fill("integers", {{"low", Text("-2")}, {"high", Text("2")}})));
  std::map<double, int64_t> counts;
  for (int64_t i = 0; i < n; ++i) ++counts[data.At(i)];
  ASSERT_EQ(counts.size(), 5u);
  for (const auto& [value, count] : counts)
    EXPECT_NEAR(static_cast<double>(count), n / 5.0, 5 * std::sqrt(n * 0.16)) << value;
  EXPECT_TRUE(counts.contains(-2) && counts.contains(2));
}

TEST(Generate, LatticeIsItsFormula) {
  const Attr fill = Fill("lattice", {{"mul", Text("-37")},
                                     {"add", Text("5")},
                                     {"mod", Text("127")},
                                     {"sub", Text("63")},
                                     {"div", Text("7")}});
  const TensorData data = Generate(Spec(DType::kFloat64, {300}, fill));
  for (int64_t i = 0; i < 300; ++i) {
    const int64_t residue = (((-37 * i + 5) % 127) + 127) % 127;
    ASSERT_EQ(data.At(i), static_cast<double>(residue - 63) / 7.0)
        << i;  // a correctly rounded division of exact integers
  }
}

TEST(Generate, SubnormalsTiesAndExponentsAreWhatTheySay) {
  int64_t checked = 0;
  for (const auto& name : AllDTypeNames()) {
    const DType dtype = *ParseDType(name);
    const FloatFormat* format = FormatOf(dtype);
    if (format == nullptr) continue;
    const TensorData subnormals = Generate(Spec(dtype, {500}, Fill("subnormals")));
    for (int64_t i = 0; i < 500; ++i, ++checked) {
      const double magnitude = std::fabs(subnormals.At(i));
      ASSERT_GT(magnitude, 0) << name;
      ASSERT_LT(magnitude, std::ldexp(1.0, format->emin)) << name;
    }
    const TensorData wide =
        Generate(Spec(dtype, {500}, Fill("wide_exponent", {{"low", Text("-5")}, {"high", Text("7")}})));
    std::set<int> exponents;
    for (int64_t i = 0; i < 500; ++i, ++checked) exponents.insert(std::ilogb(wide.At(i)));
    EXPECT_EQ(exponents.size(), 13u) << name;
    EXPECT_EQ(*exponents.begin(), -5) << name;
  }
  const TensorData ties =
      Generate(Spec(DType::kFloat32, {500}, Fill("ties", {{"format", Text("bfloat16")}})));
  for (int64_t i = 0; i < 500; ++i, ++checked) {
    const double nearest = RoundTo(ties.At(i), Bfloat16());
    ASSERT_EQ(std::fabs(ties.At(i) - nearest), Ulp(ties.At(i), Bfloat16()) / 2) << i;
  }
  EXPECT_EQ(checked, 7 * 1000 + 500);
}

TEST(Generate, LiteralElements) {
  Attr::List row1{Text("1/3"), Text("0x1.8p0")}, row2{Text("bits:0x7fc1"), Attr{.value = int64_t{3}}},
      row3{Attr{.value = 0.1}, Text("-inf")};
  const Attr fill{
      .value = Attr::Map{
          {"values", Attr{.value = Attr::List{{.value = row1}, {.value = row2}, {.value = row3}}}}}};
  const TensorData data = Generate(Spec(DType::kBfloat16, {3, 2}, fill));
  EXPECT_EQ(data.At(0), RoundTo(1.0 / 3, Bfloat16()));
  EXPECT_EQ(data.At(1), 1.5);
  EXPECT_TRUE(std::isnan(data.At(2)));
  EXPECT_EQ(data.bytes[4], std::byte{0xC1});
  EXPECT_EQ(data.At(3), 3);
  EXPECT_EQ(data.At(4), RoundTo(0.1, Bfloat16()));
  EXPECT_EQ(data.At(5), -std::numeric_limits<double>::infinity());
  EXPECT_FALSE(GenerateTensor(Spec(DType::kBfloat16, {7}, fill), 0).has_value());
}

/// Elements of row `row` along the last dimension.
std::vector<double> Row(const TensorData& data, int64_t row) {
  const int64_t k = data.shape.back();
  std::vector<double> values;
  for (int64_t i = 0; i < k; ++i) values.push_back(data.At(row * k + i));
  return values;
}

TEST(Probes, EachRowIsTheOperandOfItsDotProduct) {
  int64_t dots = 0;
  for (const std::string& family : ProbeFamilies()) {
    const int64_t k = 64;
    std::vector<ProbeDot> all;
    for (const ProbeGroup& group : ProbeGroups(family, DType::kFloat32, k))
      all.insert(all.end(), group.members.begin(), group.members.end());
    ASSERT_FALSE(all.empty()) << family;
    const auto rows = static_cast<int64_t>(all.size()) + 3;
    const TensorData a =
        Generate(Spec(DType::kFloat32, {rows, k}, {.value = Parameters{{"probe", Text(family)}}}));
    // Batched, along the second last dimension: three columns in each of the batches.
    const TensorData b = Generate(Spec(DType::kFloat32, {(rows + 2) / 3, k, 3},
                                       Fill("probe", {{"name", Text(family)}, {"role", Text("b")}})));
    for (int64_t r = 0; r < rows; ++r) {
      const ProbeDot& dot = all[static_cast<size_t>(r) % all.size()];
      std::vector<double> expected_a(k, 0.0), expected_b(k, 0.0), found_b;
      for (const ProbeTerm& term : dot.terms) {
        expected_a[static_cast<size_t>(term.position)] = term.a;
        expected_b[static_cast<size_t>(term.position)] = term.b;
      }
      for (int64_t i = 0; i < k; ++i) found_b.push_back(b.At((r / 3 * k + i) * 3 + r % 3));
      ASSERT_EQ(Row(a, r), expected_a) << family << " row " << r;
      ASSERT_EQ(found_b, expected_b) << family << " row " << r;
      ++dots;
    }
  }
  EXPECT_GT(dots, 4000);
}

TEST(Probes, AnAddendIsThatOfItsDotProduct) {
  const TensorData addend =
      Generate(Spec(DType::kFloat32, {4, 1},
                    Fill("probe", {{"name", Text("fuse")}, {"role", Text("addend")}, {"k", Text("64")}})));
  const auto groups = ProbeGroups("fuse", DType::kFloat32, 64);
  ASSERT_GE(groups.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(addend.At(static_cast<int64_t>(i)), groups[i].members[0].addend);
    EXPECT_NE(groups[i].members[0].addend, 0);
  }
}

TEST(Records, GiveTheirBitsAndRoundOnlyWhereTheDTypeIsNarrower) {
  const auto fill = [](const char* tensor) {
    return Fill("record", {{"name", Text("a100_fp16")}, {"tensor", Text(tensor)}});
  };
  const TensorData a = Generate(Spec(DType::kFloat16, {5000, 1, 8}, fill("a")));
  const TensorData front = Generate(Spec(DType::kFloat16, {3, 8}, fill("a")));
  EXPECT_EQ(Digest(a), 0x860305f50bb088d9u) << std::hex << Digest(a);
  EXPECT_TRUE(std::equal(front.bytes.begin(), front.bytes.end(), a.bytes.begin()));
  const TensorData wide = Generate(Spec(DType::kFloat32, {5000}, fill("c"))),
                   narrow = Generate(Spec(DType::kFloat16, {5000}, fill("c")));
  int64_t rounded = 0;
  for (int64_t i = 0; i < 5000; ++i) {
    EXPECT_EQ(narrow.At(i), RoundTo(wide.At(i), Binary16()));
    rounded += narrow.At(i) != wide.At(i) ? 1 : 0;
  }
  EXPECT_GT(rounded, 4900);
}

TEST(Generate, RefusesWhatDoesNotFit) {
  const auto refused = [](DType dtype, const Attr& fill) {
    return !CheckFill(Spec(dtype, {1000}, fill)).has_value();
  };
  EXPECT_TRUE(refused(DType::kInt32, Fill("normal")));
  EXPECT_TRUE(refused(DType::kInt8, Fill("integers", {{"low", Text("0")}, {"high", Text("128")}})));
  EXPECT_FALSE(refused(DType::kInt8, Fill("integers", {{"low", Text("-128")}, {"high", Text("127")}})));
  EXPECT_TRUE(refused(DType::kUint8, Fill("arange")));  // 999 > 255
  EXPECT_TRUE(refused(DType::kFloat16, Fill("normal", {{"scale", Text("20000")}})));
  EXPECT_TRUE(refused(DType::kFloat16, Fill("full", {{"value", Text("65520")}})));
  EXPECT_TRUE(
      refused(DType::kFloat8E4m3fn, Fill("wide_exponent", {{"low", Text("0")}, {"high", Text("8")}})));
  EXPECT_TRUE(refused(DType::kFloat16, Fill("wide_exponent", {{"low", Text("-25")}, {"high", Text("0")}})));
  EXPECT_TRUE(refused(DType::kBfloat16, Fill("ties", {{"format", Text("float16")}})));
  EXPECT_TRUE(refused(DType::kFloat32, Fill("uniform", {{"low", Text("1")}, {"high", Text("1")}})));
  EXPECT_TRUE(refused(
      DType::kInt32,
      Fill("lattice", {{"mul", Text("1")}, {"add", Text("0")}, {"mod", Text("9")}, {"div", Text("2")}})));
  EXPECT_TRUE(refused(DType::kBool, Fill("integers", {{"low", Text("0")}, {"high", Text("2")}})));
  EXPECT_TRUE(refused(DType::kFloat32, Fill("gaussian")));
  EXPECT_FALSE(CheckElement("256", DType::kUint8).has_value());
  EXPECT_FALSE(CheckElement("1.5", DType::kInt64).has_value());
  EXPECT_FALSE(CheckElement("bits:0x3f80", DType::kFloat32).has_value());
  EXPECT_TRUE(CheckElement("-9223372036854775808", DType::kInt64).has_value());
}

}  // namespace
}  // namespace ulpscope
