// The central claim, with no framework: every small case of the seeds, run by the emulated arithmetic at
// every model of the bank, comes back from the classifier under its own name, in a set whose other members
// are documented.
//
// Another member of the set may stay for one of two reasons. It gives these very bits in some accumulation
// order of its family: the test computes that. Or its bits differ in the simulated orders, but lie inside its
// error law: a judgement, and tests/golden/indistinguishable/ lists each of them. A judgement that is not listed
// fails the test, and so does a line that no judgement needs any more. ULPSCOPE_REGENERATE_GOLDEN=1 writes the
// files anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "harness/base/build_info.h"
#include "harness/casefile/generate.h"
#include "harness/casefile/load.h"
#include "harness/judge/classify.h"
#include "harness/judge/likelihood.h"
#include "oracles/models.h"
#include "oracles/oracle.h"

namespace ulpscope {
namespace {

constexpr int64_t kMostMultiplyAdds = 1'500'000;
const std::filesystem::path kGoldenRoot = SourceDir();
const std::filesystem::path kGolden = kGoldenRoot / "tests/golden/indistinguishable";

bool Regenerate() { return std::getenv("ULPSCOPE_REGENERATE_GOLDEN") != nullptr; }

std::vector<Case> SmallSeeds() {
  const std::vector<std::string> where{(kGoldenRoot / "cases/seeds").string()};
  LoadResult loaded = LoadCases(where, kGoldenRoot / "cases", Vocabulary{});
  for (const auto& error : loaded.errors) ADD_FAILURE() << error.Text();
  std::vector<Case> small;
  for (auto& c : loaded.cases) {
    if (!c.requires_.empty()) continue;  // the same programs as their twins without a GPU
    // Ops with steps of their own, and gradients of several steps, are no value of one model: tests/oracles asks each of its models.
    if (c.id.find("autocast_policy/") != c.id.npos || c.id.find("sum_loss/") != c.id.npos) continue;
    const auto cost = EmulationCost(c);
    if (cost && *cost > 0 && *cost <= kMostMultiplyAdds) small.push_back(std::move(c));
  }
  return small;
}

std::map<std::string, TensorData> DrawnInputs(const Case& c) {
  std::map<std::string, TensorData> inputs;
  for (const auto& tensor : c.tensors) {
    auto data = GenerateTensor(tensor, 0);
    EXPECT_TRUE(data) << (data ? "" : data.error().Text());
    if (data) inputs.emplace(tensor.name, std::move(*data));
  }
  return inputs;
}

std::string FileName(std::string id) {
  std::replace_if(
      id.begin(), id.end(), [](char c) { return c == '/' || c == '[' || c == ']' || c == '=' || c == ','; },
      '.');
  return id + ".txt";
}

/// What is said of one value, each answer computed once: most models give a value the bits that another one gives it.
class Answers {
 public:
  Answers(const CaseOracle& oracle, std::string value, DType dtype)
      : oracle_(oracle), value_(std::move(value)), bank_(oracle.Bank(value_, dtype)) {
    for (const auto& hypothesis : bank_) by_model_[hypothesis->model()].push_back(hypothesis.get());
  }

  bool Knows(const PrecisionModel& model) const { return by_model_.contains(model); }

  struct Answer {
    TensorData data;
    Classification classification;
    std::set<PrecisionModel> same_bits;  ///< members of the set of which an order gives these very bits
  };

  const Answer& Of(const TensorData& data) {
    for (const Answer& known : known_) {
      if (known.data == data) return known;
    }
    Answer answer{.data = data, .classification = ClassifyValue(oracle_, value_, data), .same_bits = {}};
    std::vector<int64_t> elements;
    std::vector<double> stored;
    const int64_t count = std::min<int64_t>(data.size(), 128);
    for (int64_t i = 0; i < count; ++i) {
      elements.push_back(i * data.size() / count);
      stored.push_back(data.At(elements.back()));
    }
    for (const PrecisionModel& member : answer.classification.models) {
      auto& hypotheses = by_model_[member];
      // One that no bank lists, and that stands beside one that it does (products of 11 bits beside float16's).
      if (hypotheses.empty()) {
        const Proposal proposal{
            .in = member.in, .acc = member.acc, .mid = member.mid, .prod = member.prod, .out = member.out};
        for (auto& made : oracle_.Propose(value_, data.dtype, std::span(&proposal, 1))) {
          bank_.push_back(std::move(made));
          hypotheses.push_back(bank_.back().get());
        }
      }
      if (std::any_of(hypotheses.begin(), hypotheses.end(), [&](const Hypothesis* hypothesis) {
            return ExactMatch(*hypothesis, elements, stored).matches > 0;
          }))
        answer.same_bits.insert(member);
    }
    return known_.emplace_back(std::move(answer));
  }

 private:
  const CaseOracle& oracle_;
  std::string value_;
  std::vector<std::unique_ptr<Hypothesis>> bank_;
  std::map<PrecisionModel, std::vector<const Hypothesis*>> by_model_;
  std::deque<Answer> known_;
};

/// "value | truth | other", one line each; the golden lines of one case, no file where there are none.
class Golden {
 public:
  explicit Golden(const std::string& id) : path_(kGolden / FileName(id)) {
    std::ifstream in(path_);
    for (std::string line; std::getline(in, line);) lines_.insert(line);
  }
  void Check(const std::string& line) {
    seen_.insert(line);
    EXPECT_TRUE(Regenerate() || lines_.contains(line)) << "not documented as indistinguishable: " << line;
  }
  void Finish() const {
    for (const auto& line : lines_)
      EXPECT_TRUE(Regenerate() || seen_.contains(line)) << "no longer needed in " << path_ << ": " << line;
    if (!Regenerate()) return;
    std::filesystem::remove(path_);
    if (seen_.empty()) return;
    std::ofstream out(path_);
    for (const auto& line : seen_) out << line << "\n";
  }

 private:
  std::filesystem::path path_;
  std::set<std::string> lines_, seen_;
};

/// The ids of the small cases; under a sanitizer, which costs ten times as much, the first two.
std::vector<std::string> SmallSeedIds() {
  std::vector<std::string> ids;
  for (const Case& c : SmallSeeds()) ids.push_back(c.id);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  ids.resize(std::min<size_t>(ids.size(), 2));
#endif
  return ids;
}

class KnownAnswers : public ::testing::TestWithParam<std::string> {};

std::string TestName(const ::testing::TestParamInfo<std::string>& id) {
  std::string name = id.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Seeds, KnownAnswers, ::testing::ValuesIn(SmallSeedIds()), TestName);

TEST_P(KnownAnswers, EveryModelComesBack) {
  const auto cases = SmallSeeds();
  const auto found =
      std::find_if(cases.begin(), cases.end(), [](const Case& c) { return c.id == GetParam(); });
  ASSERT_NE(found, cases.end());
  const Case& c = *found;
  const auto inputs = DrawnInputs(c);
  auto oracle = OpenCaseOracle(c, inputs);
  ASSERT_TRUE(oracle) << c.id;
  Golden golden(c.id);
  int64_t classified = 0, identified = 0, foreign = 0, same_bits = 0;
  size_t which = 0;
  std::map<std::pair<std::string, DType>, Answers> answers;
  for (const PrecisionModel& model : ModelBank()) {
    const char* order = std::array{"sequential", "lanes8", "pairwise"}[which++ % 3];
    const auto values = EmulateProgram(c, inputs, model, order);
    ASSERT_TRUE(values) << values.error().Text();
    for (const auto& [value, data] : *values) {
      const auto truth = TrueModel(c, value, model, data.dtype);
      ASSERT_TRUE(truth) << value;
      auto known = answers.find({value, data.dtype});
      if (known == answers.end())
        known = answers.try_emplace({value, data.dtype}, **oracle, value, data.dtype).first;
      // Partial sums in a format that is none of the value's are no model of it: nothing to find.
      if (!truth->acc.exact() && !truth->acc.binary()) {
        if (!known->second.Knows(*truth)) {
          ++foreign;
          continue;
        }
      }
      const Answers::Answer& answer = known->second.Of(data);
      const Classification& result = answer.classification;
      ++classified;
      identified += result.models.size() == 1 ? 1 : 0;
      ASSERT_GT(result.checked, 0) << value;
      const auto holds = [&](const std::vector<PrecisionModel>& set) {
        return std::find(set.begin(), set.end(), *truth) != set.end();
      };
      EXPECT_TRUE(holds(result.models_proved))
          << value << " in " << order << ": hard evidence excluded the truth " << truth->Name();
      EXPECT_TRUE(holds(result.models)) << value << " in " << order << ": the set lacks the truth "
                                        << truth->Name() << ", it says " << result.label;
      for (const PrecisionModel& other : result.models) {
        if (other == *truth) continue;
        if (answer.same_bits.contains(other)) {
          ++same_bits;
        } else {
          golden.Check(value + " | " + truth->Name() + " | " + other.Name());
        }
      }
    }
  }
  golden.Finish();
  EXPECT_GE(classified, static_cast<int64_t>(ModelBank().size()) - foreign);
  EXPECT_GT(classified, 20);
  std::cout << c.id << ": " << classified << " values classified at " << ModelBank().size() << " models, "
            << identified << " identified uniquely, " << same_bits << " other members give the same bits\n";
}

TEST(KnownAnswersCount, TheSuiteHasSmallCases) { EXPECT_GE(SmallSeeds().size(), 20u); }

}  // namespace
}  // namespace ulpscope
