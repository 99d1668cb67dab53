// Joins the results of auxiliary inputs.
#include "harness/judge/combine.h"

#include <algorithm>
#include <cmath>

#include "harness/judge/contract.h"
#include "harness/num/float_format.h"
#include "harness/num/tensor_data.h"

namespace ulpscope {
namespace {

using enum ClassificationKind;

int MostBits(const TensorData& results) {
  int bits = 0;
  for (int64_t i = 0; i < results.size(); ++i) {
    const double value = results.At(i);
    if (value != 0 && std::isfinite(value)) bits = std::max(bits, SignificantBits(value));
  }
  return bits;
}

}  // namespace

std::string WhyItProvesNothing(const Observation& observation, const std::string& taint) {
  if (observation.outcome.kind != OutcomeKind::kCompleted)
    return std::string(Name(observation.outcome.kind)) +
           (observation.outcome.error_class.empty() ? "" : " " + observation.outcome.error_class);
  if (!taint.empty()) return taint;
  if (!observation.nondeterministic.empty()) return "repeated runs differ";
  return "";
}

Classification Combine(const std::string& value, const Classification& base, DType observed, int bits,
                       std::span<const ProofInput> inputs) {
  Classification joined = JoinInputs(value, base, observed, bits, inputs);
  // If both are unmodelled, the explanation from the case's own data is the more informative one.
  return base.kind == kUnmodelled && joined.kind == kUnmodelled ? base : joined;
}

Proof JoinCompanions(const Case& test_case, const Observation& own,
                     const std::map<std::string, Classification>& classifications,
                     std::span<const CompanionRun> companions) {
  Proof proof;
  std::map<std::string, std::vector<ProofInput>> by_value;
  for (const CompanionRun& run : companions) {
    proof.inputs.push_back({.name = run.name,
                            .left_out = run.observation == nullptr
                                            ? "not run"
                                            : WhyItProvesNothing(*run.observation, run.taint)});
    if (!proof.inputs.back().left_out.empty() || run.classifications == nullptr) continue;
    for (const auto& [value, one] : *run.classifications) {
      const auto tensor = own.values.find(value);
      const auto there = run.observation->values.find(value);
      if (tensor == own.values.end() || there == run.observation->values.end() ||
          there->second.dtype != tensor->second.dtype)
        continue;
      by_value[value].push_back({.name = run.name, .classification = &one, .bits = MostBits(there->second)});
      ValueResult alone{
          .dtype = tensor->second.dtype, .shape = tensor->second.shape, .part = {}, .classification = one};
      const ContractVerdict verdict = JudgeContract(test_case, value, alone);
      if (verdict == ContractVerdict::kViolates) proof.verdicts[value] = verdict;
      if (verdict == ContractVerdict::kUnmodelled && !ErrsAsFloat32(one))
        proof.verdicts.try_emplace(value, verdict);
    }
  }
  for (const auto& [value, one] : classifications) {
    const auto tensor = own.values.find(value);
    const DType dtype = tensor == own.values.end() ? DType::kFloat32 : tensor->second.dtype;
    const int bits = tensor == own.values.end() ? 0 : MostBits(tensor->second);
    proof.values.emplace(value, Combine(value, one, dtype, bits, by_value[value]));
  }
  return proof;
}

void ApplyProof(const Proof& proof, CaseResult* result) {
  result->proved_on = proof.inputs;
  for (const auto& [value, verdict] : proof.verdicts) {
    const auto found = result->values.find(value);
    if (found != result->values.end() && found->second.contract != ContractVerdict::kViolates)
      found->second.contract = verdict;
  }
}

}  // namespace ulpscope
