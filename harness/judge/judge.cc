// Judging one case, and putting a report together.
#include "harness/judge/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/combine.h"
#include "harness/judge/contract.h"
#include "harness/judge/expect.h"
#include "harness/judge/sentence.h"
#include "harness/judge/status.h"
#include "harness/num/float_format.h"
#include "harness/words/backend_name.h"
#include "harness/words/environment_name.h"

namespace ulpscope {
namespace {

constexpr uint32_t kMxcsrControl = 0xffc0;  // all but the six sticky exception flags

CaseResult EmptyResult(const Case& test_case, const std::string& backend, const JudgeContext& context) {
  CaseResult result;
  result.id = test_case.id;
  result.backend = backend;
  result.repro = ReproLine(test_case.id, backend, context);
  return result;
}

std::vector<std::string> StagesOf(const Observation& observation) {
  std::vector<std::string> stages;
  for (const std::string_view stage : kTraceStages) {
    const auto here = [&](const auto& entry) { return entry.stage == stage; };
    if (std::ranges::any_of(observation.trace, here) || std::ranges::any_of(observation.casts, here)) {
      stages.emplace_back(stage);
    }
  }
  return stages;
}

void CopyFacts(const Observation& observation, CaseResult* result) {
  result->outcome = observation.outcome;
  result->knobs_asked = observation.knobs_asked;
  result->knobs_effective = observation.knobs_effective;
  result->observations = observation.observations;
  result->casts = observation.casts;
  result->cast_costs = CostOfCasts(observation.casts, observation.trace);
  result->stages = StagesOf(observation);
  result->notes = observation.notes;
  result->durations_ms = observation.durations_ms;
}

void JudgeValues(const Case& test_case, const Observation& observation,
                 const std::map<std::string, Classification>& classifications, CaseResult* result) {
  for (const auto& [name, tensor] : observation.values) {
    ValueResult value{.dtype = tensor.dtype,
                      .shape = tensor.shape,
                      .bits = BitsOf(tensor),
                      .part = {},
                      .classification = {}};
    if (const auto part = observation.parts.find(name); part != observation.parts.end())
      value.part = part->second;
    if (const auto known = classifications.find(name); known != classifications.end()) {
      value.classification = known->second;
    } else {
      value.classification.elements = tensor.size();
    }
    value.contract = JudgeContract(test_case, name, value);
    result->values.emplace(name, std::move(value));
  }
  for (const auto& name : ProgramOrder(test_case)) {
    if (result->values.contains(name)) result->value_order.push_back(name);
  }
  for (const auto& [name, value] : result->values) {
    const auto& order = result->value_order;
    if (!Contains(order, name)) result->value_order.push_back(name);
  }
}

std::string Labelled(const Classification& classification) {
  if (!classification.label.empty()) return classification.label;
  std::vector<std::string> names;
  for (const auto& model : classification.models_proved) names.push_back(model.Name());
  return names.empty() ? std::string(Name(classification.kind)) : Join(names, " or ");
}

/// The same for a sentence that somebody reads to its end.
std::string BrieflyLabelled(const Classification& classification) {
  constexpr size_t kReadable = 160;
  const std::string label = Labelled(classification);
  if (label.size() <= kReadable) return label;
  return fmt::format("what any of {} models gives, some of them outside the contract (explain -v lists them)",
                     classification.models_proved.size());
}

/// "; sums in 19 bits or more would look the same", beside a label that is likely only.
std::string LooksTheSame(const Classification& classification) {
  const auto sums = classification.floors.find("acc");
  if (!classification.rests_on_likelihood || sums == classification.floors.end() ||
      sums->second >= Binary32().precision)
    return "";
  return fmt::format("; sums in {} bits or more would look the same", sums->second);
}

/// Roundings of a model that a plain sum in float32 does not have.
int Besides(const PrecisionModel& model) {
  return static_cast<int>(model.in.size() + model.cuts.size()) + (model.prod != "exact") +
         (model.mid != "none") + (model.acc != "float32" && model.acc != "exact") +
         !model.out.ends_with("_rne");
}

/// A model that the contract allows, by what it does besides, where that is something.
std::string WhatItIs(const PrecisionModel& model) {
  return Besides(model) == 0 ? "what the contract asks for"
                             : "the nearest of what the contract allows (" + model.Name() + ")";
}

std::string ViolationSentence(const std::string& name, const ValueDemand& demand, const ValueResult& value) {
  if (demand.dtype && *demand.dtype != Name(value.dtype)) {
    return fmt::format("{} is {}, the contract says {}", name, Name(value.dtype), *demand.dtype);
  }
  std::string text = fmt::format("{} violates its contract ({}): {}", name, Describe(demand),
                                 Labelled(value.classification));
  // Of all that the contract allows, what does nothing besides.
  const Exclusion* plainest = nullptr;
  for (const Exclusion& exclusion : value.classification.excluded) {
    if (!IsInside(exclusion.model, demand, value.classification)) continue;
    if (plainest == nullptr || Besides(exclusion.model) < Besides(plainest->model)) plainest = &exclusion;
  }
  if (plainest == nullptr) return text;
  std::string why = plainest->why;
  constexpr std::string_view kThis = "this model gives";
  if (const size_t at = why.find(kThis); at != std::string::npos)
    why.replace(at, kThis.size(), WhatItIs(plainest->model) + " gives");
  return text + fmt::format("; e.g. {}", why);
}

/// The probes that tell apart what the models of a value disagree about (the table of probes names what each
/// reads).
std::string SettlingProbes(const Classification& classification) {
  static const std::pair<std::string_view, std::string_view> kProbes[] = {
      {"prod", "pair"}, {"acc", "swamp"}, {"mid", "fuse"}, {"out", "single"}};
  std::vector<std::string> fills;
  for (const auto& [facet, probe] : kProbes) {
    std::vector<std::string> words;
    for (const PrecisionModel& model : classification.models_proved) {
      const std::string word = facet == "prod"  ? model.prod
                               : facet == "acc" ? model.acc
                               : facet == "mid" ? model.mid
                                                : model.out;
      if (!Contains(words, word)) words.push_back(word);
    }
    if (words.size() > 1) fills.push_back(fmt::format("{{probe: {}}}", probe));
  }
  const bool inputs_differ = std::ranges::any_of(classification.models_proved, [&](const auto& model) {
    return model.in != classification.models_proved[0].in;
  });
  if (inputs_differ) fills.push_back("{probe: residual}");
  return fills.empty() ? "inputs with more significant bits would settle it"
                       : "inputs that would settle it: fill " + Join(fills, ", ");
}

/// The facets that the models of a value disagree about.
std::string OpenFacets(const Classification& classification) {
  const auto& proved = classification.models_proved;
  std::vector<std::string> open;
  const auto note = [&](const char* facet, auto word) {
    if (std::ranges::any_of(proved, [&](const auto& model) { return word(model) != word(proved[0]); }))
      open.emplace_back(facet);
  };
  note("in", [](const PrecisionModel& model) { return model.in; });
  note("prod", [](const PrecisionModel& model) { return model.prod; });
  note("acc", [](const PrecisionModel& model) { return model.acc; });
  note("mid", [](const PrecisionModel& model) { return model.mid; });
  note("out", [](const PrecisionModel& model) { return model.out; });
  return Join(open, ", ");
}

/// "; ..." where it was a companion that no model explains.
std::string AmongFurtherInputs(const CaseResult& result, const ValueResult& value) {
  const auto& [notes, says] = std::tie(value.classification.notes, value.classification.says);
  return result.proved_on.empty() || notes.empty() || Contains(says, notes.back()) ? "" : "; " + notes.back();
}

/// Nothing that the contract allows explains the value: what does, or else what the numbers say.
std::string Unexplained(const std::string& name, const ValueDemand& demand, const ValueResult& value) {
  const Classification& classification = value.classification;
  const std::string wanted = Describe(demand);
  if (classification.models.empty()) {
    std::string text = fmt::format("no precision model explains {} (the contract says {})", name, wanted);
    if (!classification.says.empty()) text += ": " + Join(classification.says, "; ");
    return text;
  }
  const auto& proved = classification.models_proved;
  const auto left = std::ranges::count_if(
      proved, [&](const PrecisionModel& model) { return IsInside(model, demand, classification); });
  const std::string others =
      left == 1 ? "one model that it allows lies within its bounds, and fits worse"
                : fmt::format("{} models that it allows lie within their bounds, and fit worse", left);
  return fmt::format("{} is {}, which the contract ({}) does not allow; not proved: {}", name,
                     BrieflyLabelled(classification), wanted, others);
}

/// What to do about a contract that is left open.
std::string Advice(const Case& test_case, const std::string& name, const CaseResult& result,
                   const JudgeContext& context) {
  const Classification& classification = result.values.at(name).classification;
  if (classification.piece.starts_with("steps "))
    return "that step as a case of its own, with prove: true in its contract, would tell more";
  if (!context.provable.contains(name)) return SettlingProbes(classification);
  if (!test_case.contract.prove)
    return "add prove: true to the contract, and the harness runs it on inputs that tell as well";
  return result.proved_on.empty() ? "no further input was run"
                                  : "its further inputs leave open: " + OpenFacets(classification);
}

void AddValueFindings(const Case& test_case, const CaseResult& result, const JudgeContext& context,
                      StatusFacts* facts) {
  for (const auto& name : result.value_order) {
    const ValueResult& value = result.values.at(name);
    if (IsWrong(value.classification.kind)) {
      facts->violations.push_back({.value = name, .sentence = name + " is " + value.classification.label});
      continue;
    }
    const auto demand = test_case.contract.values.find(name);
    if (test_case.contract.accept_any || demand == test_case.contract.values.end()) continue;
    const std::string wanted = Describe(demand->second);
    switch (value.contract) {
      case ContractVerdict::kViolates:
        facts->violations.push_back(
            {.value = name, .sentence = ViolationSentence(name, demand->second, value)});
        break;
      case ContractVerdict::kUnmodelled:
        facts->unmodelled.push_back(
            {.value = name,
             .sentence = Unexplained(name, demand->second, value) + AmongFurtherInputs(result, value)});
        break;
      case ContractVerdict::kUndetermined:
        if (value.classification.kind == ClassificationKind::kNotJudged) {
          facts->undetermined.push_back(
              {.value = name,
               .sentence =
                   fmt::format("{}: {}; whether the contract holds ({}) is open; its steps as cases of "
                               "their own would tell more",
                               name, value.classification.label, wanted)});
          break;
        }
        facts->undetermined.push_back(
            {.value = name,
             .sentence =
                 fmt::format("{}: the inputs cannot tell whether the contract holds ({}); observed {}{}; {}",
                             name, wanted, BrieflyLabelled(value.classification),
                             LooksTheSame(value.classification), Advice(test_case, name, result, context))});
        break;
      default:
        break;
    }
  }
}

/// What of `equal` and `same_class` does not hold, or is left open, in this backend's own values.
void CompareValues(const Contract& contract, const Observation& observation, const CaseResult& result,
                   StatusFacts* facts) {
  if (result.outcome.kind != OutcomeKind::kCompleted) return;
  const auto pairs = [&](const std::vector<std::string>& names, const auto& compare) {
    for (size_t i = 1; i < names.size(); ++i) {
      const std::string &first = names[0], &other = names[i];
      if (!result.values.contains(first) || !result.values.contains(other)) {
        const std::string& missing = result.values.contains(first) ? other : first;
        facts->violations.push_back(
            {.value = missing,
             .sentence = fmt::format("{} does not exist, and the contract compares {} with it", missing,
                                     missing == first ? other : first)});
        continue;
      }
      compare(first, other);
    }
  };
  pairs(contract.equal, [&](const std::string& first, const std::string& other) {
    if (result.values.at(first).bits == result.values.at(other).bits) return;
    const TensorData &left = observation.values.at(first), &right = observation.values.at(other);
    std::string how = fmt::format("{} is {}, {} is {}", first, Describe(left.dtype, left.shape), other,
                                  Describe(right.dtype, right.shape));
    if (left.dtype == right.dtype && left.shape == right.shape) {
      const TensorDifference difference = CompareTensors(left, right);
      const auto number = [&](double value) {
        const FloatFormat* format = FormatOf(left.dtype);
        // Enough decimals to tell one number of the format from the next.
        return fmt::format("{:.{}g}", value, format == nullptr ? 17 : 2 + format->precision * 301 / 1000);
      };
      const int64_t index = difference.number > 0 ? difference.first_number : difference.first_special;
      how = fmt::format(
          "{} of {} elements differ{}, the first at [{}]: {} against {}",
          difference.number + difference.special, left.size(),
          difference.number > 0 ? fmt::format(" by up to {} ulp", ShortestDecimal(difference.largest_ulp))
                                : "",
          Join(Coordinates(index, left.shape), ","), number(left.At(index)), number(right.At(index)));
    }
    facts->violations.push_back(
        {.value = other, .sentence = fmt::format("{} and {} are not equal: {}", first, other, how)});
  });
  pairs(contract.same_class, [&](const std::string& first, const std::string& other) {
    const Classification &left = result.values.at(first).classification,
                         &right = result.values.at(other).classification;
    const auto without_places = [](const Classification& one) {
      std::set<std::string> words;
      for (const PrecisionModel& model : one.models_proved)
        words.insert(fmt::format("{} {} {}", model.acc, model.mid, model.out));
      return words;
    };
    const auto a = without_places(left), b = without_places(right);
    const bool apart = std::ranges::none_of(a, [&](const std::string& one) { return b.contains(one); });
    const std::string both =
        fmt::format("{} is {}; {} is {}", first, BrieflyLabelled(left), other, BrieflyLabelled(right));
    if (a.empty() || b.empty())
      facts->unmodelled.push_back({.value = other, .sentence = "whether two classes are one: " + both});
    else if (apart)
      facts->violations.push_back(
          {.value = other,
           .sentence = fmt::format("{} and {} are not of one class: {}", first, other, both)});
    else if (a != b)
      facts->undetermined.push_back(
          {.value = other,
           .sentence = "the inputs cannot tell whether two values are of one class: " + both});
  });
}

std::string OutcomeViolation(const Case& test_case, const CaseResult& result) {
  if (result.outcome.kind == OutcomeKind::kRaised) {
    return fmt::format("raised {}, which the contract does not allow: {}",
                       result.outcome.error_class.empty() ? "an error" : result.outcome.error_class,
                       FirstLine(result.outcome.text, 160));
  }
  if (test_case.contract.values.empty()) return "completed, though the contract demands that it raises";
  for (const auto& [name, demand] : test_case.contract.values) {
    if (!result.values.contains(name))
      return fmt::format("{} does not exist, the contract says {}", name, Describe(demand));
  }
  return "the outcome violates the contract";
}

/// Entries for this case and backend whose versions match and whose date has not passed. Error: unreadable
/// versions.
Result<std::vector<Deviation>> LiveDeviations(const Case& test_case, const std::string& backend,
                                              const JudgeContext& context) {
  std::vector<Deviation> live;
  for (const Deviation& deviation : context.deviations) {
    if (deviation.case_id != test_case.id ||
        (CanonicalBackend(deviation.backend) != CanonicalBackend(backend) &&
         CanonicalBackend(deviation.backend) != SplitEnvironment(backend).backend))
      continue;
    const auto matches = VersionsMatch(deviation.versions, context.versions);
    if (!matches) return Fail(matches.error());
    // ISO dates compare as text. Without a recorded date nothing expires.
    const bool expired =
        !deviation.expires.empty() && !context.date.empty() && deviation.expires < context.date;
    if (*matches && !expired) live.push_back(deviation);
  }
  return live;
}

/// What passes because nothing could be looked at says so.
std::string WhyNothingIsChecked(const CaseResult& result) {
  if (result.outcome.kind == OutcomeKind::kRaised) {
    const std::string& error = result.outcome.error_class;
    return fmt::format("nothing was checked: it raised {}: {}", error.empty() ? "an error" : error,
                       FirstLine(result.outcome.text, 160));
  }
  if (result.outcome.kind != OutcomeKind::kCompleted) return "";
  std::string why;
  for (const auto& [name, value] : result.values) {
    const Classification& classification = value.classification;
    if (!IsFloating(value.dtype)) continue;
    if (classification.checked > 0 || classification.elements == 0) return "";
    if (why.empty() && !classification.notes.empty()) why = ": " + classification.notes.front();
    if (why.empty()) why = ": no reference";
  }
  return why.empty() ? "" : "no element was checked against an exact value" + why;
}

void Decide(const Case& test_case, const JudgeContext& context, StatusFacts facts, CaseResult* result) {
  facts.outcome = result->outcome;
  if (JudgeOutcome(test_case, result->outcome, result->value_order) == ContractVerdict::kViolates) {
    facts.violations.push_back({.value = "", .sentence = OutcomeViolation(test_case, *result)});
  }
  AddValueFindings(test_case, *result, context, &facts);
  const auto live = LiveDeviations(test_case, result->backend, context);
  if (live) facts.live_deviations = *live;
  const auto expectation = FindExpectation(test_case, result->backend, context.versions);
  if (!live) {
    facts.unmet_expectation = "a deviation entry cannot be read: " + live.error().Text();
  } else if (!expectation) {
    facts.unmet_expectation = "an expectation cannot be read: " + expectation.error().Text();
  } else if (*expectation != nullptr) {
    facts.unmet_expectation = ExplainUnmet(**expectation, *result);
  }
  const StatusReason verdict = DecideStatus(facts);
  result->status = verdict.status;
  result->reason = verdict.reason;
  result->demanded = test_case.contract.demands() || (expectation && *expectation != nullptr);
  if (result->status == Status::kPass && !result->demanded) result->reason = WhyNothingIsChecked(*result);
}

struct Position {
  int group = 0;  ///< 0: made by a step, 1: a gradient, 2: a tensor at the end, 3: unknown
  size_t step = 0;
};

void NumberSteps(const std::vector<Step>& steps, std::map<std::string, size_t>* order) {
  for (const Step& step : steps) {
    if (!step.as.empty()) order->try_emplace(step.as, order->size());
    NumberSteps(step.steps, order);
  }
}

std::string ShapeOfMxcsr(uint32_t mxcsr) {
  return fmt::format("{:#06x}{}{}", mxcsr, (mxcsr & 0x8000) != 0 ? " FTZ" : "",
                     (mxcsr & 0x40) != 0 ? " DAZ" : "");
}

}  // namespace

CaseResult JudgeCase(const Case& test_case, const std::string& backend, const Observation& observation,
                     const std::map<std::string, Classification>& classifications,
                     const JudgeContext& context) {
  CaseResult result = EmptyResult(test_case, backend, context);
  CopyFacts(observation, &result);
  JudgeValues(test_case, observation, classifications, &result);
  if (context.proof != nullptr) ApplyProof(*context.proof, &result);
  StatusFacts facts;
  facts.taint = FindTaint(observation);
  facts.nondeterministic = observation.nondeterministic;
  CompareValues(test_case.contract, observation, result, &facts);
  Decide(test_case, context, std::move(facts), &result);
  return result;
}

CaseResult NotReachedResult(const Case& test_case, const std::string& backend, const std::string& why,
                            const JudgeContext& context) {
  CaseResult result = EmptyResult(test_case, backend, context);
  // The closed set of outcomes has no word for "never begun"; nothing was supported or refused either.
  result.outcome = {.kind = OutcomeKind::kUnsupported, .error_class = {}, .text = why};
  StatusFacts facts;
  facts.reach = StatusFacts::Reach::kNotReached;
  facts.outcome = result.outcome;
  const StatusReason verdict = DecideStatus(facts);
  result.status = verdict.status;
  result.reason = verdict.reason;
  return result;
}

CaseResult HarnessFaultResult(const Case& test_case, const std::string& backend,
                              const Observation& observation, const std::string& fault,
                              const JudgeContext& context) {
  CaseResult result = EmptyResult(test_case, backend, context);
  CopyFacts(observation, &result);
  StatusFacts facts;
  facts.harness_fault = fault;
  const StatusReason verdict = DecideStatus(facts);
  result.status = verdict.status;
  result.reason = verdict.reason;
  return result;
}

std::vector<std::string> ProgramOrder(const Case& test_case) {
  std::map<std::string, size_t> steps;
  NumberSteps(test_case.program, &steps);
  const auto position = [&](const std::string& name) {
    if (const auto step = steps.find(name); step != steps.end())
      return Position{.group = 0, .step = step->second};
    const bool gradient = name.ends_with(".grad");
    return Position{.group = gradient ? 1 : test_case.FindTensor(name) != nullptr ? 2 : 3, .step = 0};
  };
  std::vector<std::string> order = test_case.observe;
  std::ranges::stable_sort(order, [&](const std::string& a, const std::string& b) {
    const Position left = position(a);
    const Position right = position(b);
    return std::pair(left.group, left.step) < std::pair(right.group, right.step);
  });
  return order;
}

std::string FindTaint(const Observation& observation) {
  std::vector<std::string> taints;
  if (!observation.unwritten.empty())
    taints.push_back("elements never written: " + Join(observation.unwritten, ", "));
  const auto flush = observation.knobs_asked.find("flush_denormal");
  const bool flush_asked = flush != observation.knobs_asked.end() && flush->second == "on";
  // The runner knows the clean state, which `before` may already lack; it says what differs from that.
  if (!observation.tainted.empty()) {
    taints.push_back(observation.tainted);
  } else if (observation.fp_before && observation.fp_after && !flush_asked) {
    const FpEnvironment& before = *observation.fp_before;
    const FpEnvironment& after = *observation.fp_after;
    if ((before.mxcsr & kMxcsrControl) != (after.mxcsr & kMxcsrControl)) {
      taints.push_back(
          fmt::format("MXCSR changed from {} to {}", ShapeOfMxcsr(before.mxcsr), ShapeOfMxcsr(after.mxcsr)));
    }
    if (before.subnormals_kept != after.subnormals_kept) {
      taints.push_back(after.subnormals_kept ? "subnormals are kept now, and were not before"
                                             : "subnormals are flushed now");
    }
    if (before.threads != after.threads) {
      taints.push_back(fmt::format("the thread count changed from {} to {}", before.threads, after.threads));
    }
  }
  return Join(taints, "; ");
}

std::string ReproLine(const std::string& id, const std::string& backend, const JudgeContext& context) {
  const std::string selector = context.selector.empty() ? ShellQuote(id) : context.selector;
  std::string line =
      fmt::format("ulpscope run {} -b {} --seed {}", selector, ShellQuote(backend), context.seed);
  if (!context.extra_flags.empty()) line += " " + context.extra_flags;
  return line;
}

std::string ShellQuote(std::string_view word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-,:=@+%").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, plain)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

RunReport BuildReport(RunFacts facts, std::vector<CaseResult> results, std::vector<Divergence> divergences) {
  const auto rank = [&](const std::string& backend) {
    const auto at = std::ranges::find(facts.backends, backend);
    return at - facts.backends.begin();
  };
  std::ranges::stable_sort(results, [&](const CaseResult& a, const CaseResult& b) {
    return std::tuple(a.id, rank(a.backend), a.backend) < std::tuple(b.id, rank(b.backend), b.backend);
  });
  std::ranges::stable_sort(divergences, [](const Divergence& a, const Divergence& b) {
    return std::tie(a.case_id, a.kind) < std::tie(b.case_id, b.kind);
  });
  RunReport report;
  report.seed = facts.seed;
  report.complete = facts.complete;
  report.stopped_after = facts.stopped_after;
  report.versions = std::move(facts.versions);
  report.not_installed = std::move(facts.not_installed);
  report.environment = std::move(facts.environment);
  report.id = std::move(facts.id);
  report.started = std::move(facts.started);
  report.durations_s = std::move(facts.durations_s);
  report.results = std::move(results);
  report.divergences = std::move(divergences);
  return report;
}

}  // namespace ulpscope
