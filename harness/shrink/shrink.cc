// The search: steps first, then sizes, then values and words.
#include "harness/shrink/shrink.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include "harness/base/find.h"
#include "harness/casefile/fill_data.h"
#include "harness/casefile/generate.h"
#include "harness/casefile/open.h"
#include "harness/casefile/program_edits.h"
#include "harness/record/observation_json.h"
#include "harness/workspace/case_yaml.h"

namespace ulpscope {
namespace {

constexpr size_t kMostObserved = 200;     ///< values of one run
constexpr size_t kMostGroups = 48;        ///< groups of axes of one extent that are tried
constexpr int kMostElementTrials = 48;    ///< of one tensor
constexpr int64_t kMostListed = 100'000;  ///< elements that a case file holds, all in all

int64_t Elements(const Case& c) {
  int64_t count = 0;
  for (const TensorSpec& spec : c.tensors) count += ElementCount(spec.shape);
  return count;
}

int64_t Listed(const Case& c) {
  int64_t count = 0;
  for (const TensorSpec& spec : c.tensors) {
    const auto* fill = spec.fill.If<Attr::Map>();
    if (fill != nullptr && fill->contains("values")) count += ElementCount(spec.shape);
  }
  return count;
}

std::string_view WordOf(const Attr& fill) {
  const auto* word = fill.If<std::string>();
  return word == nullptr ? std::string_view() : *word;
}

/// What asks for something of the case, and what only selects it.
Case Bare(Case c) {
  c.contract = {};
  c.expect.clear();
  c.tags.clear();
  c.companion_of.clear();
  return c;
}

/// Nearest first: the steps that make the operands of `steps`, with them.
std::set<size_t> WithProducers(const std::vector<const Step*>& flat, const std::set<size_t>& steps) {
  std::set<size_t> found = steps;
  for (const size_t step : steps) {
    const std::set<std::string> read = NamesOf({*flat[step]}).read;
    for (size_t i = 0; i < step; ++i) {
      if (read.contains(flat[i]->as) || (!flat[i]->out.empty() && read.contains(flat[i]->out)))
        found.insert(i);
    }
  }
  return found;
}

class CaseShrinker {
 public:
  CaseShrinker(const Case& c, Trials* trials, const ShrinkOptions& options)
      : trials_(*trials), options_(options), current_(Bare(c)) {
    until_ =
        std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                               std::chrono::duration<double>(60 * options.minutes));
  }

  Result<Shrunk> Run() {
    Shrunk shrunk;
    shrunk.steps_before = CountSteps(current_.program);
    shrunk.elements_before = Elements(current_);
    ULPSCOPE_TRY(Begin());
    Tell("begins with " + Describe(*target_));
    Steps();
    Sizes();
    if (CountSteps(current_.program) > 1) Steps();
    Words();
    Values();
    Sizes();
    LessObserved();
    ULPSCOPE_TRY(HoldElements());
    shrunk.test_case = current_;
    shrunk.target = *target_;
    shrunk.last = std::move(last_);
    shrunk.stopped_early = stopped_;
    shrunk.steps_after = CountSteps(current_.program);
    shrunk.elements_after = Elements(current_);
    return shrunk;
  }

 private:
  /// What is printed lies beside no file of tensors: what stood in one stands in the case.
  Result<void> HoldElements() {
    for (size_t i = 0; i < current_.tensors.size(); ++i) {
      if (FileOfFill(current_.tensors[i]).empty()) continue;
      const auto elements = ULPSCOPE_TRY(GenerateTensor(current_.tensors[i], options_.seed));
      current_ = WithElements(current_, i, elements);
    }
    return {};
  }

  void Tell(const std::string& line) const {
    if (options_.progress) options_.progress(line);
  }

  bool Stopped() {
    if (!stopped_ && (trials_.interrupted() || std::chrono::steady_clock::now() > until_)) stopped_ = true;
    return stopped_;
  }

  /// All that the steps give is observed where that can be, so that each is judged by itself; else what was.
  Case Observing(Case c) const {
    const std::vector<std::string> made = NamesMadeBy(c);
    std::set<std::string> there(made.begin(), made.end());
    for (const TensorSpec& spec : c.tensors) there.insert(spec.name);
    if (CanBeOpened(c) && !Differentiates(c) && made.size() <= kMostObserved) {
      std::erase_if(c.observe, [&](const std::string& name) { return name != "trace"; });
      c.observe.insert(c.observe.begin(), made.begin(), made.end());
      return c;
    }
    std::erase_if(c.observe, [&](const std::string& name) {
      return name != "trace" && name != "peak_bytes" && !there.contains(name.substr(0, name.find('.')));
    });
    if (target_ && !target_->value.empty() && !Contains(c.observe, target_->value))
      c.observe.push_back(target_->value);
    return c;
  }

  /// What the case shows with every step observed; where that is not what is asked for, as it is.
  Result<void> Begin() {
    const Case asked = current_;
    std::string said;
    for (const bool observing : {true, false}) {
      Case candidate = observing ? Observing(asked) : asked;
      if (observing && CaseDigest(candidate) == CaseDigest(asked)) continue;
      auto trial = ULPSCOPE_TRY(trials_.Run(candidate));
      target_ = FindTarget(candidate, trial, options_.kind, options_.value);
      if (target_) {
        observing_ = observing;
        current_ = std::move(candidate);
        last_ = std::move(trial);
        return {};
      }
      for (const auto& divergence : trial.report.divergences)
        said += (said.empty() ? "" : "; ") + divergence.sentence;
      for (const auto& result : trial.report.results) {
        if (result.outcome.kind != OutcomeKind::kCompleted)
          said += fmt::format("{}{}: {} {}", said.empty() ? "" : "; ", result.backend,
                              Name(result.outcome.kind), result.outcome.text);
      }
    }
    const bool any = !options_.kind && options_.value.empty();
    return Fail(Problem(any ? "the two do not part" : "the two do not part in this kind, at this value",
                        said.empty() ? "the same everywhere" : said, {}));
  }

  /// Takes `candidate` if it shows the target. What was tried is not tried again.
  bool Try(std::optional<Case> candidate) {
    if (!candidate || Stopped()) return false;
    if (observing_) *candidate = Observing(*std::move(candidate));
    if (CountSteps(candidate->program) == 0 || Listed(*candidate) > kMostListed) return false;
    if (!tried_.insert(CaseDigest(*candidate)).second) return false;
    if (!WriteCaseYaml(*candidate, kEveryBackend)) return false;
    // A candidate of shapes that do not fit is refused by both: one is enough to know.
    const bool outcome = target_->kind == DivergenceKind::kOutcome;
    auto trial = trials_.Run(*candidate, outcome ? Trials::IfRefused::kAskBoth : Trials::IfRefused::kStop);
    if (!trial) {
      if (options_.refused) options_.refused("not " + trial.error().message);
      return false;
    }
    const auto found = FindTargetAgain(*candidate, *trial, *target_);
    if (!found || !IsSameTarget(*target_, *found)) {
      if (options_.refused) options_.refused(Refusal(*candidate, *trial, found));
      return false;
    }
    current_ = *std::move(candidate);
    last_ = *std::move(trial);
    target_->sentence = found->sentence;
    Tell(fmt::format("{} steps, {} elements", CountSteps(current_.program), Elements(current_)));
    return true;
  }

  static std::string Refusal(const Case& c, const ShrinkTrial& trial,
                             const std::optional<ShrinkTarget>& found) {
    std::string shows = found ? Describe(*found) : "";
    for (const CaseResult& result : trial.report.results) {
      if (result.outcome.kind != OutcomeKind::kCompleted)
        shows +=
            fmt::format("{}{}: {}", shows.empty() ? "" : "; ", result.backend, Name(result.outcome.kind));
    }
    for (const Divergence& divergence : trial.report.divergences)
      shows += (shows.empty() ? "" : "; ") + divergence.sentence;
    return fmt::format("not {} steps, {} elements: {}", CountSteps(c.program), Elements(c),
                       shows.empty() ? "the same everywhere" : shows);
  }

  // ---- Steps

  /// Every value of the case as the first backend gives it that gives any.
  KnownValues ValuesOf(const Case& c) {
    KnownValues values;
    std::vector<std::string> names = NamesMadeBy(c);
    for (size_t backend = 0; backend < 2 && values.empty(); ++backend) {
      for (size_t begin = 0; begin < names.size() && !Stopped(); begin += kMostObserved) {
        Case all = c;
        const size_t end = std::min(names.size(), begin + kMostObserved);
        all.observe.assign(names.begin() + static_cast<std::ptrdiff_t>(begin),
                           names.begin() + static_cast<std::ptrdiff_t>(end));
        const auto observed = trials_.Observe(all, backend);
        if (!observed) continue;
        for (const auto& [name, value] : observed->values) values.insert({name, value});
      }
    }
    return values;
  }

  void Steps() {
    const KnownValues values = ValuesOf(current_);
    if (target_->value.find('.') != std::string::npos) MoveRoot();
    const Case base = current_;
    const auto flat = FlatSteps(base.program);
    std::set<size_t> kept;
    for (size_t i = 0; i < flat.size(); ++i) kept.insert(i);
    const auto take = [&](const std::set<size_t>& steps) {
      if (steps.size() >= kept.size() || !Try(WithSteps(base, steps, values))) return false;
      kept = steps;
      return true;
    };
    std::set<size_t> fixed;  // what cannot go
    for (size_t i = 0; i < flat.size(); ++i) {
      if (flat[i]->as == target_->value && !target_->value.empty()) fixed.insert(i);
    }
    // Around the value, ever more of what it is computed from.
    for (std::set<size_t> near = fixed; !near.empty();) {
      if (take(near)) break;
      std::set<size_t> wider = WithProducers(flat, near);
      if (wider == near) break;
      near = std::move(wider);
    }
    if (!target_->value.empty()) take(StepsFor(base, {target_->value}));
    // Halves, quarters, ... down to single steps, from the end.
    for (size_t chunk = std::max<size_t>(kept.size() / 2, 1); chunk > 0;) {
      bool any = false;
      std::vector<size_t> open;
      for (const size_t step : kept) {
        if (!fixed.contains(step)) open.push_back(step);
      }
      for (size_t end = open.size(); end > 0; end -= std::min(chunk, end)) {
        std::set<size_t> fewer = kept;
        for (size_t i = end - std::min(chunk, end); i < end; ++i) fewer.erase(open[i]);
        any = (fewer != kept && take(fewer)) || any;
      }
      if (!any || chunk > 1) {
        if (chunk == 1) break;
        chunk /= 2;
      }
    }
  }

  /// A gradient is as wrong where backward() starts nearer to its tensor.
  void MoveRoot() {
    const Case base = current_;
    for (const std::string& name : NamesMadeBy(base)) {
      const auto moved = WithBackwardAt(base, name);
      if (!moved) continue;
      if (Try(WithSteps(*moved, StepsFor(*moved, {target_->value, name}), {}))) return;
    }
  }

  // ---- Sizes

  void Sizes() {
    for (bool any = true; any && !Stopped();) {
      any = false;
      std::set<int64_t, std::greater<>> extents;
      for (const TensorSpec& spec : current_.tensors) {
        for (const int64_t extent : spec.shape) extents.insert(extent);
      }
      for (const int64_t extent : extents) {
        if (extent > 1 && SizesOf(extent)) any = true;
      }
    }
  }

  bool SizesOf(int64_t extent) {
    std::vector<TensorAxis> axes;
    for (size_t tensor = 0; tensor < current_.tensors.size(); ++tensor) {
      const Shape& shape = current_.tensors[tensor].shape;
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        if (shape[axis] == extent) axes.push_back({.tensor = tensor, .axis = axis});
      }
    }
    bool any = false;
    size_t groups = 0;
    const auto shrink = [&](const std::vector<TensorAxis>& group) {
      if (++groups > kMostGroups) return;
      for (const InAttributes attributes :
           {InAttributes::kLeave, InAttributes::kSame, InAttributes::kMultiples}) {
        for (const int64_t divisor : {8, 2}) {
          while (Smaller(group, divisor, attributes)) any = true;
        }
      }
    };
    // An axis that has become smaller leaves the extent, and the groups that hold it fall away by themselves.
    shrink(axes);
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes.size() > 1) shrink({axes[i]});
    }
    for (size_t i = 0; i < axes.size(); ++i) {
      for (size_t j = i + 1; j < axes.size() && axes.size() > 2; ++j) shrink({axes[i], axes[j]});
    }
    for (size_t i = 0; i < axes.size(); ++i) {
      for (size_t j = i + 1; j < axes.size(); ++j) {
        for (size_t k = j + 1; k < axes.size() && axes.size() > 3; ++k) shrink({axes[i], axes[j], axes[k]});
      }
    }
    return any;
  }

  bool Smaller(const std::vector<TensorAxis>& group, int64_t divisor, InAttributes attributes) {
    if (Stopped()) return false;
    const int64_t extent = current_.tensors[group[0].tensor].shape[group[0].axis];
    for (const TensorAxis& axis : group) {
      if (current_.tensors[axis.tensor].shape[axis.axis] != extent) return false;
    }
    if (extent < 2 || (divisor > 2 && extent < 4)) return false;
    if (Try(WithSmaller(current_, group, divisor, attributes, nullptr))) return true;
    const auto elements = MakeInputs(current_, options_.seed);
    return elements && Try(WithSmaller(current_, group, divisor, attributes, &*elements));
  }

  // ---- Words and values

  void Words() {
    for (size_t scope = 0;;) {
      auto fewer = WithoutScope(current_, scope);
      if (!fewer) break;
      if (!Try(std::move(fewer))) ++scope;
    }
    for (size_t attribute = 0;;) {
      auto fewer = WithoutAttribute(current_, attribute);
      if (!fewer) break;
      if (!Try(std::move(fewer))) ++attribute;
    }
    for (size_t i = 0; i < current_.tensors.size(); ++i) {
      Case plain = current_;
      plain.tensors[i].strides.clear();
      if (!current_.tensors[i].strides.empty()) Try(plain);
      plain = current_;
      plain.tensors[i].requires_grad = false;
      if (current_.tensors[i].requires_grad) Try(std::move(plain));
    }
  }

  void Values() {
    for (size_t i = 0; i < current_.tensors.size() && !Stopped(); ++i) {
      const bool floating = IsFloating(current_.tensors[i].dtype);
      static const std::vector<std::string> kFloating{"ones", "normal"}, kWhole{"zeros", "ones", "arange"};
      bool done = false;
      for (const std::string& word : floating ? kFloating : kWhole) {
        if (done || WordOf(current_.tensors[i].fill) == word) break;
        done = Try(WithFill(current_, i, Attr{.value = word}));
      }
      const auto* fill = current_.tensors[i].fill.If<Attr::Map>();
      if (fill != nullptr && fill->contains("values")) SimplerElements(i);
    }
  }

  /// As many zeros as can be, then as few bits.
  void SimplerElements(size_t tensor) {
    auto inputs = MakeInputs(current_, options_.seed);
    if (!inputs) return;
    TensorData elements = inputs->at(current_.tensors[tensor].name);
    const int64_t count = elements.size();
    int trials = 0;
    for (int64_t chunk = count; chunk > 0 && trials < kMostElementTrials; chunk /= 2) {
      for (int64_t begin = 0; begin < count && trials < kMostElementTrials; begin += chunk) {
        TensorData simpler = elements;
        for (int64_t i = begin; i < std::min(count, begin + chunk); ++i) simpler.Set(i, 0);
        if (simpler == elements) continue;
        ++trials;
        if (Try(WithElements(current_, tensor, simpler))) elements = std::move(simpler);
      }
    }
    if (!IsFloating(elements.dtype)) return;
    for (const int bits : {1, 3, 6}) {
      TensorData simpler = elements;
      for (int64_t i = 0; i < count; ++i) {
        const double value = elements.At(i);
        if (value == 0 || !std::isfinite(value)) continue;
        int exponent = 0;
        const double fraction = std::frexp(value, &exponent);
        simpler.Set(i, std::ldexp(std::trunc(std::ldexp(fraction, bits)), exponent - bits));
      }
      if (Try(WithElements(current_, tensor, simpler))) return;
    }
  }

  void LessObserved() {
    if (target_->value.empty() || current_.observe.size() < 2) return;
    observing_ = false;
    Case less = current_;
    less.observe = {target_->value};
    Try(std::move(less));
  }

  Trials& trials_;
  const ShrinkOptions& options_;
  Case current_;
  ShrinkTrial last_;
  std::optional<ShrinkTarget> target_;
  std::set<std::string> tried_;
  bool observing_ = false, stopped_ = false;
  std::chrono::steady_clock::time_point until_;
};

}  // namespace

Result<Shrunk> ShrinkCase(const Case& c, Trials* trials, const ShrinkOptions& options) {
  return CaseShrinker(c, trials, options).Run();
}

}  // namespace ulpscope
