// `prove` end to end, without processes: a case's companions, made and emulated at every model of the bank, decide contracts
// that the case's own random data leaves open, and never wrongly.
#include "harness/casefile/prove.h"

#include <gtest/gtest.h>

#include <iostream>

#include "harness/casefile/generate.h"
#include "harness/casefile/load.h"
#include "harness/judge/classify.h"
#include "harness/judge/combine.h"
#include "harness/judge/contract.h"
#include "oracles/models.h"
#include "oracles/oracle.h"

namespace ulpscope {
namespace {

Case Load(const std::string& body) {
  LoadResult loaded = LoadCaseText("cases:\n  - name: c\n" + body, "test", "t", {});
  for (const Error& error : loaded.errors) ADD_FAILURE() << error.Text();
  return loaded.cases.empty() ? Case() : loaded.cases[0];
}

Case Matmul(const std::string& dtype, int64_t k, const std::string& demand) {
  const std::string length = std::to_string(k);
  return Load("    tensors:\n      x: {dtype: " + dtype + ", shape: [16, " + length +
              "], fill: normal}\n      w: {dtype: " + dtype + ", shape: [" + length +
              ", 16], fill: normal}\n    program: [{op: matmul, of: [x, w], as: y}]\n    observe: [y]\n" +
              "    contract: {status: de_facto, prove: true, accept: {y: {" + demand + "}}}\n");
}

PrecisionModel Model(const std::string& name) {
  auto model = ParsePrecisionModel(name);
  EXPECT_TRUE(model) << name;
  return model ? *model : PrecisionModel();
}

/// One case with its inputs and oracle.
struct Bench {
  explicit Bench(Case c) : test_case(std::move(c)) {
    auto made = MakeInputs(test_case, 0);
    EXPECT_TRUE(made) << (made ? "" : made.error().Text());
    if (!made) return;
    inputs = *made;
    auto opened = OpenCaseOracle(test_case, inputs);
    EXPECT_TRUE(opened);
    if (opened) oracle = std::move(*opened);
  }
  Observation Emulate(const PrecisionModel& model, const std::string& order) const {
    Observation observation;
    auto values = EmulateProgram(test_case, inputs, model, order);
    EXPECT_TRUE(values) << (values ? "" : values.error().Text());
    if (values) observation.values = std::move(*values);
    return observation;
  }
  std::map<std::string, Classification> Classify(const Observation& observation) const {
    return ClassifyValues(*oracle, observation.values,
                          {.evidence = ClassifyOptions::Evidence::kHard, .ordinary = IsOrdinary(test_case)});
  }

  Case test_case;
  std::map<std::string, TensorData> inputs;
  std::unique_ptr<CaseOracle> oracle;
};

/// A case and its companions.
class Prover {
 public:
  explicit Prover(const Case& c) : own_(c) {
    for (Companion& companion : CompanionsOf(c)) {
      names_.push_back(companion.name);
      companions_.push_back(std::make_unique<Bench>(std::move(companion.test_case)));
    }
  }

  struct Verdicts {
    ContractVerdict alone, joined;
    Classification classification;
    std::vector<Exclusion> excluded;
  };

  /// `without`: how the names of companions begin that are not asked.
  Verdicts Judge(const PrecisionModel& model, const std::string& order, const std::string& value,
                 const std::string& without = "") const {
    const Observation own = own_.Emulate(model, order);
    const auto classified = own_.Classify(own);
    std::vector<Observation> observations;
    std::vector<std::map<std::string, Classification>> found;
    for (const auto& companion : companions_) {
      observations.push_back(companion->Emulate(model, order));
      found.push_back(companion->Classify(observations.back()));
    }
    std::vector<CompanionRun> runs;
    for (size_t i = 0; i < found.size(); ++i) {
      if (!without.empty() && names_[i].starts_with(without)) continue;
      runs.push_back(
          {.name = names_[i], .observation = &observations[i], .taint = {}, .classifications = &found[i]});
    }
    const Proof proof = JoinCompanions(own_.test_case, own, classified, runs);
    const auto judge = [&](const Classification& one) {
      CaseResult result;
      ValueResult& judged = result.values[value];
      judged = {.dtype = own.values.at(value).dtype,
                .shape = own.values.at(value).shape,
                .part = {},
                .classification = one};
      judged.contract = JudgeContract(own_.test_case, value, judged);
      return result;
    };
    CaseResult joined = judge(proof.values.at(value));
    ApplyProof(proof, &joined);
    return {.alone = judge(classified.at(value)).values.at(value).contract,
            .joined = joined.values.at(value).contract,
            .classification = proof.values.at(value),
            .excluded = proof.values.at(value).excluded};
  }

  bool Holds(const PrecisionModel& model, const std::string& value) const {
    const auto bank = own_.oracle->Bank(value, FirstDType(value));
    return std::any_of(bank.begin(), bank.end(), [&](const auto& each) { return each->model() == model; });
  }
  DType FirstDType(const std::string& value) const { return own_.oracle->Describe(value)->declared; }
  const Case& test_case() const { return own_.test_case; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  Bench own_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<Bench>> companions_;
};

std::string Survivors(const Classification& one) {
  std::string text = one.label;
  for (size_t i = 0; i < std::min<size_t>(8, one.models_proved.size()); ++i)
    text += "\n    " + one.models_proved[i].Name();
  for (const auto& note : one.notes) text += "\n  " + note.text;
  return text;
}

constexpr const char* kDemand = "in: [as_is], acc: [at_least_float32], mid: [none]";
constexpr const char* kHonest = "in=as_is;prod=exact;acc=float32;mid=none;out=float32_rne";

TEST(Prove, AnHonestKernelConformsOnceItsCompanionsAreAsked) {
  for (const char* dtype : {"bfloat16", "float16", "float32"}) {
    for (const int64_t k : {8, 64, 1000}) {
      const Prover prover(Matmul(dtype, k, kDemand));
      for (const char* order : {"sequential", "pairwise"}) {
        const auto verdicts = prover.Judge(Model(kHonest), order, "y");
        if (k >= 64) {
          EXPECT_EQ(verdicts.alone, ContractVerdict::kUndetermined)
              << dtype << " " << k << ": nothing was left to prove";
        }
        EXPECT_EQ(verdicts.joined, ContractVerdict::kConforms)
            << dtype << " " << k << " " << order << ": " << Survivors(verdicts.classification);
      }
    }
  }
}

/// Units that add several products at once are float32's class too: few terms may lie in a block of their own each.
TEST(Prove, AndIsToldFromEveryAccumulatorButBlockUnits) {
  for (const int64_t k : {64, 1000}) {
    const Prover prover(
        Matmul("bfloat16", k, "acc: [float32, blockfma], in: [as_is], mid: [none], out: [bfloat16_rne]"));
    const auto verdicts = prover.Judge(Model(kHonest), "sequential", "y");
    EXPECT_EQ(verdicts.joined, ContractVerdict::kConforms) << k << ": " << Survivors(verdicts.classification);
  }
}

struct Rival {
  const char* dtype;
  int64_t k;
  const char* demand;
  const char* model;
};

TEST(Prove, RivalsViolateWithAWitness) {
  constexpr const char* kFloat32 = "in: [as_is], acc: [float32], mid: [none]";
  // One row of the bank is run on each of a few cases: their companions are made once.
  std::map<std::string, std::unique_ptr<Prover>> provers;
  const Rival rivals[] = {
      {"bfloat16", 64, kDemand, "in=as_is;prod=exact;acc=bfloat16;mid=none;out=float32_rne"},
      {"bfloat16", 64, kDemand, "in=as_is;prod=exact;acc=bfloat16_via_float32;mid=none;out=float32_rne"},
      {"bfloat16", 64, kDemand, "in=as_is;prod=exact;acc=float16;mid=none;out=float32_rne"},
      {"bfloat16", 64, kDemand, "in=as_is;prod=exact;acc=float32;mid=float16;out=float32_rne"},
      {"bfloat16", 64, kDemand, "in=as_is;prod=exact;acc=float32;mid=tf32;out=float32_rne"},
      {"bfloat16", 64, kFloat32, "in=as_is;prod=exact;acc=float32_rz;mid=none;out=float32_rne"},
      {"bfloat16", 64, kFloat32, "in=as_is;prod=exact;acc=float64;mid=none;out=float32_rne"},
      {"bfloat16", 1000, kDemand, "in=as_is;prod=exact;acc=bfloat16;mid=none;out=float32_rne"},
      {"bfloat16", 1000, kDemand, "in=as_is;prod=exact;acc=float16;mid=none;out=float32_rne"},
      {"bfloat16", 1000, kDemand,
       "in=as_is;prod=exact;acc=split_k(bfloat16,float32);mid=none;out=float32_rne"},
      {"bfloat16", 1000, kDemand,
       "in=as_is;prod=exact;acc=split_k(bfloat16,bfloat16);mid=none;out=float32_rne"},
      {"bfloat16", 1000, kFloat32, "in=as_is;prod=exact;acc=float32_rz;mid=none;out=float32_rne"},
      {"float16", 64, kDemand, "in=as_is;prod=exact;acc=float16;mid=none;out=float32_rne"},
      {"float32", 64, kDemand, "in=tf32_rna;prod=exact;acc=float32;mid=none;out=float32_rne"},
      {"float32", 64, kDemand, "in=bf16x3;prod=exact;acc=float32;mid=none;out=float32_rne"},
      {"float32", 1000, kDemand, "in=bfloat16_rne;prod=exact;acc=float32;mid=none;out=float32_rne"},
      {"float32", 1000, kDemand, "in=tf32_rne;prod=exact;acc=float32;mid=none;out=float32_rne"},
      {"float32", 1000, kDemand, "in=as_is;prod=exact;acc=float32;mid=bfloat16;out=float32_rne"},
  };
  for (const Rival& rival : rivals) {
    auto& made = provers[std::string(rival.dtype) + std::to_string(rival.k) + rival.demand];
    if (!made) made = std::make_unique<Prover>(Matmul(rival.dtype, rival.k, rival.demand));
    const Prover& prover = *made;
    const auto verdicts = prover.Judge(Model(rival.model), "pairwise", "y");
    EXPECT_EQ(verdicts.joined, ContractVerdict::kViolates)
        << rival.dtype << " " << rival.k << " " << rival.model << ": " << Survivors(verdicts.classification);
    const auto& demand = prover.test_case().contract.values.at("y");
    EXPECT_TRUE(std::any_of(verdicts.excluded.begin(), verdicts.excluded.end(),
                            [&](const Exclusion& exclusion) {
                              return IsInside(exclusion.model, demand, verdicts.classification);
                            }))
        << rival.model << ": no witness against what is demanded";
  }
}

/// Verdicts over the whole bank, and that none is wrong.
struct Score {
  int models = 0, alone = 0, joined = 0;
};

/// What these inputs cannot tell, each for a reason. A unit that adds up to 32 products exactly and rounds to float16 may have
/// held the few terms of a probe in any way, and rounds as the store of a wider sum does. Products that are rounded one by
/// one are what a split leaves whose chunks hold one product each.
/// A compensated sum is rounded to float32 once, as one in float64 may be.
bool MayStayOpen(const PrecisionModel& truth, DType stored) {
  const bool is_wider =
      AccWord(truth.acc) == "exact" || AccWord(truth.acc) == "float64" || AccWord(truth.acc) == "compensated";
  return ProdWord(truth.prod) != "exact" || (stored == DType::kFloat16 && is_wider) ||
         AccWord(truth.acc) == "compensated" || MidWord(truth.mid) == "float32";
}

Score ScoreBank(const Case& c, const std::string& value) {
  const Prover prover(c);
  const ValueDemand& demand = c.contract.values.at(value);
  Score score;
  size_t which = 0;
  for (const PrecisionModel& model : ModelBank()) {
    const char* order = std::array{"sequential", "lanes8", "pairwise"}[which++ % 3];
    const auto truth = TrueModel(c, value, model, prover.FirstDType(value));
    EXPECT_TRUE(truth);
    if (!truth || !prover.Holds(*truth, value)) continue;
    const auto verdicts = prover.Judge(model, order, value);
    const bool conforms = IsInside(*truth, demand, verdicts.classification);
    for (const ContractVerdict verdict : {verdicts.alone, verdicts.joined}) {
      EXPECT_NE(verdict, conforms ? ContractVerdict::kViolates : ContractVerdict::kConforms)
          << truth->Name() << " in " << order << ": " << Survivors(verdicts.classification);
      EXPECT_NE(verdict, ContractVerdict::kUnmodelled) << truth->Name() << " in " << order;
    }
    ++score.models;
    score.alone += verdicts.alone != ContractVerdict::kUndetermined ? 1 : 0;
    score.joined += verdicts.joined != ContractVerdict::kUndetermined ? 1 : 0;
    if (verdicts.joined == ContractVerdict::kUndetermined && !MayStayOpen(*truth, prover.FirstDType(value))) {
      ADD_FAILURE() << c.id << " leaves " << truth->Name() << " in " << order
                    << " open: " << Survivors(verdicts.classification);
    }
  }
  std::cout << c.id << " " << Describe(demand) << ": " << score.models << " models, decided " << score.alone
            << " alone, " << score.joined << " with " << prover.names().size() << " companions\n";
  return score;
}

TEST(Prove, DecidesTheBankAndNeverWrongly) {
  for (const auto& [dtype, k] : {std::pair("bfloat16", 64), std::pair("bfloat16", 128),
                                 std::pair("float16", 64), std::pair("float32", 64)}) {
    const Score score = ScoreBank(Matmul(dtype, k, kDemand), "y");
    EXPECT_GT(score.models, 20);
    EXPECT_GT(score.joined, score.alone) << dtype << " " << k;
  }
}

TEST(Prove, GradientsOfALinearLayer) {
  const Case c = Load(R"(    tensors:
      x: {dtype: bfloat16, shape: [32, 24], fill: normal}
      w: {dtype: bfloat16, shape: [16, 24], fill: normal, requires_grad: true}
      g: {dtype: bfloat16, shape: [32, 16], fill: normal}
    program:
      - {op: linear, of: [x, w], as: y}
      - {op: backward, of: [y], grad: g}
    observe: [y, w.grad]
    contract: {status: de_facto, prove: true, accept: {w.grad: {acc: [at_least_float32], mid: [none]}}}
)");
  const Prover prover(c);
  EXPECT_EQ(prover.names(),
            (std::vector<std::string>{"single", "cancel", "swamp", "wide", "half", "normal"}));
  EXPECT_EQ(prover.Judge(Model(kHonest), "sequential", "w.grad").joined, ContractVerdict::kConforms);
  EXPECT_EQ(
      prover.Judge(Model("in=as_is;prod=exact;acc=bfloat16;mid=none;out=float32_rne"), "sequential", "w.grad")
          .joined,
      ContractVerdict::kViolates);
}

TEST(Prove, SmallResultsAreShownInSeveralRounds) {
  const Case c = Load(R"(    tensors:
      x: {dtype: bfloat16, shape: [1, 64], fill: normal}
      w: {dtype: bfloat16, shape: [40, 64], fill: normal}
    program: [{op: linear, of: [x, w], as: y}]
    observe: [y]
    contract: {status: de_facto, prove: true, accept: {y: {acc: [at_least_float32], mid: [none]}}}
)");
  const Prover prover(c);
  EXPECT_EQ(prover.names().size(), 26u);  // 5 rounds of 40 results, and ordinary numbers once
  const auto verdicts = prover.Judge(Model(kHonest), "lanes8", "y");
  EXPECT_EQ(verdicts.joined, ContractVerdict::kConforms) << Survivors(verdicts.classification);
}

Case Reduction(const std::string& op, const std::string& dtype) {
  return Load("    tensors: {x: {dtype: " + dtype +
              ", shape: [48, 64], fill: normal}}\n    program: [{op: " + op +
              ", of: [x], dim: -1, as: y}]\n    observe: [y]\n    contract: {status: de_facto, prove: true, "
              "accept: {y: {acc: [at_least_float32], mid: [none, float32, tf32]}}}\n");
}

/// A float32 sum divided by 64 is a float32, and a sum of float16 values that is no normal float16 has few bits: rounding to
/// float32 and to 11 bits change nothing there.
TEST(Prove, SumsAndMeans) {
  for (const char* op : {"sum", "mean"}) {
    for (const char* dtype : {"bfloat16", "float16"}) {
      const Prover prover(Reduction(op, dtype));
      EXPECT_EQ(prover.names().front(), "tie");
      for (const char* order : {"sequential", "lanes8", "pairwise"}) {
        const auto verdicts = prover.Judge(Model(kHonest), order, "y");
        EXPECT_EQ(verdicts.alone, ContractVerdict::kUndetermined) << op << " " << dtype;
        EXPECT_EQ(verdicts.joined, ContractVerdict::kConforms)
            << op << " " << dtype << " " << order << ": " << Survivors(verdicts.classification);
        for (const char* acc : {"bfloat16", "float16", "float16_via_float32"}) {
          const auto narrow = prover.Judge(
              Model("in=as_is;prod=exact;acc=" + std::string(acc) + ";mid=none;out=float32_rne"), order, "y");
          EXPECT_EQ(narrow.joined, ContractVerdict::kViolates)
              << op << " " << dtype << " " << acc << " " << order << ": " << Survivors(narrow.classification);
        }
      }
    }
  }
}

/// Of y, stored in float16 and summed in `acc`.
Prover::Verdicts SummedIn(const Prover& prover, const std::string& acc, const std::string& without = "") {
  return prover.Judge(Model("in=as_is;prod=exact;acc=" + acc + ";mid=none;out=float16_rne"), "sequential",
                      "y", without);
}

/// Exact sums are among those that a unit of 16 products which rounds to float16 may give; of random numbers it gives many others.
TEST(Prove, CompensatedSumsAreNoUnitsThatRoundToFloat16) {
  const Prover prover(Matmul("float16", 64, kDemand));
  const auto honest = SummedIn(prover, "compensated");
  EXPECT_EQ(honest.joined, ContractVerdict::kConforms) << Survivors(honest.classification);
  EXPECT_EQ(SummedIn(prover, "compensated", "normal").joined, ContractVerdict::kUndetermined);
  const auto unit = SummedIn(prover, "blockfma(16,25,rne_float16)");
  EXPECT_NE(unit.joined, ContractVerdict::kConforms) << Survivors(unit.classification);
  const auto& proved = unit.classification.models_proved;
  EXPECT_TRUE(std::ranges::any_of(
      proved, [](const PrecisionModel& each) { return AccWord(each.acc) == "blockfma(16,25,rne_float16)"; }))
      << "the truth is excluded: " << Survivors(unit.classification);
}

/// Of eight columns no input shows all positions together; those of several do.
TEST(Prove, SplitSumsOfFewColumns) {
  const Prover prover(
      Load("    tensors:\n      x: {dtype: float16, shape: [4, 1000], fill: normal}\n"
           "      w: {dtype: float16, shape: [1000, 8], fill: normal}\n    program: [{op: matmul, of: [x, "
           "w], as: y}]\n"
           "    observe: [y]\n    contract: {status: de_facto, prove: true, accept: {y: {" +
           std::string(kDemand) + "}}}\n"));
  const auto honest = SummedIn(prover, "float32");
  EXPECT_EQ(honest.joined, ContractVerdict::kConforms) << Survivors(honest.classification);
  EXPECT_EQ(SummedIn(prover, "float32", "chunk.").joined, ContractVerdict::kUndetermined);
  const auto split = SummedIn(prover, "split_k(float16,float32)");
  EXPECT_EQ(split.joined, ContractVerdict::kViolates) << Survivors(split.classification);
  EXPECT_TRUE(std::ranges::any_of(split.classification.models_proved, [](const PrecisionModel& each) {
    return AccWord(each.acc) == "split_k(float16,float32)";
  })) << "the truth is excluded";
}

/// No bank lists sums with a few guard bits. On further inputs that no listed sum gives they are asked for.
TEST(Prove, SumsWithGuardBits) {
  for (const char* dtype : {"bfloat16", "float32"}) {
    for (const int64_t k : {3, 8, 100}) {
      const Prover prover(Matmul(dtype, k, kDemand));
      for (const char* acc : {"p25", "p26_rz", "p28", "p31_rna"}) {
        const auto verdicts =
            prover.Judge(Model("in=as_is;prod=exact;acc=" + std::string(acc) + ";mid=none;out=float32_rne"),
                         "sequential", "y");
        EXPECT_EQ(verdicts.joined, ContractVerdict::kConforms)
            << dtype << " " << k << " " << acc << ": " << Survivors(verdicts.classification);
      }
      for (const char* acc : {"p22", "p20_rz"}) {
        const auto verdicts =
            prover.Judge(Model("in=as_is;prod=exact;acc=" + std::string(acc) + ";mid=none;out=float32_rne"),
                         "sequential", "y");
        EXPECT_NE(verdicts.joined, ContractVerdict::kConforms)
            << dtype << " " << k << " " << acc << ": " << Survivors(verdicts.classification);
      }
    }
  }
}

/// Parts that are joined in more than float32, and less than float64: behind a narrow store too, where what such sums err by shows
/// through it, of terms that cancel all but what the largest ones swallow.
TEST(Prove, JoinedPartsBehindANarrowStore) {
  for (const char* dtype : {"bfloat16", "float16"}) {
    const Prover prover(Matmul(dtype, 100, kDemand));
    const auto joined_in = [&](const std::string& bits) {
      return prover.Judge(
          Model("in=as_is;prod=exact;acc=split_k(float32," + bits + ");mid=none;out=" + dtype + "_rne"),
          "lanes8", "y");
    };
    for (const char* bits : {"p28", "p32"}) {
      const auto verdicts = joined_in(bits);
      EXPECT_EQ(verdicts.joined, ContractVerdict::kConforms)
          << dtype << " " << bits << ": " << Survivors(verdicts.classification);
    }
    for (const char* bits : {"p22", "p20", "p16"}) {
      const auto verdicts = joined_in(bits);
      EXPECT_NE(verdicts.joined, ContractVerdict::kConforms)
          << dtype << " " << bits << ": " << Survivors(verdicts.classification);
    }
  }
}

/// A rounding to so many bits before a 16-bit store errs as that store does: it is asked for on each further input.
TEST(Prove, ARoundingToFourteenBitsBeforeAFloat16Store) {
  const Prover prover(Matmul("float16", 100, kDemand));
  const auto rounded =
      prover.Judge(Model("in=as_is;prod=exact;acc=float32;mid=p14;out=float16_rne"), "sequential", "y");
  EXPECT_EQ(rounded.joined, ContractVerdict::kViolates) << Survivors(rounded.classification);
}

/// Three float32 values that count have few sums, and each sum one quotient: whether a store cuts is known of any divisor.
TEST(Prove, AMeanOfAHundred) {
  const Prover prover(Load(
      "    tensors: {x: {dtype: float32, shape: [64, 100], fill: normal}}\n"
      "    program: [{op: mean, of: [x], dim: -1, as: y}]\n    observe: [y]\n    contract: {status: "
      "de_facto, prove: true, accept: {y: {acc: [at_least_float32], mid: [none], out: [float32_rne]}}}\n"));
  for (const char* order : {"sequential", "lanes8", "pairwise"}) {
    const auto honest = prover.Judge(Model(kHonest), order, "y");
    EXPECT_EQ(honest.joined, ContractVerdict::kConforms) << order << ": " << Survivors(honest.classification);
    const auto cut =
        prover.Judge(Model("in=as_is;prod=exact;acc=float32;mid=none;out=float32_rz"), order, "y");
    EXPECT_EQ(cut.joined, ContractVerdict::kViolates) << order << ": " << Survivors(cut.classification);
  }
}

/// How a wide sum is rounded into its store shows in ties alone, and those are to be there whatever the length.
TEST(Prove, TheStoreOfAWideSum) {
  for (const int k : {64, 300, 1000}) {
    const Prover prover(
        Load("    tensors: {x: {dtype: float32, shape: [64, " + std::to_string(k) +
             "], fill: positive}}\n    program: [{op: sum, of: [x], dim: -1, as: y}]\n    observe: [y]\n    "
             "contract: {status: de_facto, "
             "prove: true, accept: {y: {acc: [at_least_float32], mid: [none], out: [float32_rne]}}}\n"));
    const auto honest =
        prover.Judge(Model("in=as_is;prod=exact;acc=float64;mid=none;out=float32_rne"), "pairwise", "y");
    EXPECT_EQ(honest.joined, ContractVerdict::kConforms) << k << ": " << Survivors(honest.classification);
    const auto away =
        prover.Judge(Model("in=as_is;prod=exact;acc=float64;mid=none;out=float32_rna"), "pairwise", "y");
    EXPECT_EQ(away.joined, ContractVerdict::kViolates) << k << ": " << Survivors(away.classification);
  }
}

/// An op around a sum, or a function, of 16-bit values.
Case Composite(const std::string& step, const std::string& dtype) {
  return Load("    tensors: {x: {dtype: " + dtype + ", shape: [16, 48], fill: normal}}\n    program: [{" +
              step +
              ", of: [x], as: y}]\n    observe: [y]\n    contract: {status: de_facto, prove: true, accept: "
              "{y: {acc: [at_least_float32], mid: [none], out: [" +
              dtype + "_rne]}}}\n");
}

/// Two terms that count leave a narrow sum one result, and another one than float32's.
TEST(Prove, OpsAroundASumAndFunctions) {
  for (const auto& [step, probe] :
       std::map<std::string, std::string>{{"op: softmax, dim: 1", "exponents"},
                                          {"op: rms_norm, normalized_shape: [48], eps: 1.0e-5", "squares"},
                                          {"op: layer_norm, normalized_shape: [48], eps: 1.0e-5", "opposed"},
                                          {"op: silu", "normal"}}) {
    for (const char* dtype : {"bfloat16", "float16"}) {
      const Prover prover(Composite(step, dtype));
      ASSERT_FALSE(prover.names().empty()) << step;
      EXPECT_EQ(prover.names().front(), probe);
      const std::string out = std::string(";mid=none;out=") + dtype + "_rne";
      for (const char* order : {"sequential", "pairwise"}) {
        const auto honest = prover.Judge(Model("in=as_is;prod=exact;acc=float32" + out), order, "y");
        EXPECT_EQ(honest.joined, ContractVerdict::kConforms)
            << step << " " << dtype << " " << order << ": " << Survivors(honest.classification);
        for (const char* acc : {"bfloat16", "float16"}) {
          const auto narrow =
              prover.Judge(Model("in=as_is;prod=exact;acc=" + std::string(acc) + out), order, "y");
          EXPECT_EQ(narrow.joined, ContractVerdict::kViolates)
              << step << " " << dtype << " " << acc << " " << order << ": "
              << Survivors(narrow.classification);
        }
      }
    }
  }
}

TEST(Prove, OutsideTheReachOfProbesThereAreNoCompanions) {
  const Case c = Load(R"(    tensors: {x: {dtype: bfloat16, shape: [16, 64], fill: normal}}
    program: [{op: cumsum, of: [x], dim: 1, as: y}]
    observe: [y]
    contract: {status: de_facto, prove: true, accept: {y: {acc: [at_least_float32]}}}
)");
  EXPECT_TRUE(CompanionsOf(c).empty());
  EXPECT_TRUE(Provable(c).empty());
  EXPECT_EQ(Provable(Matmul("bfloat16", 64, kDemand)), std::set<std::string>{"y"});
  EXPECT_EQ(Provable(Reduction("sum", "bfloat16")), std::set<std::string>{"y"});
  const Case further = Load(R"(    tensors:
      x: {dtype: bfloat16, shape: [16, 64], fill: normal}
      w: {dtype: bfloat16, shape: [64, 16], fill: normal}
    program:
      - {op: matmul, of: [x, w], as: product}
      - {op: cast, of: [product], dtype: float32, as: wide}
    observe: [product, wide]
    contract: {status: de_facto, prove: true, accept: {product: {mid: [none]}, wide: {mid: [none]}}}
)");
  EXPECT_EQ(Provable(further), std::set<std::string>{"product"});
  EXPECT_EQ(CompanionsOf(further).size(), 6u);
}

TEST(Prove, CompanionsDifferFromTheirCaseInFillsAlone) {
  const Case c = Matmul("bfloat16", 300, kDemand);
  const auto companions = CompanionsOf(c);
  std::vector<std::string> names;
  for (const Companion& companion : companions) {
    names.push_back(companion.name);
    const Case& one = companion.test_case;
    EXPECT_EQ(one.id, c.id + "~" + companion.name);
    EXPECT_EQ(BaseOf(one.id), c.id);
    EXPECT_EQ(one.companion_of, c.id);
    EXPECT_TRUE(one.contract.accept_any);
    EXPECT_TRUE(MakeInputs(one, 0));
    for (size_t i = 0; i < c.tensors.size(); ++i) {
      EXPECT_EQ(one.tensors[i].shape, c.tensors[i].shape);
      EXPECT_EQ(one.tensors[i].dtype, c.tensors[i].dtype);
      EXPECT_EQ(one.tensors[i].strides, c.tensors[i].strides);
    }
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"single", "cancel", "swamp", "wide", "half", "chunk", "normal"}));
  Case silent = c;
  silent.contract.prove = false;
  EXPECT_TRUE(CompanionsOf(silent).empty());
  EXPECT_EQ(BaseOf(c.id), "");
}

}  // namespace
}  // namespace ulpscope
