// RunReport: everything a report shows. A pure function of the run's journal; every writer in reports/ reads
// only this.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/model/budget.h"
#include "harness/model/case.h"
#include "harness/model/classification.h"
#include "harness/model/divergence_kind.h"
#include "harness/model/ledger.h"
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

/// An element of one value.
struct SpecialElement {
  std::string value;
  std::vector<int64_t> at;  ///< coordinates
  double observed = 0;
  std::optional<double> exact;  ///< nothing: it has no number (0 / 0), or none is known
};

/// Where infinities or NaNs of observed values begin: the first step that gives one of operands which do not force it, an infinity where
/// the exact result of its operands is finite, or a NaN where none of its operands is one.
struct NonFiniteBirth {
  std::string what;  ///< "inf" or "NaN"
  std::vector<std::string>
      values;      ///< observed ones that rest on it and are not finite there, in program order
  std::string op;  ///< of the step; empty: which step is not known, and `born` is of the first of `values`
  SpecialElement
      born;  ///< the first such element of the step; `exact`: of the operands that this backend computed
  std::vector<double> operands = {};  ///< of an elementwise step, at that element
  DType dtype = DType::kFloat32;      ///< of the step's value
  std::optional<SpecialElement> end =
      {};  ///< of the first of `values`, against the exact result of the whole program
  /// Elements that are not finite of the step and of each later step that rests on it and has any, in program order.
  struct Spread {
    std::string step;
    int64_t count = 0, elements = 0;
  };
  std::vector<Spread> spread = {};
};

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
  std::vector<std::string> status_values =
      {};  ///< the values that the status is about; empty: the result as a whole
  std::map<std::string, Exclusion> cited = {};  ///< value -> the exclusion that the reason cites
  bool demanded = false;                        ///< a contract or an expectation says what has to come
  Outcome outcome;
  std::map<std::string, std::string> knobs_asked, knobs_effective;
  std::vector<std::string> value_order;  ///< observed values in program order
  std::map<std::string, ValueResult> values;
  std::map<std::string, std::string> observations;
  std::vector<Cast> casts;
  std::vector<CastCost> cast_costs;  ///< their `shares` are volatile
  std::vector<std::string> stages;   ///< those that its trace has, in the order of kTraceStages
  std::vector<std::string> notes, untraced;
  /// Where infinities and NaNs of its observed values begin. No divergence where all backends do so.
  std::vector<NonFiniteBirth> not_finite;
  std::optional<OpenedRun> opened;  ///< of a program of several steps
  std::vector<ProvedOn> proved_on;  ///< with `prove`: the companions, in the order in which they were run
  std::string repro;
  std::map<std::string, double> durations_ms;  ///< volatile

  /// The values that there are, in program order.
  std::vector<std::pair<std::string, const ValueResult*>> ValuesInOrder() const;
  /// What its parts took together: an adapter's word, which may be no number.
  double Milliseconds() const;
};

/// How far the two sides of a divergence are apart in its first value. Ranges are over all pairs of backends that it parts.
struct DifferenceSize {
  int64_t fewest = 0, most = 0;  ///< elements whose numbers or special values differ
  int64_t elements = 0;          ///< of so many; 0: the kind has no size (outcome, dtype, casts)
  double largest_ulp = 0;        ///< of numbers, at the larger of the two; 0 for integers
  double largest = 0;            ///< absolute
  double scale = 0;              ///< the largest finite magnitude of the value on either side
  /// `largest` as a share of `scale`; 0 where there is no scale.
  double Relative() const { return scale > 0 ? largest / scale : 0; }
};

struct Divergence {
  std::string case_id;
  DivergenceKind kind = DivergenceKind::kPrecision;
  std::vector<std::vector<std::string>> backends;  ///< two groups, or one for graph_vs_execution
  std::string value;  ///< the first value in program order where they part; empty for outcome
  std::vector<std::string> also;
  std::string basis;  ///< "proved" or "likely"
  std::vector<std::string> stages;
  DifferenceSize size = {};
  /// Of order and bits: `size.Relative()` is at most this. 0 for all other kinds.
  double bound = 0;
  std::string sentence;
  std::string claim = {};  ///< of precision: the sentence without the element that shows it
  std::string summary =
      {};  ///< "rounds a value to bfloat16": what one side does, whichever side and value it is
  bool has_cause = true;  ///< the sentence says more than that values differ, where and by how much
};

/// One observed value and two groups of backends that stored other bits of it, each group the same bits.
struct AccountEntry {
  std::string case_id;
  std::string value;
  std::vector<std::vector<std::string>> backends;  ///< two groups
  DifferenceSize size = {};                        ///< without elements where dtype or shape differ
  /// The kinds of the divergences that speak of it, or why none has to: `nondeterministic` (the result's status says so),
  /// `nan_payload`. Empty: a difference of which nothing is said, which is a fault of ulpscope.
  std::vector<std::string> by = {};
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

/// Where a case was written, and what its steps were captured from.
struct CasePlace {
  SourcePos at;                                  ///< line 0: nobody knows
  std::map<std::string, int> lines = {};         ///< value -> the line of the step that gives it
  std::map<std::string, SourceStep> steps = {};  ///< value -> the source that the step was captured from
};

/// A limit of time that came before the end of a run or of its judgement.
struct TimeLimit {
  double minutes = 0;
  std::vector<std::string> left_out =
      {};  ///< what it cost, a phrase each: "3 of 8 results not run"; never empty
};

struct RunReport {
  int64_t seed = 0;
  bool complete = true;
  std::optional<TimeLimit> limit = {};  ///< nothing where none left anything out
  int64_t stopped_after = 0;  ///< failures at which the run stopped because it was asked to; 0: it did not
  std::map<std::string, std::map<std::string, std::string>> versions;  ///< backend -> package -> version
  std::map<std::string, std::string> not_installed;  ///< backend -> the line that installs it
  std::map<std::string, std::optional<std::string>>
      environment;  ///< variables that change numerics, as preset
  std::vector<CaseResult> results;
  std::vector<Divergence> divergences;
  std::vector<AccountEntry> account;        ///< by case and value
  std::vector<Ledger> ledgers;              ///< one for each entry of `account` that has numbers
  std::vector<ErrorBudget> budgets;         ///< of values of programs of several steps, by case
  std::vector<KnobEffect> knobs;            ///< by backend, knob, value; in the order of the run
  std::map<std::string, CasePlace> places;  ///< by id of the case
  // Volatile: not part of byte-for-byte promises.
  std::string id, started;
  std::map<std::string, double> durations_s;
  std::string oracle_engine;  ///< "fast" or "boost"; empty when nothing was judged
  OracleCounts oracle_counts;
};

/// False where nothing was observed, no result was demanded, and no two backends gave anything of one case to
/// compare: the backends refused everything, or there is no reference.
bool IsAnythingChecked(const RunReport& report);

/// Of a run that was asked to stop at failures, NOT_RUN is what was asked for, and counts for nothing. Else:
/// 3 if any HARNESS, or a difference of bits of which nothing is said; else 6 if any CRASH TIMEOUT OOM PROTOCOL TAINTED NOT_RUN,
/// or a limit of time left something out; else
/// 1 if any FAIL XPASS NONDET UNMODELLED INCONCLUSIVE; else 5 if nothing was checked; else 0. `interrupted` gives 2 before 6.
enum class Interruption { kNone, kInterrupted };
int ExitCode(const RunReport& report, Interruption interruption);

}  // namespace ulpscope
