// The places of a finding in the source that a program was captured from: by module, file and line, repeated layers
// together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/model/run_report.h"
#include "reports/ledger.h"

namespace ulpscope {

/// One line of source, in any layer, and the steps of a finding that come from it.
struct SourcePlace {
  StepOrigin at;                    ///< of the heaviest step in the ledgers of its case; by default the first
  std::vector<std::string> values;  ///< that these steps give, in the order of the finding
  std::vector<std::string> modules;  ///< of these steps, each once
  int64_t layers = 1;                ///< modules that run this line
  double share = 0;  ///< of an observed value's difference, the largest of a step here; 0 without a ledger
};

/// The places of the values in which the finding's backends differ, the heaviest first, then in the finding's order.
/// Empty if none of the steps has an origin.
std::vector<SourcePlace> SourcePlacesOf(const RunReport& report, const Divergence& divergence);
/// The same of all divergences that are one finding.
std::vector<SourcePlace> SourcePlacesOf(const RunReport& report, const WeighedDivergence& finding);

/// "model.layers.0.mlp, modeling_llama.py:77"; of repeated layers "model.layers.*.mlp, modeling_llama.py:77 in 24 of 24 layers, largest
/// in model.layers.3.mlp".
std::string PlaceText(const SourcePlace& place);
std::vector<std::string> PlaceTexts(const std::vector<SourcePlace>& places);
/// "at model.layers.0.mlp, modeling_llama.py:77; and 2 more lines"; "" without places.
std::string PlacesText(const std::vector<SourcePlace>& places);

/// A sentence, and " At model.layers.0.mlp, modeling_llama.py:77." behind it.
std::string WithPlaces(std::string sentence, const std::vector<SourcePlace>& places);

/// The place where the step that gives `value` was captured; null if its case does not state it.
const StepOrigin* OriginOf(const RunReport& report, const std::string& case_id, const std::string& value);

/// A file and a line of it; line 0: not known.
struct SourceLine {
  std::string file = {};
  int64_t line = 0;
};
/// The line to show for `value` of a case: the line of source that its step was captured from, else that of the step in
/// the case's file, else that of the case.
SourceLine SourceLineOf(const RunReport& report, const std::string& case_id, const std::string& value);

}  // namespace ulpscope
