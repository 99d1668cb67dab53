// RunReport: everything a report shows. A pure function of the run's journal; every writer in reports/ reads
// only this.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/model/case.h"
#include "harness/model/classification.h"
#include "harness/model/observation.h"
#include "harness/model/reference.h"

namespace ulpscope {

enum class Status {
  kHarness,
  kProtocol,
  kCrash,
  kTimeout,
  kOom,
  kTainted,
  kNotRun,
  kSkip,
  kNondet,
  kFail,
  kXfail,
  kXpass,
  kUnmodelled,
  kInconclusive,
  kPass
};
/// HARNESS PROTOCOL CRASH TIMEOUT OOM TAINTED NOT_RUN SKIP NONDET FAIL XFAIL XPASS UNMODELLED INCONCLUSIVE
/// PASS
std::string_view Name(Status status);

enum class ContractVerdict { kConforms, kViolates, kUndetermined, kUnmodelled, kNotJudged };
/// CONFORMS VIOLATES UNDETERMINED UNMODELLED NOT_JUDGED
std::string_view Name(ContractVerdict verdict);

struct ValueResult {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::string bits = {};  ///< BitsOf what was observed; empty where there is no tensor
  std::string part = {};  ///< eager, compiled, backward, glue; empty when the backend has one part
  Classification classification = {};
  ContractVerdict contract = ContractVerdict::kNotJudged;
};

/// A companion of a case: further inputs that its values were judged on.
struct ProvedOn {
  std::string name;
  std::string left_out;  ///< why it proves nothing ("crashed SIGSEGV"); empty where it counts
};

/// "judged on 3 further inputs too: single, cancel, swamp (crashed SIGSEGV: it proves nothing)"; "" without any.
std::string ProvedOnSentence(const std::vector<ProvedOn>& inputs);

/// A program's second run, with every intermediate observed.
struct OpenedRun {
  /// One a step, in program order; from the operands that this backend computed for it.
  struct StepResult {
    std::string value, op;
    ValueResult result;
  };
  std::vector<StepResult> steps;
  std::vector<std::string>
      changed;           ///< observed values that got other bits: `steps` says nothing of the plain run
  std::string left_out;  ///< why there are no steps ("raised RuntimeError"); empty where there are
};

struct CaseResult {
  std::string id;
  std::string backend;  ///< NAME[@DEVICE][:knob=value,...]
  Status status = Status::kNotRun;
  std::string
      reason;  ///< one sentence for everything but PASS, and for a PASS that nothing was looked at for
  bool demanded = false;  ///< a contract or an expectation says what has to come
  Outcome outcome;
  std::map<std::string, std::string> knobs_asked, knobs_effective;
  std::vector<std::string> value_order;  ///< observed values in program order
  std::map<std::string, ValueResult> values;
  std::map<std::string, std::string> observations;
  std::vector<Cast> casts;
  std::vector<CastCost> cast_costs;  ///< their `shares` are volatile
  std::vector<std::string> stages;   ///< those that its trace has, in the order of kTraceStages
  std::vector<std::string> notes;
  std::optional<OpenedRun> opened;  ///< of a program of several steps
  std::vector<ProvedOn> proved_on;  ///< with `prove`: the companions, in the order in which they were run
  std::string repro;
  std::map<std::string, double> durations_ms;  ///< volatile

  /// The values that there are, in program order.
  std::vector<std::pair<std::string, const ValueResult*>> ValuesInOrder() const;
  /// What its parts took together: an adapter's word, which may be no number.
  double Milliseconds() const;
};

enum class DivergenceKind {
  kOutcome,
  kDtype,
  kPrecision,
  kOrder,  ///< of one class, in sums alone: no more than their order parts them
  kBits,   ///< of one class; what parts them these inputs do not tell
  kValue,
  kSpecial,
  kCasts,
  kGraphVsExecution
};
/// outcome dtype precision order bits value special casts graph_vs_execution
std::string_view Name(DivergenceKind kind);

struct Divergence {
  std::string case_id;
  DivergenceKind kind = DivergenceKind::kPrecision;
  std::vector<std::vector<std::string>> backends;  ///< two groups, or one for graph_vs_execution
  std::string value;  ///< the first value in program order where they part; empty for outcome
  std::vector<std::string> also;
  std::string basis;  ///< "proved" or "likely"
  std::vector<std::string> stages;
  std::string sentence;
};

/// What asking for one knob did: its cells, each against the cell of the same case and backend that differs
/// in this knob alone. Read-back proves nothing about an effect, nor an effect about read-back: both are told.
struct KnobEffect {
  std::string backend;  ///< NAME[@DEVICE][:the knobs that both sides share]
  std::string knob, asked;
  std::vector<std::string>
      effective;  ///< the values read back, each once, in the order of the cases; empty: not read back
  enum class ReadBack { kAsAsked, kDiffers, kNotRead } read_back = ReadBack::kNotRead;
  /// acts trace_only no_effect as_without refused not_compared
  ///   acts        an outcome, a dtype, bits or an observation differ
  ///   trace_only  every value has the same bits, casts or notes differ
  ///   no_effect   accepted, and nothing differs
  ///   as_without  nothing differs, and the base reads back the same value: it is what stands anyway
  ///   refused     unsupported with a reason, where the base ran
  ///   not_compared  the run holds no base, or neither side ran
  enum class Effect {
    kActs,
    kTraceOnly,
    kNoEffect,
    kAsWithout,
    kRefused,
    kNotCompared
  } effect = Effect::kNotCompared;
  int64_t cases = 0;     ///< cells of the run that ask for it
  int64_t compared = 0;  ///< of them, with a base where both ran
  int64_t acted = 0;     ///< of them, where something of the kind of `effect` differed
  std::string base;      ///< "unset" or the value that it was compared with
  std::vector<std::string> base_effective;
  std::string first_case;  ///< where the strongest difference showed first; empty without one
  std::string what;        ///< what differed there, or the refusal
};
std::string_view Name(KnobEffect::ReadBack read_back);  ///< as_asked differs not_read_back
std::string_view Name(KnobEffect::Effect effect);

struct RunReport {
  int64_t seed = 0;
  bool complete = true;
  int64_t stopped_after = 0;  ///< failures at which the run stopped because it was asked to; 0: it did not
  std::map<std::string, std::map<std::string, std::string>> versions;  ///< backend -> package -> version
  std::map<std::string, std::string> not_installed;  ///< backend -> the line that installs it
  std::map<std::string, std::optional<std::string>>
      environment;  ///< variables that change numerics, as preset
  std::vector<CaseResult> results;
  std::vector<Divergence> divergences;
  std::vector<KnobEffect> knobs;  ///< by backend, knob, value; in the order of the run
  // Volatile: not part of byte-for-byte promises.
  std::string id, started;
  std::map<std::string, double> durations_s;
  std::string oracle_engine;  ///< "fast" or "boost"; empty when nothing was judged
  OracleCounts oracle_counts;
};

/// Of a run that was asked to stop at failures, NOT_RUN is what was asked for, and counts for nothing. Else:
/// 3 if any HARNESS; else 6 if any CRASH TIMEOUT OOM PROTOCOL TAINTED NOT_RUN; else 1 if any FAIL XPASS
/// NONDET UNMODELLED INCONCLUSIVE; else 5 if nothing ran; else 0. `interrupted` gives 2 before 6.
enum class Interruption { kNone, kInterrupted };
int ExitCode(const RunReport& report, Interruption interruption);

}  // namespace ulpscope
