// selfcheck: the classifier's error rates on kernels of known arithmetic, beside the practices in use; a gate that falls is exit 1.
//
//   ulpscope-selfcheck [--short | --long] [--threads N] [--seed S] [--share X] [--only TEXT] [--plant]
//
// --only keeps the models whose name holds TEXT, --share the share of all kernels; --plant declares every tenth kernel to be what it is
// not: the gates have to fall.
//
// Every kernel gets the same questions: random data, the probe families, and the structure decode. CONFORMS
// and VIOLATES come from hard evidence alone. A non-conforming kernel that gives, on all these inputs, the
// bits of a conforming one cannot be distinguished from it: it has to come out UNDETERMINED and is counted
// apart.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "harness/base/check.h"
#include "harness/base/text.h"
#include "harness/judge/classify.h"
#include "harness/model/conforming.h"
#include "oracles/oracle.h"
#include "tests/selfcheck/zoo.h"
#include "tests/support/cases.h"
#include "tests/support/models.h"

namespace ulpscope::selfcheck {
namespace {

struct Pair {
  DType in, out;
};
constexpr Pair kPairs[] = {{DType::kFloat32, DType::kFloat32},   {DType::kFloat32, DType::kBfloat16},
                           {DType::kFloat32, DType::kFloat16},   {DType::kBfloat16, DType::kFloat32},
                           {DType::kBfloat16, DType::kBfloat16}, {DType::kFloat16, DType::kFloat32},
                           {DType::kFloat16, DType::kFloat16}};
constexpr int64_t kLengths[] = {1, 2, 3, 7, 8, 64, 100, 256, 1000, 4096};
constexpr const char* kDistributions[] = {"normal", "uniform", "positive", "wide"};

struct Options {
  double share = 1;  ///< of all kernels, chosen by a hash
  int64_t longest = 4096;
  int threads = 2;
  uint64_t seed = 0;
  std::string only;
  bool plant = false;
};

/// The requests to one kernel and its answers.
struct Answers {
  int64_t m = 0, n = 0, k = 0;
  std::vector<double> a, b, y;
  std::vector<GroupOutputs> probes;
  BlockDecode decode;
};

/// The questions for one (in, K): made once.
struct Questions {
  std::vector<ProbeGroup> groups;
};

const Questions& QuestionsFor(DType in, int64_t k) {
  static std::mutex mutex;
  static std::map<std::pair<DType, int64_t>, Questions> known;
  const std::lock_guard lock(mutex);
  auto [entry, is_new] = known.emplace(std::pair(in, k), Questions{});
  if (is_new) {
    for (const auto& family : ProbeFamilies()) {
      if (family == "mask" || family == "fuse") continue;
      for (auto& group : ProbeGroups(family, in, k)) entry->second.groups.push_back(std::move(group));
    }
  }
  return entry->second;
}

double RunDot(const Kernel& kernel, const ProbeDot& dot, std::vector<double>* a, std::vector<double>* b) {
  for (const ProbeTerm& term : dot.terms) {
    (*a)[static_cast<size_t>(term.position)] = term.a;
    (*b)[static_cast<size_t>(term.position)] = term.b;
  }
  const double y = kernel.dot(*a, *b);
  for (const ProbeTerm& term : dot.terms)
    (*a)[static_cast<size_t>(term.position)] = (*b)[static_cast<size_t>(term.position)] = 0;
  return y;
}

Answers Ask(const Kernel& kernel, uint64_t seed) {
  Answers answers{.m = kernel.k >= 1000 ? 8 : 16,
                  .n = 8,
                  .k = kernel.k,
                  .a = {},
                  .b = {},
                  .y = {},
                  .probes = {},
                  .decode = {}};
  Numbers numbers(seed);
  for (int64_t i = 0; i < answers.m * kernel.k; ++i)
    answers.a.push_back(numbers.Draw(kernel.distribution, kernel.in));
  for (int64_t i = 0; i < answers.n * kernel.k; ++i)
    answers.b.push_back(numbers.Draw(kernel.distribution, kernel.in));
  std::vector<double> a(static_cast<size_t>(kernel.k)), b(a);
  for (int64_t row = 0; row < answers.m; ++row) {
    for (int64_t column = 0; column < answers.n; ++column) {
      for (int64_t t = 0; t < kernel.k; ++t) {
        a[static_cast<size_t>(t)] = answers.a[static_cast<size_t>(row * kernel.k + t)];
        b[static_cast<size_t>(t)] = answers.b[static_cast<size_t>(t * answers.n + column)];
      }
      answers.y.push_back(kernel.dot(a, b));
    }
  }
  std::fill(a.begin(), a.end(), 0.0);
  std::fill(b.begin(), b.end(), 0.0);
  for (const ProbeGroup& group : QuestionsFor(kernel.in, kernel.k).groups) {
    GroupOutputs outputs{.group = &group, .outputs = {}, .same_coordinate = SameCoordinate::kYes};
    for (const ProbeDot& dot : group.members) outputs.outputs.push_back(RunDot(kernel, dot, &a, &b));
    answers.probes.push_back(std::move(outputs));
  }
  answers.decode = DecodeBlocks(kernel.in, kernel.k, [&](std::span<const ProbeDot> dots) {
    std::vector<double> outputs;
    for (const ProbeDot& dot : dots) outputs.push_back(RunDot(kernel, dot, &a, &b));
    return outputs;
  });
  return answers;
}

enum class Verdict { kConforms, kViolates, kUndetermined, kUnmodelled };

struct Judged {
  Verdict verdict = Verdict::kUndetermined;
  std::vector<size_t> alive;
  bool allclose = false, rmse = false;  ///< pass by the practices in use
  double seconds = 0;
};

/// torch.testing.assert_close's defaults, and the rule of torch._dynamo.utils.same.
void Baselines(const Kernel& kernel, const Answers& answers, Judged* judged) {
  const FloatFormat& stored = *FormatOf(kernel.out);
  const double rtol = kernel.out == DType::kFloat32    ? 1.3e-6
                      : kernel.out == DType::kBfloat16 ? 1.6e-2
                                                       : 1e-3,
               atol = 1e-5;
  const double tolerance = kernel.out == DType::kFloat32 ? 1e-4 : 1e-3,
               factor = kernel.out == DType::kFloat32 ? 2 : 3;
  double own = 0, other = 0;
  bool close = true;
  for (int64_t row = 0; row < answers.m; ++row) {
    for (int64_t column = 0; column < answers.n; ++column) {
      double exact = 0, single = 0;
      for (int64_t t = 0; t < answers.k; ++t) {
        const double x = answers.a[static_cast<size_t>(row * answers.k + t)],
                     y = answers.b[static_cast<size_t>(t * answers.n + column)];
        exact += x * y;
        single = RoundTo(single + x * y, Binary32());
      }
      const double reference = RoundTo(single, stored),
                   observed = answers.y[static_cast<size_t>(row * answers.n + column)];
      close = close &&
              std::fabs(observed - RoundTo(exact, stored)) <= atol + rtol * std::fabs(RoundTo(exact, stored));
      own += (observed - exact) * (observed - exact);
      other += (reference - exact) * (reference - exact);
    }
  }
  const auto count = static_cast<double>(answers.y.size());
  judged->allclose = close;
  judged->rmse = close || std::sqrt(own / count) <= factor * std::sqrt(other / count) + tolerance / 10;
}

Judged Judge(const Kernel& kernel, const Answers& answers, const DotBank& bank) {
  Judged judged;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<char> alive(bank.models().size(), 1);
  bank.Exclude(answers.probes, &alive, nullptr);
  bank.Exclude(answers.decode, kernel.k, &alive);
  bank.Exclude(answers.a, answers.b, answers.y, answers.m, answers.k, answers.n, &alive);
  judged.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  size_t conforming = 0;
  for (size_t i = 0; i < alive.size(); ++i) {
    if (!alive[i]) continue;
    judged.alive.push_back(i);
    if (IsConforming(bank.models()[i].name, *FormatOf(kernel.out), kDotProduct)) ++conforming;
  }
  using enum Verdict;
  judged.verdict = judged.alive.empty()                ? kUnmodelled
                   : conforming == judged.alive.size() ? kConforms
                   : conforming == 0                   ? kViolates
                                                       : kUndetermined;
  Baselines(kernel, answers, &judged);
  return judged;
}

bool SameValue(double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); }

/// True if `twin` gives these answers, queried in the order in which a difference shows soonest.
bool GivesSame(const Kernel& twin, const Answers& answers) {
  std::vector<double> a(static_cast<size_t>(twin.k)), b(a);
  for (int64_t e = 0; e < answers.m * answers.n; ++e) {
    for (int64_t t = 0; t < twin.k; ++t) {
      a[static_cast<size_t>(t)] = answers.a[static_cast<size_t>(e / answers.n * twin.k + t)];
      b[static_cast<size_t>(t)] = answers.b[static_cast<size_t>(t * answers.n + e % answers.n)];
    }
    if (!SameValue(twin.dot(a, b), answers.y[static_cast<size_t>(e)])) return false;
  }
  std::fill(a.begin(), a.end(), 0.0);
  std::fill(b.begin(), b.end(), 0.0);
  for (const GroupOutputs& outputs : answers.probes) {
    for (size_t i = 0; i < outputs.outputs.size(); ++i) {
      if (!SameValue(RunDot(twin, outputs.group->members[i], &a, &b), outputs.outputs[i])) return false;
    }
  }
  const BlockDecode decode = DecodeBlocks(twin.in, twin.k, [&](std::span<const ProbeDot> dots) {
    std::vector<double> outputs;
    for (const ProbeDot& dot : dots) outputs.push_back(RunDot(twin, dot, &a, &b));
    return outputs;
  });
  return decode.kind == answers.decode.kind && decode.n == answers.decode.n &&
         decode.fraction == answers.decode.fraction && decode.mode == answers.decode.mode;
}

/// True if some conforming model gives these answers in some order.
bool LooksConforming(const Kernel& kernel, const Answers& answers, const DotBank& bank) {
  for (const DotModel& model : bank.models()) {
    if (!IsConforming(model.name, *FormatOf(kernel.out), kDotProduct)) continue;
    for (const SumOrder& order : SumOrders(AddendOrders::kNone)) {
      Kernel twin = kernel;
      twin.dot = [&](std::span<const double> a, std::span<const double> b) {
        return EmulateDot(model, order, a, b);
      };
      if (GivesSame(twin, answers)) return true;
    }
  }
  return false;
}

/// The class of an accumulator: its sub-variants (fused or not, flushing, how partial sums are joined) taken
/// together. A float64 sum of 16-bit operands is exact.
std::string AccumulatorClass(const PrecisionModel& model, DType in) {
  const bool narrow = in != DType::kFloat32 && in != DType::kFloat64;
  if (narrow && (AccWord(model.acc) == "exact" || AccWord(model.acc) == "float64")) return "float64";
  std::string word = AccWord(model.acc);
  for (const std::string_view suffix : {"+ftz", "_via_float32"}) {
    if (word.ends_with(suffix)) word.resize(word.size() - suffix.size());
  }
  return word.starts_with("split_k(") ? word.substr(0, word.find(',')) + ")" : word;
}

/// CPU time of everything that a run does to one value of a 64x64x64 product: exact references, candidate
/// models, evidence, likelihood.
double MillisecondsToClassify(DType dtype) {
  Case c;
  c.id = "selfcheck/product";
  c.tensors = {testing::Tensor("x", dtype, {64, 64}), testing::Tensor("y", dtype, {64, 64})};
  c.program = {testing::MakeStep("matmul", {"x", "y"}, "product")};
  c.observe = {"product"};
  const auto inputs = testing::NormalInputs(c, 1);
  PrecisionModel model;
  model.out = testing::Out(std::string(Name(dtype)) + "_rne");
  const auto values = EmulateProgram(c, inputs, model, "lanes16");
  ULPSCOPE_CHECK(values.has_value(), "the product cannot be emulated");
  std::vector<double> times;
  for (int i = 0; i < 3; ++i) {
    const std::clock_t begin = std::clock();
    auto oracle = OpenCaseOracle(c, inputs);
    const Classification result = ClassifyValue(**oracle, "product", values->at("product"));
    times.push_back(1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    ULPSCOPE_CHECK(result.checked == 4096 && !result.models.empty(), "the product was not classified");
  }
  std::sort(times.begin(), times.end());
  return times[1];
}

struct Tally {
  int64_t conforming = 0, false_alarms = 0, confirmed = 0;
  int64_t wrong = 0, missed = 0, violates = 0, twins = 0, twins_undetermined = 0;
  int64_t outside = 0, outside_labelled = 0, outside_unmodelled = 0;
  int64_t truth_lost = 0, kernels = 0;
  int64_t unique_f32 = 0, of_f32 = 0, unique_bf16 = 0, of_bf16 = 0, unique_full = 0, of_full = 0;
  int64_t blocks = 0, blocks_right = 0;
  int64_t allclose_missed = 0, allclose_false = 0, rmse_missed = 0, rmse_false = 0;
  double seconds = 0;
  int64_t timed = 0;
  std::map<std::string, std::map<std::string, int64_t>>
      confusion;  ///< truth's accumulator -> surviving accumulators
  std::vector<std::string> faults;
};

class Selfcheck {
 public:
  explicit Selfcheck(const Options& options) : options_(options) {}

  int Run() {
    MakeJobs();
    std::vector<std::thread> workers;
    for (int i = 0; i < options_.threads; ++i) workers.emplace_back([this] { Work(); });
    for (auto& worker : workers) worker.join();
    return Print();
  }

 private:
  struct Job {
    Pair pair;
    int64_t k;
    size_t model;  // of the bank; or the index of an outsider
    bool outside = false;
    size_t order = 0;
    std::string distribution;
    uint64_t seed = 0;
  };

  bool Chosen(uint64_t* counter) const {
    Numbers numbers(++*counter + 7919 * options_.seed);
    return std::fabs(numbers.Uniform()) < options_.share;
  }

  void MakeJobs() {
    uint64_t counter = 0;
    for (const Pair pair : kPairs) {
      const DotBank bank(pair.in, pair.out);
      for (const int64_t k : kLengths) {
        if (k > options_.longest) continue;
        // Long sums cost most and differ least: one in four.
        const double rarely = k >= 1000 ? 0.25 : 1;
        for (size_t model = 0; model < bank.models().size(); ++model) {
          const PrecisionModel& name = bank.models()[model].name;
          for (size_t order = 0; order < SumOrders(AddendOrders::kNone).size(); ++order) {
            const uint64_t index = counter;
            if (bank.models()[model].acc.partial != nullptr && k < 4) continue;  // nothing to split
            // Conforming models are a small part of the candidates: they are drawn more often.
            const double weight = IsConforming(name, *FormatOf(pair.out), kDotProduct) ? 11 : 1;
            Numbers numbers(++counter + 7919 * options_.seed);
            if (std::fabs(numbers.Uniform()) >= options_.share * weight * rarely) continue;
            if (!options_.only.empty() && name.Name().find(options_.only) == std::string::npos) continue;
            jobs_.push_back({.pair = pair,
                             .k = k,
                             .model = model,
                             .outside = false,
                             .order = order,
                             .distribution = kDistributions[index / 7 % 4],
                             .seed = index});
          }
        }
        for (size_t outsider = 0; outsider < OutsiderNames().size() && options_.only.empty(); ++outsider) {
          for (const char* distribution : kDistributions) {
            if (k < 7 || (options_.share < 0.02 &&
                          distribution != kDistributions[(outsider + static_cast<size_t>(k)) % 4]))
              continue;
            jobs_.push_back({.pair = pair,
                             .k = k,
                             .model = outsider,
                             .outside = true,
                             .order = 0,
                             .distribution = distribution,
                             .seed = ++counter});
          }
        }
      }
    }
  }

  void Work() {
    std::map<std::pair<DType, DType>, std::unique_ptr<DotBank>> banks;
    for (size_t i = next_++; i < jobs_.size(); i = next_++) {
      const Job& job = jobs_[i];
      auto& bank = banks[{job.pair.in, job.pair.out}];
      if (!bank) bank = std::make_unique<DotBank>(job.pair.in, job.pair.out);
      One(job, *bank);
    }
  }

  void One(const Job& job, const DotBank& bank) {
    Kernel kernel{.name = "",
                  .truth = Truth::kOutsideVocabulary,
                  .in = job.pair.in,
                  .out = job.pair.out,
                  .k = job.k,
                  .distribution = job.distribution,
                  .model = nullptr,
                  .order = "",
                  .dot = {}};
    if (job.outside) {
      kernel.name = OutsiderNames()[job.model];
      kernel.dot = Outsider(kernel.name, job.pair.out, job.seed);
    } else {
      kernel.model = &bank.models()[job.model];
      const SumOrder& order = SumOrders(AddendOrders::kNone)[job.order];
      kernel.name = kernel.model->name.Name();
      kernel.order = order.name;
      kernel.truth = IsConforming(kernel.model->name, *FormatOf(job.pair.out), kDotProduct)
                         ? Truth::kConforming
                         : Truth::kNonConforming;
      kernel.dot = [model = kernel.model, &order](std::span<const double> a, std::span<const double> b) {
        return EmulateDot(*model, order, a, b);
      };
    }
    if (options_.plant && !job.outside && job.seed % 10 == 0)
      kernel.truth = kernel.truth == Truth::kConforming ? Truth::kNonConforming : Truth::kConforming;
    const Answers answers = Ask(kernel, job.seed);
    const Judged judged = Judge(kernel, answers, bank);
    // Twins are looked for where the verdict alone does not settle the count.
    const bool twin = kernel.truth == Truth::kNonConforming && judged.verdict != Verdict::kViolates &&
                      LooksConforming(kernel, answers, bank);
    const std::lock_guard lock(mutex_);
    Count(kernel, answers, judged, twin, bank);
  }

  void Fault(const Kernel& kernel, const std::string& what, const Judged& judged, const DotBank& bank) {
    std::string set;
    for (size_t i = 0; i < std::min<size_t>(judged.alive.size(), 6); ++i)
      set += " " + bank.models()[judged.alive[i]].name.Name();
    tally_.faults.push_back(fmt::format("{}: {} {}->{} K={} {} {}; {} left:{}", what, kernel.name,
                                        Name(kernel.in), Name(kernel.out), kernel.k, kernel.order,
                                        kernel.distribution, judged.alive.size(), set));
  }

  void Count(const Kernel& kernel, const Answers& answers, const Judged& judged, bool twin,
             const DotBank& bank) {
    Tally& t = tally_;
    ++t.kernels;
    t.seconds += judged.seconds;
    ++t.timed;
    if (kernel.truth == Truth::kOutsideVocabulary) {
      ++t.outside;
      if (judged.verdict == Verdict::kUnmodelled) ++t.outside_unmodelled;
      const bool labelled = judged.verdict == Verdict::kConforms;
      if (labelled) {
        ++t.outside_labelled;
        Fault(kernel, "outsider labelled", judged, bank);
      }
      return;
    }
    const auto truth = static_cast<size_t>(kernel.model - bank.models().data());
    const bool kept = std::find(judged.alive.begin(), judged.alive.end(), truth) != judged.alive.end();
    if (!kept) {
      ++t.truth_lost;
      Fault(kernel, "truth lost", judged, bank);
    }
    if (kernel.truth == Truth::kConforming) {
      ++t.conforming;
      if (judged.verdict == Verdict::kConforms) ++t.confirmed;
      if (judged.verdict == Verdict::kViolates || judged.verdict == Verdict::kUnmodelled) {
        ++t.false_alarms;
        Fault(kernel, "false alarm", judged, bank);
      }
      if (!judged.allclose) ++t.allclose_false;
      if (!judged.rmse) ++t.rmse_false;
    } else {
      if (twin) {
        ++t.twins;
        if (judged.verdict == Verdict::kUndetermined)
          ++t.twins_undetermined;
        else
          Fault(kernel, "twin not undetermined", judged, bank);
      } else {
        ++t.wrong;
        if (judged.verdict == Verdict::kViolates) ++t.violates;
        if (judged.verdict != Verdict::kViolates) {
          ++t.missed;
          Fault(kernel, judged.verdict == Verdict::kConforms ? "missed: CONFORMS" : "missed: undetermined",
                judged, bank);
        }
        if (judged.allclose) ++t.allclose_missed;
        if (judged.rmse) ++t.rmse_missed;
      }
    }
    std::set<std::string> classes;
    for (const size_t i : judged.alive) classes.insert(AccumulatorClass(bank.models()[i].name, kernel.in));
    if (kernel.k >= 64) {
      const bool unique = classes.size() == 1 && kept;
      if (kernel.out == DType::kFloat32) {
        ++t.of_f32;
        if (unique)
          ++t.unique_f32;
        else
          Fault(kernel, "accumulator open", judged, bank);
      }
      if (kernel.out == DType::kBfloat16) {
        ++t.of_bf16;
        if (unique)
          ++t.unique_bf16;
        else
          Fault(kernel, "accumulator open", judged, bank);
      }
    }
    if (kernel.k == 64) {
      ++t.of_full;
      if (judged.alive.size() == 1 && kept)
        ++t.unique_full;
      else
        Fault(kernel, "full model open", judged, bank);
    }
    if (kernel.k >= 64) {
      for (const auto& word : classes) ++t.confusion[AccumulatorClass(kernel.model->name, kernel.in)][word];
    }
    const AccSpec& acc = kernel.model->acc;
    const bool plain = kernel.model->in.pieces == 1 && kernel.model->mid.none();
    if (acc.block > 0 && kernel.k >= 64 && plain) {
      ++t.blocks;
      const BlockDecode& d = answers.decode;
      const bool mode = acc.fraction < acc.format->precision - 1 || d.mode == acc.rounding;
      if (d.kind == BlockDecode::Kind::kFused && d.n == acc.block && d.fraction == acc.fraction && mode)
        ++t.blocks_right;
      else
        Fault(kernel,
              fmt::format("decoded n={} F={} mode={} kind={}", d.n, d.fraction,
                          d.mode ? static_cast<int>(*d.mode) : -1, static_cast<int>(d.kind)),
              judged, bank);
    }
  }

  int Print() {
    const Tally& t = tally_;
    int failed = 0, passed = 0;
    const auto row = [&](const std::string& what, const std::string& measured, const std::string& gate,
                         bool met) {
      fmt::print("{:<74} {:>16} {:>14}  {}\n", what, measured, gate, met ? "ok" : "FALLEN");
      ++(met ? passed : failed);
    };
    const auto share = [](int64_t part, int64_t whole) {
      return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
    };
    const bool whole = options_.share >= 0.02 && options_.only.empty();
    fmt::print(
        "{} kernels ({} conforming, {} not, {} bit-identical to a conforming one, {} outside the "
        "vocabulary), {} bank pairs\n\n",
        t.kernels, t.conforming, t.wrong, t.twins, t.outside, std::size(kPairs));
    fmt::print("{:<74} {:>16} {:>14}\n", "on kernels of known arithmetic", "measured", "gate");
    row("non-conforming kernels missed", fmt::format("{} of {}", t.missed, t.wrong), "0",
        t.missed == 0 && t.wrong > 0);
    row("bit-identical to a conforming kernel: UNDETERMINED",
        fmt::format("{} of {}", t.twins_undetermined, t.twins), "all", t.twins == t.twins_undetermined);
    row("false alarms on conforming kernels", fmt::format("{} of {}", t.false_alarms, t.conforming), "0",
        t.false_alarms == 0 && t.conforming > 0);
    row("truth left the set", fmt::format("{} of {}", t.truth_lost, t.kernels - t.outside), "0",
        t.truth_lost == 0);
    row("outside the vocabulary, given a conforming or wrong label",
        fmt::format("{} of {}", t.outside_labelled, t.outside), "0", t.outside_labelled == 0);
    row("unique accumulator class, K >= 64, float32 out",
        fmt::format("{:.4f}", share(t.unique_f32, t.of_f32)), "1.000", share(t.unique_f32, t.of_f32) >= 1);
    row("unique accumulator class, K >= 64, bfloat16 out",
        fmt::format("{:.4f}", share(t.unique_bf16, t.of_bf16)), "0.999",
        share(t.unique_bf16, t.of_bf16) >= 0.999);
    row("unique full model, K = 64", fmt::format("{:.4f}", share(t.unique_full, t.of_full)), "0.91",
        share(t.unique_full, t.of_full) >= 0.91);
    row("block units decoded (n, F, mode), K >= 64", fmt::format("{} of {}", t.blocks_right, t.blocks), "all",
        t.blocks_right == t.blocks && t.blocks > 0);
    if (whole) {
      row("kernels: non-conforming", fmt::format("{}", t.wrong), ">= 6000", t.wrong >= 6000);
      row("kernels: conforming", fmt::format("{}", t.conforming), ">= 4000", t.conforming >= 4000);
    }
    const double narrow = MillisecondsToClassify(DType::kBfloat16),
                 wide = MillisecondsToClassify(DType::kFloat32);
    const char* const classify =
        "time to classify one 64x64x64 case, all models, one core: bfloat16 / float32";
    const std::string took = fmt::format("{:.0f} / {:.0f} ms", narrow, wide);
    // Milliseconds are the machine's as much as ours: the long form, which has a machine to itself, holds
    // them to a gate; the short one is a test, and only prints them.
    if (whole) {
      row(classify, took, "250 ms", std::max(narrow, wide) <= 250);
    } else {
      fmt::print("{:<74} {:>16}\n", classify, took);
    }
    fmt::print("\n{:<40} {:>14} {:>14} {:>14}\n", "the same data", "allclose", "RMSE (dynamo)", "ulpscope");
    fmt::print("{:<40} {:>14} {:>14} {:>14}\n", fmt::format("missed of {} non-conforming", t.wrong),
               t.allclose_missed, t.rmse_missed, t.missed);
    fmt::print("{:<40} {:>14} {:>14} {:>14}\n", fmt::format("false alarms of {} conforming", t.conforming),
               t.allclose_false, t.rmse_false, t.false_alarms);
    fmt::print("{:<40} {:>14} {:>14} {:>14}\n", "conforming confirmed", "-", "-", t.confirmed);
    fmt::print("\nmean time of the evidence per kernel: {:.1f} ms\n",
               1e3 * t.seconds / static_cast<double>(std::max<int64_t>(1, t.timed)));
    fmt::print("\nconfusion of accumulators, K >= 64 (truth: kernels in which each class survives)\n");
    for (const auto& [truth, words] : t.confusion) {
      fmt::print("  {:<28}", truth);
      for (const auto& [word, count] : words) fmt::print(" {}:{}", word, count);
      fmt::print("\n");
    }
    std::map<std::string, int> shown;
    for (const auto& fault : t.faults) {
      if (++shown[fault.substr(0, 12)] <= 8) fmt::print("  {}\n", fault);
    }
    fmt::print("\n{} passed, {} failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
  }

  Options options_;
  std::vector<Job> jobs_;
  std::atomic<size_t> next_{0};
  std::mutex mutex_;
  Tally tally_;
};

}  // namespace

int Main(int argc, char** argv) {
  Options options;
  options.share = 0.004;
  options.longest = 256;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (word == "--short") continue;
    if (word == "--long") {
      options.share = 0.022;
      options.longest = 4096;
    } else if (word == "--threads") {
      options.threads = std::atoi(value().c_str());
    } else if (word == "--seed") {
      options.seed = std::strtoull(value().c_str(), nullptr, 10);
    } else if (word == "--share") {
      options.share = std::atof(value().c_str());
    } else if (word == "--plant") {
      options.plant = true;
    } else if (word == "--only") {
      options.only = value();
    } else {
      fmt::print(stderr, "ulpscope-selfcheck: unknown argument {}\n", word);
      return 4;
    }
  }
  return Selfcheck(options).Run();
}

}  // namespace ulpscope::selfcheck

int main(int argc, char** argv) { return ulpscope::selfcheck::Main(argc, argv); }
