// Judges a contract on an observed value, and on an outcome as a whole. A contract names, per value, a dtype and
// allowed words per facet. It is judged on `models_proved` as a joint set, never facet by facet: {float32 accumulation,
// rounded through bfloat16} and {bfloat16 accumulation, not rounded} each hold one allowed word, yet neither model
// conforms to "float32 accumulation, not rounded".
#pragma once

#include <string>
#include <vector>

#include "harness/model/case.h"
#include "harness/model/oracle.h"
#include "harness/model/run_report.h"

namespace ulpscope {

/// True if `model` lies inside `demand`. A demand on `in` holds for every operand that the classification
/// names, one on `in.NAME` for that operand, one on `cuts.NAME` for that intermediate.
bool IsInside(const PrecisionModel& model, const ValueDemand& demand, const Classification& classification);

/// CONFORMS if the dtype fits and every proved model is accepted; VIOLATES if the dtype differs or no proved model is
/// accepted; UNDETERMINED if some are; UNMODELLED if no model survives; NOT_JUDGED if the contract does not name
/// `value`. A value without a reference, or whose bits every model gives, proves nothing about a facet: UNDETERMINED.
ContractVerdict JudgeContract(const Case& test_case, const std::string& value, const ValueResult& result);

/// The same for the facets alone.
ContractVerdict JudgeFacets(const ValueDemand& demand, const Classification& classification);

/// The verdict on the outcome as a whole. Raising violates a contract that names values, unless it lists `raised`;
/// completing violates one that demands only `raised`; a demanded value that does not exist violates. NOT_JUDGED for
/// outcomes that are neither completed nor raised. CONFORMS does not cover the values; JudgeContract does.
ContractVerdict JudgeOutcome(const Case& test_case, const Outcome& outcome,
                             const std::vector<std::string>& values);

/// True if a raised outcome has the class and the text (first 4096 bytes) of `match`; an invalid pattern matches none.
bool MatchesRaised(const RaisedMatch& match, const Outcome& outcome);

/// "out float32_rz or float32_rna": surviving words of each facet of `demand` that it does not allow; "" if none.
std::string LeftOpen(const ValueDemand& demand, const Classification& classification);

/// The rounding that hides the sums of `value` ("the total (bfloat16)") if `demand` names an accumulator but no
/// intermediate rounding. Every explanation of the value then rounds a step inside the op to fewer bits than its sums
/// have, so sums in fewer bits may give the same results. "" if a model without such a rounding explains the value.
std::string HidesSums(const std::string& value, const ValueDemand& demand,
                      const Classification& classification);

/// True for a float64 value if no order of a model that explains it reproduces all bits. It then meets no demand on
/// operands or products: roundings to 52 bits look like errors of float64 sums and are no candidate models.
bool HidesReading(const ValueDemand& demand, DType observed, const Classification& classification);

/// "acc in {float32, float64}, mid in {none}", for sentences.
std::string Describe(const ValueDemand& demand);

/// The roundings named by `demand` for a value with these operands, at most some dozens. float32 represents classes.
std::vector<Proposal> RoundingsNamed(const ValueDemand& demand, const std::vector<std::string>& operands);

/// True if `acc` is one of `words` or lies in a class of theirs. blockfma(n,F,mode) <= blockfma; float32, float32_rz
/// and block units of that width <= float32_class; that, float64, compensated and exact <= at_least_float32. No class
/// holds a sum that drops subnormals.
bool ContainsAccumulator(const DemandWords& words, const AccSpec& acc);

}  // namespace ulpscope
