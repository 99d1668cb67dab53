// The ledgers of a run in words: how much of each difference is explained, and the weight of each finding.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "harness/model/ledger.h"
#include "harness/model/run_report.h"

namespace ulpscope {

/// The weight of a finding: its entries' share of the difference of one observed value, the largest among all pairs of
/// groups.
struct Weight {
  const Ledger* ledger = nullptr;  ///< null: no entry of a ledger is of its step
  double share = 0;
  /// True if ledgers with booked steps contain its step, and it moves no bit of an observed value in any of them.
  bool moves_nothing = false;
};
Weight WeightOf(const RunReport& report, const Divergence& divergence);
/// "68 % of the difference of result"; "" if there is no ledger of it.
std::string WeightText(const Weight& weight);

struct WeighedDivergence {
  const Divergence* divergence = nullptr;
  Weight weight = {};
  /// Lighter divergences of the same case and kind whose ledger entries have the same cause, whatever the other
  /// backends do there.
  std::vector<WeighedDivergence> likewise = {};
  std::vector<std::string> who = {};  ///< the backends that the causes belong to

  /// " jax does likewise in v_new (100 % of the difference of v_new) and w_new."; "" without any.
  std::string LikewiseText() const;
};
/// The divergences in the order in which they matter: by case, and in a case by weight; outcomes and dtypes before all others. Those of
/// one cause are one.
std::vector<WeighedDivergence> ByWeight(const RunReport& report);

/// Entries of one ledger with the same cause, the heaviest first: equal in backend, kind and that backend's behaviour.
/// The carrier's behaviour is not compared: it is a set of indistinguishable alternatives, which differs from step to
/// step.
struct FoldedCause {
  std::vector<const LedgerEntry*> entries;
  double share = 0;  ///< of all of them
};
/// The heaviest first; entries without a known cause are one.
std::vector<FoldedCause> FoldCauses(const Ledger& ledger);
/// "`q_embed` 27 %, model.layers.0.self_attn modeling_llama.py:150, in 2 of 2 layers 29 %": one text for each line of
/// source, repeated layers together; for an entry without an origin, the step and its share.
std::vector<std::string> PlaceTexts(const FoldedCause& cause);

/// One sentence on all differences of a run: "every difference is rounding: 3 causes explain all of it"; "41 % of the
/// difference of h is not explained". Empty if nothing differs.
std::string LedgerSummary(const RunReport& report);

/// "2 of 12 steps do otherwise: h 96 %, y 4 %": the entries by share, and the remainder.
std::string EntriesText(const Ledger& ledger);
/// "96 % of the difference: torch-inductor likely rounds no intermediate when computing h; torch-eager rounds each
/// step. The same in 2 more steps." and, if several steps have a cause, their places. Omits causes of order alone, and
/// those that `reported` states for each step.
std::vector<std::string> CauseTexts(const Ledger& ledger, const std::vector<Divergence>& reported);
/// "torch-inductor is nearer to exact: rms 1.8e-3 against 2.5e-3 of torch-eager"; "" if there is no exact result.
std::string NearnessText(const Ledger& ledger);
/// "with emulate_precision_casts=true torch-inductor differs in 0 of 1,024 elements (694 without)", of each setting that was tried;
/// those that leave as many are one text.
std::vector<std::string> RemedyTexts(const Ledger& ledger);
/// "y  torch-eager against jax: ..." of both: the entries of one difference, and the nearer side.
std::string LedgerText(const Ledger& ledger);

/// "41 %", "100 %", "0.3 %"; "none of it" is the caller's word for 0.
std::string Percent(double share);

}  // namespace ulpscope
