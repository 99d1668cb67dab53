// The warnings.
#include "harness/casefile/lint.h"

#include <algorithm>
#include <array>
#include <set>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/casefile/fill_data.h"
#include "harness/casefile/prove.h"
#include "harness/casefile/width.h"
#include "harness/casefile/words.h"
#include "harness/words/aten.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

class Linter {
 public:
  explicit Linter(const Case& one) : case_(one), facts_(FollowWidths(one)) {}

  std::vector<Error> Run() {
    CheckTags();
    CheckSources();
    CheckSteps(case_.program);
    CheckUses();
    CheckAliases();
    CheckProbes();
    CheckProvable();
    std::set<std::string> told;
    for (const auto& [name, demand] : case_.contract.values) CheckDemand(name, demand, "contract", told);
    for (const auto& [backend, entries] : case_.expect) {
      for (const Expectation& entry : entries) {
        for (const auto& [name, demand] : entry.values) CheckDemand(name, demand, "expect", told);
      }
    }
    return std::move(warnings_);
  }

 private:
  void Warn(const SourcePos& pos, std::string message, std::string found, std::string expected,
            std::string hint = {}) {
    Error warning = Problem(std::move(message), std::move(found), std::move(expected), std::move(hint));
    warning.pos = pos;
    warnings_.push_back(std::move(warning));
  }

  void CheckTags() {
    static const std::array<std::string, 3> tiers{"smoke", "ci", "nightly"};
    const bool has_tier =
        std::ranges::any_of(tiers, [&](const std::string& tier) { return Contains(case_.tags, tier); });
    if (!has_tier)
      Warn(case_.pos, "case is in no tier", case_.tags.empty() ? "no tags" : Join(case_.tags, ", "),
           "one of smoke, ci, nightly", "no suite runs it");
  }

  void CheckSources() {
    const ContractStatus status = case_.contract.status;
    if ((status == ContractStatus::kDocumented || status == ContractStatus::kSpecified) &&
        case_.contract.source.empty()) {
      Warn(case_.pos, "contract is documented nowhere", "a contract without 'source'",
           "the address of the page that says so");
    }
  }

  void CheckSteps(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      CheckSteps(step.steps);
      CheckName(step);
      if (!step.as.empty()) defined_.push_back({step.as, step.pos});
      for (const Operand& operand : step.of) used_.insert(operand.name);
      if (!step.out.empty() && !step.as.empty()) buffers_[step.as] = step.out;
      for (const auto& [key, attr] : step.attrs) CollectNames(attr);
    }
  }

  /// An op of the dispatcher that the dispatcher does not have.
  void CheckName(const Step& step) {
    if (!IsAten(step.op) || IsKnownAten(step.op)) return;
    const std::string nearest = NearestAten(step.op);
    Warn(step.pos, "PyTorch's dispatcher has no such op", step.op, "the name of one",
         nearest.empty() ? "" : "did you mean '" + nearest + "'?");
  }

  /// Names in attributes: grad: g, to: {value: name}.
  void CollectNames(const Attr& attr) {
    if (const auto* text = std::get_if<std::string>(&attr.value)) used_.insert(*text);
    if (const auto* map = std::get_if<Attr::Map>(&attr.value)) {
      for (const auto& [key, value] : *map) CollectNames(value);
    }
  }

  bool IsObserved(const std::string& name) const {
    return std::ranges::any_of(case_.observe, [&](const std::string& observed) {
      return observed.substr(0, observed.find('.')) == name;
    });
  }

  /// Values that lead nowhere. A value that went into a buffer leads on through the buffer.
  void CheckUses() {
    for (const auto& [name, pos] : defined_) {
      if (used_.contains(name) || IsObserved(name) || buffers_.contains(name)) continue;
      const bool is_buffer = std::ranges::any_of(
          buffers_, [&, &buffer = name](const auto& entry) { return entry.second == buffer; });
      if (!is_buffer)
        Warn(pos, "value '" + name + "' is never used", "no step uses it and it is not observed",
             "a use, or no such step");
    }
  }

  void CheckAliases() {
    for (const auto& [name, buffer] : buffers_) {
      if (IsObserved(name) && IsObserved(buffer)) {
        Warn(case_.pos, "'" + name + "' and '" + buffer + "' are one buffer", "both observed", "one of them");
      }
    }
  }

  /// Warns of probes that are truncated, or whose other operand holds something else.
  void CheckProbes() {
    std::map<std::string, std::set<std::string>> roles;
    std::map<std::string, SourcePos> where;
    for (const TensorSpec& tensor : case_.tensors) {
      const auto share = ShareOfProbe(tensor);
      if (!share) continue;
      roles[share->name].insert(share->role);
      where.emplace(share->name, tensor.pos);
      if (share->held < share->all) {
        Warn(tensor.pos, "tensor '" + tensor.name + "' holds only a part of probe " + share->name,
             std::to_string(share->held) + " of its " + std::to_string(share->all) + " dot products",
             std::to_string(share->all) + " rows");
      }
    }
    for (const auto& [name, found] : roles) {
      if (found.contains("a") && found.contains("b")) continue;
      Warn(where.at(name), "probe " + name + " has one operand only",
           "role " + Join(std::vector<std::string>(found.begin(), found.end()), ", "),
           found.contains("a") ? "a tensor with {probe: {name: " + name + ", role: b}}"
                               : "a tensor with {probe: " + name + "}");
    }
  }

  /// Demands that `prove` adds no inputs for.
  void CheckProvable() {
    if (!case_.contract.prove) return;
    const auto provable = Provable(case_);
    for (const auto& [value, demand] : case_.contract.values) {
      if (demand.facets.empty() || provable.contains(value)) continue;
      Warn(case_.pos, "prove: true may leave '" + value + "' open",
           "a value that is itself no matrix product of two tensors of 8 or more significant bits, nor a sum "
           "of one, nor an op that has "
           "inputs of its own",
           "inputs of the case's own that distinguish the models, or a demand on such a value");
    }
  }

  /// The output dtype of a product of tensors, if no other is requested.
  std::optional<DType> StoreOf(const std::string& value, const ValueDemand& demand) const {
    if (demand.dtype) return ParseDType(*demand.dtype);
    for (const Step& step : case_.program) {
      if (step.as != value) continue;
      if (!step.out.empty() || !step.attrs.empty() ||
          (step.op != "matmul" && step.op != "mm" && step.op != "bmm"))
        return std::nullopt;
      const TensorSpec* a = case_.FindTensor(step.of[0].name);
      const TensorSpec* b = case_.FindTensor(step.of[1].name);
      if (a != nullptr && b != nullptr && a->dtype == b->dtype) return a->dtype;
    }
    return std::nullopt;
  }

  static bool IsProbeOrRecord(const TensorSpec& tensor) {
    const auto* map = std::get_if<Attr::Map>(&tensor.fill.value);
    return map != nullptr && (map->contains("probe") || map->contains("cross") || map->contains("record"));
  }

  /// With a 16-bit output, random sums do not show their accumulator: the wide accumulators coincide.
  template <class Report>
  void CheckNarrowStore(const std::string& name, const ValueDemand& demand, const DemandWords& acc,
                        const ValueFacts& facts, const Report& warn) const {
    const auto store = StoreOf(name, demand);
    const FloatFormat* format = store ? FormatOf(*store) : nullptr;
    if (format == nullptr || format->precision > Binary16().precision || facts.longest_sum < 2) return;
    const bool random = std::ranges::none_of(case_.tensors, [&](const TensorSpec& tensor) {
      return facts.tensors.contains(tensor.name) && IsProbeOrRecord(tensor);
    });
    const auto names = [&](std::string_view word) { return Contains(acc, word); };
    if (!random || names("at_least_float32") || (names("float32") && names("float64"))) return;
    if (!names("float32") && !names("float64") && !names("float32_class")) return;
    warn("random data do not distinguish wide accumulators behind a 16-bit store",
         std::string(Name(*store)) + " results, acc: " + Join(TextsOf(acc), ", "),
         "at_least_float32, or operands with fill: {probe: swamp}, {probe: mode} and {probe: wide}");
  }

  void CheckDemand(const std::string& name, const ValueDemand& demand, const std::string& where,
                   std::set<std::string>& told) {
    const auto place = facts_.find(name);
    if (place == facts_.end() || demand.facets.empty()) return;
    const ValueFacts& facts = place->second;
    const auto warn = [&](const std::string& message, std::string found, std::string expected) {
      if (told.insert(name + message).second)
        Warn(case_.pos, where + " of '" + name + "': " + message, std::move(found), std::move(expected));
    };
    const auto acc = demand.facets.find("acc");
    if (acc != demand.facets.end() && facts.longest_sum == 1) {
      warn("a sum of one term does not distinguish accumulators", "K = 1",
           "sums of 8 terms or more, or no demand on acc");
    }
    const bool precise =
        acc != demand.facets.end() || demand.facets.contains("mid") || demand.facets.contains("prod");
    if (acc != demand.facets.end() && !case_.contract.prove)
      CheckNarrowStore(name, demand, acc->second, facts, warn);
    if (precise && facts.bits)
      CheckWidth(*facts.bits, acc == demand.facets.end() ? nullptr : &acc->second, warn);
    if (precise && facts.shape && ElementCount(*facts.shape) < 8) {
      warn("few outputs", std::to_string(ElementCount(*facts.shape)) + " elements",
           "128 or more where the size is free");
    }
    CheckOperands(demand, facts, warn);
  }

  template <class Report>
  static void CheckWidth(const BitRange& bits, const DemandWords* acc, const Report& warn) {
    const std::string found = "exact results of at most " + std::to_string(bits.width()) + " bits";
    if (bits.width() <= Bfloat16().precision) {
      warn("the data are too poor: every precision gives the same bits", found,
           "full-width data, as fill: normal gives, or a probe, {probe: single}");
      return;
    }
    if (acc == nullptr || bits.width() > Binary32().precision) return;
    const auto names = [&](std::string_view word) { return Contains(*acc, word); };
    if (names("float32") != names("float64"))
      warn("the data do not distinguish float32 from float64 accumulation", found,
           "more than 24 bits, or both words");
  }

  template <class Report>
  void CheckOperands(const ValueDemand& demand, const ValueFacts& facts, const Report& warn) {
    for (const auto& [facet, words] : demand.facets) {
      if (facet != "in" && !facet.starts_with("in.")) continue;
      const std::string operand = facet == "in" ? "" : facet.substr(3);
      if (!operand.empty() && !facts_.contains(operand)) continue;  // an argument inside a composite op
      for (const TensorSpec& tensor : case_.tensors) {
        if (!facts.tensors.contains(tensor.name) || (!operand.empty() && operand != tensor.name)) continue;
        const FloatFormat* format = FormatOf(tensor.dtype);
        const bool fits = std::ranges::any_of(words, [&](const DemandWord& word) {
          return format != nullptr && word.in && word.in->format != nullptr &&
                 Holds(*word.in->format, *format);
        });
        const bool stays = Contains(words, "as_is");
        if (fits && !stays) {
          warn("operand '" + tensor.name + "' fits that format already", std::string(Name(tensor.dtype)),
               "as_is among the words");
        }
      }
    }
  }

  const Case& case_;
  std::map<std::string, ValueFacts> facts_;
  std::vector<std::pair<std::string, SourcePos>> defined_;
  std::set<std::string> used_;
  std::map<std::string, std::string> buffers_;  ///< value -> the buffer that out= put it into
  std::vector<Error> warnings_;
};

}  // namespace

std::vector<Error> Lint(const Case& one) { return Linter(one).Run(); }

}  // namespace ulpscope
