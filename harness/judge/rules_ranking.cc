// Rules: the evidence that excludes models, and the ranking of those that are left.
#include <algorithm>
#include <array>

#include "harness/judge/classifier.h"
#include "harness/judge/rule_numbers.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {

/// Hard evidence: what is excluded here by an element is excluded for good.
struct Classifier::EvidenceTable {
  using C = const Classifier&;
  static bool Always(C) { return true; }

  static constexpr std::array kRules = {
      Rule{.name = "bank",
           .when = Always,
           .apply = &Classifier::TryBank,
           .place = "First: the models that are listed are what everything else is measured against.",
           .numbers =
               "kFirstElements kFirstTerms kOpenShare kPartOfModels kModelsBetweenLooks kOrdersOfWeighing "
               "kElementsOfWeighing",
           .test = "Asked.EachSetOfRoundingsIsFound"},
      Rule{.name = "named-by-contract",
           .when = [](C c) { return !c.options_.named.empty(); },
           .apply = &Classifier::TryNamed,
           .place = "After the bank, which may list what a contract names.",
           .numbers = "",
           .test = "Local.ANarrowSumMayBeReadUnrounded"},
      Rule{.name = "flushed-subnormals",
           .when =
               [](C c) { return c.options_.search && !c.GaveUp() && (!c.AnySurvived() || c.AnyVanished()); },
           .apply = &Classifier::TryFlushing,
           .place = "Last: a model that is left without flushing is not suspected of it.",
           .numbers = "",
           .test = "Flushing.OperandsAndSumsAreNamedApart"},
  };
};

std::span<const ClassifierRule> Classifier::EvidenceRules() { return EvidenceTable::kRules; }

/// Likelihood: of the models that are left, those that explain the bits. It is walked anew whenever models were added.
struct Classifier::RankingTable {
  using C = const Classifier&;
  static bool Always(C) { return true; }

  static constexpr std::array kRules = {
      Rule{.name = "weighed-by-orders",
           .when = Always,
           .apply = &Classifier::WeighAll,
           .place = "First: it computes the likelihoods that the others compare.",
           .numbers = "kMayFit kProbeRoom kTemperedOutputs kRoomOfFirstLook",
           .test = "AsWritten.WhatMayBeWrittenIsNotShown"},
      Rule{.name = "functions-fit-inside-bounds",
           .when =
               [](C c) {
                 return c.ranking_.best == -kInf && std::ranges::all_of(c.trials_, [](const Trial& trial) {
                          return trial.hypothesis->order_free();
                        });
               },
           .apply = &Classifier::FitInside,
           .place = "Before any is kept: without a sum no likelihood is finite but that of an exact match.",
           .numbers = "",
           .test = "FunctionsInFloat32.HonestStepsAreFloat32AndNoMore"},
      Rule{.name = "nearer-than-exact-products",
           .when = [](C c) { return FormatOf(c.observed_.dtype)->precision > Binary32().precision; },
           .apply = &Classifier::NoteTooNear,
           .place = "Before any is kept: it takes rounded products out of the explanations.",
           .numbers = "kFarNearer kFewestMoved kRarelyMoved",
           .test = "SignificantBits.Float64SumsInFewerBitsAreNoFloat32SumsThatAreJoined"},
      Rule{.name = "bias-of-forms",
           .when = [](C c) { return c.shape_.has_steps; },
           .apply = &Classifier::LeaveBiasToForms,
           .place = "Before any is kept: it sets the likelihood that they are compared with.",
           .numbers = "",
           .test = "Ranking.ANormOfAFewRowsIsNotTakenForTruncatingSums"},
      Rule{.name = "within-keep-factor",
           .when = Always,
           .apply = &Classifier::KeepLikely,
           .place = "The ranking itself; what follows adds to it or takes from it by bits.",
           .numbers = "kWorstRatio kWorstLargest kWorstLean kRoomOfFew kRoomOfLean kFewestSums kFitElements",
           .test = "AsWritten.WhatMayBeWrittenIsNotShown"},
      Rule{.name = "rows-share-errors",
           .when = [](C c) { return c.SampledOfLine() > 1; },
           .apply = &Classifier::KeepAlikeInRows,
           .place = "After the ranking, to what it kept: models that differ in the shared sums alone.",
           .numbers = "",
           .test = "Ranking.ANormOfAFewRowsMayHaveCompensatedSums"},
      Rule{.name = "products-as-the-sum",
           .when = Always,
           .apply = &Classifier::KeepOtherProducts,
           .place = "After rows, whose models have products too; before bits, which tell products apart.",
           .numbers = "",
           .test = "Ranking.AnUntestedOrderDoesNotTellWhetherProductsWereRounded"},
      Rule{.name = "bits-of-more-elements",
           .when = [](C c) { return !c.shape_.has_steps; },
           .apply = &Classifier::MatchMore,
           .place = "Last: it costs most, and the fewer are likely the less.",
           .numbers = "kMatchTerms",
           .test = "Ranking.MoreElementsThanTheSampleTellSumsInFloat16"},
      Rule{.name = "bits-of-rounded-steps",
           .when = [](C c) { return c.shape_.has_steps; },
           .apply = &Classifier::MatchSteps,
           .place = "Last, as the one above, of which it is the counterpart for steps inside an op.",
           .numbers = "kMatchStepsWork kNarrowedDown",
           .test = "Ranking.AMeanStoredInBfloat16WasNotSummedInFloat16"},
  };
};

std::span<const ClassifierRule> Classifier::RankingRules() { return RankingTable::kRules; }

}  // namespace ulpscope
