// Finds the stage of two traces whose casts differ.
#include "harness/judge/casts.h"

#include <algorithm>
#include <iterator>

namespace ulpscope {
namespace {

std::set<std::string> Untraced(const CaseResult& result) {
  return {result.untraced.begin(), result.untraced.end()};
}

}  // namespace

std::vector<Cast> CastsOf(const CaseResult& result, const std::string& stage) {
  std::vector<Cast> casts;
  std::copy_if(result.casts.begin(), result.casts.end(), std::back_inserter(casts),
               [&](const Cast& cast) { return cast.stage == stage; });
  return casts;
}

CastKeys CastKeysOf(const CaseResult& result, const std::string& stage) {
  CastKeys keys;
  for (const Cast& cast : CastsOf(result, stage)) keys.insert({cast.from, cast.to, cast.shape});
  return keys;
}

std::string StageThatDiffers(const CaseResult& a, const CaseResult& b) {
  const bool same_part = Untraced(a) == Untraced(b);
  std::set<std::string> seen;
  for (const Cast& cast : a.casts) {
    // Casts outside the regions appear in the graphs that a compiler of the whole program gets, and in no other stage.
    const bool of_all = cast.stage == "lazy_ir" || cast.stage.starts_with("hlo");
    if (!seen.insert(cast.stage).second || !(same_part || of_all)) continue;
    const CastKeys theirs = CastKeysOf(b, cast.stage);
    if (!theirs.empty() && CastKeysOf(a, cast.stage) != theirs) return cast.stage;
  }
  return "";
}

}  // namespace ulpscope
