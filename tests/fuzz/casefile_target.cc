// The case loader on any text: cases or errors, never both and never neither; what loads has a digest and can be sent.
#include "harness/casefile/load.h"
#include "harness/record/observation_json.h"
#include "tests/fuzz/targets.h"

namespace ulpscope::fuzz {

Reached Casefile(std::string_view input) {
  static const Vocabulary vocabulary{.backends = {"emulated", "openblas", "torch-eager"}};
  const LoadResult loaded = LoadCaseText(input, "fuzz.yaml", "fuzz", vocabulary);
  Demand(loaded.cases.empty() != loaded.errors.empty(), "a text gives cases or errors");
  for (const Error& error : loaded.errors) Demand(!error.Text().empty(), "an error has a text");
  for (const Case& c : loaded.cases) {
    Demand(!c.id.empty() && !c.program.empty() && !c.observe.empty(), "a case has an id, a program, a value");
    Demand(CaseDigest(c).size() == 8, "a case has a digest");
    Demand(ProgramToJson(c, "cpu").is_object(), "a case can be sent");
  }
  Plant(!loaded.cases.empty() && IsPlantedLength(input.size()));
  return loaded.cases.empty() ? Reached::kRefused : Reached::kAccepted;
}

}  // namespace ulpscope::fuzz
