// What a case's companions prove, joined with what its own data proves.
//
// Companions (harness/casefile/prove.h) are the same program on other inputs, so one precision model has to explain them all:
// what is proved is the intersection, model by model, and where it is empty no model explains the value. A companion whose
// own proved set violates the contract is a witness that needs no company: the value violates it. One that was not
// completed, or differed between repeated runs, proves nothing and is left out, which the result says.
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

/// `base`, whose results use at most `bits` significant bits, with what `inputs` exclude left out. Kinds without a reference are passed
/// over; a base without one is returned as it is. `value`, `observed`: its name and dtype.
Classification Combine(const std::string& value, const Classification& base, DType observed, int bits,
                       std::span<const ProofInput> inputs);

/// One companion's run; `observation` is null where it was not reached.
struct CompanionRun {
  std::string name;
  const Observation* observation = nullptr;
  std::string taint;  ///< FindTaint of it
  const std::map<std::string, Classification>* classifications = nullptr;
};

/// "crashed SIGSEGV", "repeated runs differ": why what was observed is no evidence; "" where it is. `taint`: FindTaint of it.
std::string WhyItProvesNothing(const Observation& observation, const std::string& taint);

/// The companions of one result, as its verdict takes them.
struct Proof {
  std::map<std::string, Classification> values;  ///< of the case's own, combined
  std::map<std::string, ContractVerdict>
      verdicts;  ///< of values that a companion alone decides: VIOLATES or UNMODELLED
  std::vector<ProvedOn> inputs;
};

Proof JoinCompanions(const Case& test_case, const Observation& own,
                     const std::map<std::string, Classification>& classifications,
                     std::span<const CompanionRun> companions);

/// Puts the verdicts of companions and the list of inputs into a result that was judged on proof.values.
void ApplyProof(const Proof& proof, CaseResult* result);

}  // namespace ulpscope
