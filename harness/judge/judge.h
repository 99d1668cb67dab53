// The judge: from facts (an Observation and the classifications of its values) to a CaseResult, and from the results of
// a run to its RunReport. Pure functions: the same record gives the same report on any machine and in any locale.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/judge/divergence.h"
#include "harness/model/deviation.h"
#include "harness/model/run_report.h"
#include "harness/model/versions.h"

namespace ulpscope {

struct Proof;  // harness/judge/combine.h

/// The judge's input besides the case and the observation.
struct JudgeContext {
  int64_t seed = 0;
  Versions versions;  ///< of the backend that is judged
  std::string date;   ///< "2026-07-01", as the run recorded it; deviations expire against it
  std::span<const Deviation> deviations;
  std::string selector;     ///< selects the case on a command line, quoted; empty = its id
  std::string extra_flags;  ///< more of the command line, quoted: "--cases DIR"; empty for the default suite
  /// Whether a command line starts the backend, or only the caller's program with the backend's functions can.
  enum class Start { kByName, kByCaller } start = Start::kByName;
  std::set<std::string> provable;  ///< values for which `prove: true` in the contract would add inputs
  const Proof* proof = nullptr;    ///< of the auxiliary inputs; its values are judged
};

/// `classifications` has one entry per observed value; a value without one counts as no_reference.
CaseResult JudgeCase(const Case& test_case, const std::string& backend, const Observation& observation,
                     const std::map<std::string, Classification>& classifications,
                     const JudgeContext& context);

/// The result of a case that was not reached, or that a fault of ulpscope kept from being judged.
CaseResult NotReachedResult(const Case& test_case, const std::string& backend, const std::string& why,
                            const JudgeContext& context);
CaseResult HarnessFaultResult(const Case& test_case, const std::string& backend,
                              const Observation& observation, const std::string& fault,
                              const JudgeContext& context);

/// The observed values in program order: by their steps, gradients after their backward, tensors in their final state.
std::vector<std::string> ProgramOrder(const Case& test_case);

/// "ulpscope run seeds/matmul_out/as_posted -b torch-aot-eager --seed 0", quoted for a POSIX shell.
std::string ReproLine(const std::string& id, const std::string& backend, const JudgeContext& context);

/// Everything of a report that is not a result.
struct RunFacts {
  int64_t seed = 0;
  bool complete = true;
  int64_t stopped_after = 0;          ///< see RunReport
  std::vector<std::string> backends;  ///< in the order of the command line; results follow it
  std::map<std::string, Versions> versions;
  std::map<std::string, std::string> not_installed;
  std::map<std::string, std::optional<std::string>> environment;
  std::string id, started;
  std::map<std::string, double> durations_s;
};

/// Sorts results by id, then in the order of the backends; divergences by id, kind and backends.
RunReport BuildReport(RunFacts facts, std::vector<CaseResult> results, std::vector<Divergence> divergences);

}  // namespace ulpscope
