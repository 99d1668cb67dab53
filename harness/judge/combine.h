// Joins what a case's auxiliary inputs prove with what its own data proves. Auxiliary inputs (harness/casefile/prove.h)
// run the same program on other data, so one precision model has to explain them all. The proved set is the
// intersection, model by model; if it is empty, no model explains the value. An auxiliary input whose own proved set
// violates the contract is a witness by itself. An auxiliary input that did not complete, or whose repeated runs
// differed, proves nothing and is left out, as the result states.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "harness/judge/joining.h"
#include "harness/model/case.h"
#include "harness/model/observation.h"
#include "harness/model/run_report.h"

namespace ulpscope {

/// `base`, whose results use at most `bits` significant bits, without the models that `inputs` exclude. Inputs without
/// a reference are skipped; a base without one is returned unchanged. `value`, `observed`: the value's name and dtype.
Classification Combine(const std::string& value, const Classification& base, DType observed, int bits,
                       std::span<const ProofInput> inputs);

/// The run of one auxiliary input; `observation` is null if it was not reached.
struct CompanionRun {
  std::string name;
  const Observation* observation = nullptr;
  std::string taint;  ///< FindTaint of it
  const std::map<std::string, Classification>* classifications = nullptr;
};

/// "crashed SIGSEGV", "repeated runs differ": why the observation is no evidence; else "". `taint`: FindTaint of it.
std::string WhyItProvesNothing(const Observation& observation, const std::string& taint);

/// The auxiliary inputs of one result, in the form that its verdict needs.
struct Proof {
  std::map<std::string, Classification> values;     ///< of the case's own, combined
  std::map<std::string, ContractVerdict> verdicts;  ///< those that an auxiliary input decides alone
  std::vector<ProvedOn> inputs;
};

Proof JoinCompanions(const Case& test_case, const Observation& own,
                     const std::map<std::string, Classification>& classifications,
                     std::span<const CompanionRun> companions);

/// Adds the verdicts of auxiliary inputs and the list of inputs to a result that was judged on proof.values.
void ApplyProof(const Proof& proof, CaseResult* result);

}  // namespace ulpscope
