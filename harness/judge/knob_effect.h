// Knobs set, read back and tested: what changes when a knob is requested?
//
// A library may report the requested value and compute as before, and its report may be untrue, so neither is evidence.
// Each cell that requests a knob is therefore compared with its base: the cell of the same case and backend whose knobs
// differ in this one alone, preferably one that leaves the knob unset, else one that requests its default. Outcome,
// dtypes, bits, observed texts, casts and notes are compared. Classifications are not compared, since equal bits have
// equal classes, but they are named if bits differ.
//
// The comparison is exact: a different last bit is an effect. A value that one cell does not repeat with the same bits
// from run to run is no evidence; if only one of the two cells repeats it, that is an effect. Words that choose the
// program or the device (fault, case, model, record, backend_name) are not settings and are left out.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/judge/participant.h"
#include "harness/model/run_report.h"

namespace ulpscope {

/// Backend string -> knob -> values, default first, as the hello of its adapter offers them.
using OfferedKnobs = std::map<std::string, std::map<std::string, std::vector<std::string>>>;

/// How strongly two cells differ; a stronger difference hides the weaker ones that follow from it.
enum class KnobDifference { kNone, kNotes, kCasts, kObservation, kBits, kRepeat, kDtype, kOutcome };

/// One cell that requests `knob`, compared with its base.
struct KnobComparison {
  enum class State { kCompared, kRefused, kNoBase, kNotRun } state = State::kNoBase;
  std::string case_id;
  std::string backend;  ///< without the knob: what both sides share
  std::string knob, asked;
  std::string base;            ///< "unset", or the default that the base requests
  std::string effective;       ///< read back; empty: not
  std::string base_effective;  ///< the same of the base
  bool differs_from_asked = false;
  KnobDifference difference = KnobDifference::kNone;
  std::string what;  ///< the difference, or the refusal
};

/// One entry for each requested knob of each cell of one case. `participants` holds skipped cells too.
std::vector<KnobComparison> CompareKnobs(std::span<const Participant> participants,
                                         const OfferedKnobs& offered);

/// One row for each (backend, knob, value) of all cases, in the order of `backends`, knobs and values.
std::vector<KnobEffect> SumUpKnobs(std::span<const KnobComparison> comparisons,
                                   std::span<const std::string> backends);

}  // namespace ulpscope
