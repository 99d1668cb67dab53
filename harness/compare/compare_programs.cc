// Exact results, and both runs.
#include "harness/compare/compare_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/casefile/generate.h"
#include "harness/casefile/open.h"
#include "harness/casefile/program_edits.h"
#include "harness/compare/compare_books.h"
#include "harness/compare/exact_program.h"
#include "harness/hybrid/carriers.h"
#include "harness/model/tensor_diff.h"
#include "harness/run/interrupt.h"
#include "harness/workspace/case_yaml.h"

namespace ulpscope {
namespace {

/// A program of one step has nothing inside to observe, so it counts as instrumented.
std::optional<Case> OpenedForBooks(const Case& c) {
  if (auto opened = Opened(c)) return opened;
  if (!IsOneStep(c)) return std::nullopt;
  Case opened = c;
  opened.companion_of = c.id;
  opened.id = c.id + "~opened";
  return opened;
}

/// The case with every value that is to be evaluated.
Case EvaluatedCase(const ProgramRun& run) {
  if (!run.opened) return run.asked;
  Case c = *run.opened;
  for (const std::string& name : run.asked.observe) {
    if (!Contains(c.observe, name)) c.observe.push_back(name);
  }
  return c;
}

std::vector<std::string> ResultsOf(const Case& c) {
  std::vector<std::string> results = c.observe;
  std::erase_if(results, [](const std::string& name) {
    return name == "trace" || name == "peak_bytes" || name.ends_with("_metadata_dtype");
  });
  return results;
}

/// By name if both programs have the same names, else in order.
Result<std::vector<ResultPair>> PairResults(const ProgramRun& f, const ProgramRun& g) {
  const auto of_f = ResultsOf(f.asked), of_g = ResultsOf(g.asked);
  if (of_f.size() != of_g.size())
    return Fail(fmt::format("{} observes {} ({}), {} observes {} ({}): their results do not pair", f.name,
                            Counted(static_cast<int64_t>(of_f.size()), "value"), Join(of_f, ", "), g.name,
                            Counted(static_cast<int64_t>(of_g.size()), "value"), Join(of_g, ", ")));
  const bool same_names =
      std::ranges::all_of(of_f, [&](const std::string& name) { return Contains(of_g, name); });
  std::vector<ResultPair> pairs;
  for (size_t i = 0; i < of_f.size(); ++i)
    pairs.push_back({.f = of_f[i], .g = same_names ? of_f[i] : of_g[i]});
  return pairs;
}

Result<void> CheckSameInputs(const ProgramRun& f, const ProgramRun& g) {
  bool any = f.inputs.empty() && g.inputs.empty();
  for (const auto& [name, wanted] : f.inputs) {
    const TensorData& tensor = wanted;  // a name that a lambda can capture
    any = any || std::ranges::any_of(g.inputs, [&](const auto& each) { return each.second == tensor; });
    const TensorData* other = Lookup(g.inputs, name);
    if (other == nullptr || *other == tensor) continue;
    const bool alike = other->dtype == tensor.dtype && other->shape == tensor.shape;
    return Fail(fmt::format("the two programs have other inputs: {} is {} in {} and {} in {}", name,
                            Describe(tensor.dtype, tensor.shape), f.name,
                            alike ? "of other values" : Describe(other->dtype, other->shape), g.name));
  }
  if (!any) return Fail(fmt::format("{} and {} have no input in common", f.name, g.name));
  return {};
}

Result<void> CheckShapes(const ProgramRun& f, const ProgramRun& g, const std::vector<ResultPair>& pairs) {
  for (const ResultPair& pair : pairs) {
    const TensorData *of_f = Lookup(f.own.values, pair.f), *of_g = Lookup(g.own.values, pair.g);
    if (of_f == nullptr || of_g == nullptr)
      return Fail(fmt::format("{} is no tensor, and cannot be compared", of_f == nullptr ? pair.f : pair.g));
    if (of_f->shape != of_g->shape)
      return Fail(fmt::format("the results have other shapes: {} gives {} {}, {} gives {} {}", f.name, pair.f,
                              Describe(of_f->dtype, of_f->shape), g.name, pair.g,
                              Describe(of_g->dtype, of_g->shape)));
  }
  return {};
}

/// The elements in which two results are furthest apart.
std::set<int64_t> FurthestElements(const TensorData& a, const TensorData& b) {
  constexpr size_t kFurthest = 64;
  std::vector<std::pair<double, int64_t>> apart;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double distance = std::fabs(a.At(i) - b.At(i));
    if (distance != 0) apart.emplace_back(std::isnan(distance) ? INFINITY : distance, i);
  }
  const size_t kept = std::min(kFurthest, apart.size());
  std::partial_sort(apart.begin(), apart.begin() + static_cast<std::ptrdiff_t>(kept), apart.end(),
                    [](const auto& x, const auto& y) { return x.first > y.first; });
  std::set<int64_t> elements;
  for (size_t i = 0; i < kept; ++i) elements.insert(apart[i].second);
  return elements;
}

int64_t DifferingElements(const TensorData& a, const TensorData& b) {
  if (a.dtype != b.dtype) return -1;
  const TensorDifference difference = CompareTensors(a, b);
  return difference.number + difference.special;
}

class ComparisonOfTwo {
 public:
  ComparisonOfTwo(const Workspace& workspace, const CompareOptions& options)
      : registry_(workspace.registry), options_(options) {
    RunOptions run;
    run.repeat = 1;
    run.trace = false;
    run.seed = options.seed;
    run.timeout_s = options.timeout_s;
    run.startup_timeout_s = std::max(run.startup_timeout_s, options.timeout_s);
    carriers_ = std::make_unique<Carriers>(registry_, run, interrupt_.fd());
  }

  Result<ProgramComparison> Make(const ProgramToCompare& f, const ProgramToCompare& g) {
    ProgramComparison made;
    made.f = f.name;
    made.g = g.name;
    made.backend = options_.backend;
    ULPSCOPE_TRY(Take(f, &f_));
    ULPSCOPE_TRY(Take(g, &g_));
    ULPSCOPE_TRY(CheckSameInputs(f_, g_));
    pairs_ = ULPSCOPE_TRY(PairResults(f_, g_));
    ULPSCOPE_TRY(RunOn(&f_));
    ULPSCOPE_TRY(RunOn(&g_));
    ULPSCOPE_TRY(CheckShapes(f_, g_, pairs_));
    ULPSCOPE_TRY(Evaluate());
    ULPSCOPE_TRY(TellResults(&made));
    TellMatched(&made);
    made.parting = FindParting(f_.exact, g_.exact, pairs_);
    if (made.parting) {
      made.parting_shape = g_.Exactly(made.parting->at_g).shape;
      made.step_g = StepCalled(g_, made.parting->step);
      made.step_f = StepCalled(f_, made.parting->of_f);
      if (made.parting->only_f != made.parting->of_f) made.only_f = StepCalled(f_, made.parting->only_f);
    } else {
      ComparisonBooks books(registry_, options_, carriers_.get(), {&f_, &g_}, in_f_);
      made.ledgers = ULPSCOPE_TRY(books.Make(made.results));
    }
    return made;
  }

 private:
  Result<Observation> RunOne(const std::string& backend, const GivenProgram& program,
                             const std::string& name) {
    auto ran = ULPSCOPE_TRY(carriers_->Run(backend, program));
    if (!ran) return Fail("interrupted");
    if (ran->outcome.kind != OutcomeKind::kCompleted)
      return Fail(fmt::format("{} does not compute {}: {}", backend, name, DescribeWhole(ran->outcome)));
    return *std::move(ran);
  }

  Result<void> Take(const ProgramToCompare& program, ProgramRun* run) const {
    run->name = program.name;
    run->asked = program.test_case;
    run->opened = OpenedForBooks(program.test_case);
    run->inputs = ULPSCOPE_TRY(MakeInputs(program.test_case, options_.seed));
    return {};
  }

  Result<void> RunOn(ProgramRun* run) {
    run->own =
        ULPSCOPE_TRY(RunOne(options_.backend, {.program = run->asked, .inputs = run->inputs}, run->name));
    if (!run->opened) return {};
    auto steps =
        ULPSCOPE_TRY(carriers_->Run(options_.backend, {.program = *run->opened, .inputs = run->inputs}));
    if (!steps) return Fail("interrupted");
    if (steps->outcome.kind != OutcomeKind::kCompleted) return {};
    run->steps = *std::move(steps);
    run->keeps = std::ranges::all_of(ResultsOf(run->asked), [&](const std::string& name) {
      if (!Contains(run->opened->observe, name)) return true;  // a gradient
      const TensorData *own = Lookup(run->own.values, name), *again = Lookup(run->steps.values, name);
      return own != nullptr && again != nullptr && *own == *again;
    });
    return {};
  }

  Result<void> Evaluate() {
    const Case f = EvaluatedCase(f_), g = EvaluatedCase(g_);
    const auto of_f = ULPSCOPE_TRY(ExactEvaluation::Open(f, f_.inputs, NumbersOfOneAlone(f, g)));
    const auto of_g = ULPSCOPE_TRY(ExactEvaluation::Open(g, g_.inputs, NumbersOfOneAlone(g, f)));
    std::map<Shape, std::set<int64_t>> also;
    for (const ResultPair& pair : pairs_) {
      const TensorData& result = f_.own.values.at(pair.f);
      also[result.shape].merge(FurthestElements(result, g_.own.values.at(pair.g)));
    }
    const int64_t most = std::min(of_f.MostElements(), of_g.MostElements());
    f_.exact = of_f.Values(most, also);
    g_.exact = of_g.Values(most, also);
    return {};
  }

  Result<void> TellResults(ProgramComparison* made) const {
    for (const ResultPair& pair : pairs_) {
      const ProgramValue &f = f_.Exactly(pair.f), &g = g_.Exactly(pair.g);
      for (const auto& [value, run] : {std::pair(&f, &f_), std::pair(&g, &g_)}) {
        if (!value->gap.empty())
          return Fail(fmt::format("{} of {} has no exact value: {}", value->name, run->name, value->gap));
      }
      ComparedResult result{.f = pair.f, .g = pair.g, .shape = f.shape};
      result.elements = ElementCount(f.shape);
      result.compared = static_cast<int64_t>(f.elements.size());
      for (size_t i = 0; i < f.references.size(); ++i) {
        const double slack = (f.slack.empty() ? 0 : f.slack[i]) + (g.slack.empty() ? 0 : g.slack[i]);
        const Agreement agreement = Compare(f.references[i], g.references[i], slack);
        if (agreement == Agreement::kUndecided) ++result.undecided;
        // A slack within the errors of the evaluation is not known to move anything.
        if (slack > 4 * (f.references[i].err + g.references[i].err))
          made->of_numbers = std::max(made->of_numbers, slack);
        if (agreement != Agreement::kDiffers) continue;
        ++result.different;
        const double apart =
            std::fabs((f.references[i].hi - g.references[i].hi) + (f.references[i].lo - g.references[i].lo));
        result.largest = std::max(result.largest, std::isnan(apart) ? INFINITY : apart);
      }
      if (result.undecided == result.compared)
        return Fail(fmt::format("exact arithmetic distinguishes no element of {}", pair.f));
      result.differing = DifferingElements(f_.own.values.at(pair.f), g_.own.values.at(pair.g));
      made->results.push_back(std::move(result));
    }
    return {};
  }

  /// Finds the counterparts in f of the steps of g.
  void TellMatched(ProgramComparison* made) {
    std::vector<ResultPair> turned;
    for (const ResultPair& pair : pairs_) turned.push_back({.f = pair.g, .g = pair.f});
    const std::vector<int> matches = Align(g_.exact, f_.exact, turned);
    for (size_t i = 0; i < matches.size(); ++i) {
      if (matches[i] < 0 || g_.exact[i].op.empty() || g_.exact[i].is_inside) continue;
      if (f_.exact[static_cast<size_t>(matches[i])].is_inside) continue;
      const std::string& f = f_.exact[static_cast<size_t>(matches[i])].name;
      made->matched.push_back({.f = f, .g = g_.exact[i].name});
      in_f_.emplace(g_.exact[i].name, f);
    }
  }

  static std::string StepCalled(const ProgramRun& run, const std::string& name) {
    for (const Step* step : FlatSteps(run.asked.program)) {
      if (step->as == name && !name.empty()) return StepYaml(*step);
    }
    return "";
  }

  const Registry& registry_;
  const CompareOptions& options_;
  Interrupt interrupt_;
  std::unique_ptr<Carriers> carriers_;
  ProgramRun f_, g_;
  std::vector<ResultPair> pairs_;
  std::map<std::string, std::string> in_f_;  ///< step of g -> its counterpart in f
};

}  // namespace

Result<ProgramComparison> ComparePrograms(const Workspace& workspace, const ProgramToCompare& f,
                                          const ProgramToCompare& g, const CompareOptions& options) {
  return ComparisonOfTwo(workspace, options).Make(f, g);
}

}  // namespace ulpscope
