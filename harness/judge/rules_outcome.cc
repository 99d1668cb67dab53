// Rules: the outcome.
#include <array>

#include "harness/judge/classifier.h"
#include "harness/judge/rule_numbers.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {

/// What the report has of a conclusion.
struct Classifier::OutcomeTable {
  using C = const Classifier&;
  static bool Always(C) { return true; }

  static constexpr std::array kRules = {
      Rule{.name = "special-values-alone",
           .when = [](C c) { return c.Searches(); },
           .apply = &Classifier::DoubtSpecials,
           .place = "Before the fit is settled, which a sentence of its own prevents.",
           .numbers = "kFewestSpecials",
           .test = "Doubts.InfinitiesAloneNameNoFormat"},
      Rule{.name = "errors-beyond-float32",
           .when =
               [](C c) {
                 return c.Searches() && c.now_.odd.empty() && c.JudgesAll() && c.result_.says.empty() &&
                        !c.now_.likely.empty();
               },
           .apply = &Classifier::MeasureBeyond,
           .place = "Before the fit is settled, as the one above, and where nothing was said.",
           .numbers = "kFewestBeyond kBeyondRms kBeyondLargest kBeyondWork kNoFunction kNoFunctionUnits",
           .test = "FunctionsInFloat32.ErrorsOfNoFunctionAreNotConfirmed"},
      Rule{.name = "fit",
           .when = Always,
           .apply = &Classifier::SettleFit,
           .place = "After the last doubt: what is doubted fits nothing.",
           .numbers = "",
           .test = "Asked.EachSetOfRoundingsIsFound"},
      Rule{.name = "fewest-bits",
           .when =
               [](C c) {
                 return !c.result_.models.empty() && c.JudgesAll() && c.Searches() &&
                        c.shape_.reduction_length > 0 && c.shape_.cut_points.size() <= 1 &&
                        !c.sample_.empty();
               },
           .apply = &Classifier::MeasureFloors,
           .place = "Once it is known what fits: the limits are of that. Ops of several steps have too many "
                    "places.",
           .numbers = "kFloorElements kProbeRoom",
           .test = "Search.SumsAreNotSeenBehindARoundingToFewBits"},
      Rule{.name = "no-model",
           .when = [](C c) { return c.result_.models.empty(); },
           .apply = &Classifier::NameNoModel,
           .place = "After the fit, which may leave none.",
           .numbers = "kFarInsideRange",
           .test = "Causes.ADivisionByANumberIsAProductWithItsReciprocal"},
      Rule{.name = "kind",
           .when = [](C c) { return !c.result_.models.empty(); },
           .apply = &Classifier::NameKind,
           .place = "After the fit, as the one above.",
           .numbers = "",
           .test = "Causes.ElementsThatDifferTellFormsThatASampleDoesNot"},
      Rule{.name = "share-of-bits",
           .when = [](C c) { return !c.HardOnly(); },
           .apply = &Classifier::MeasureReproduced,
           .place = "Before forms are doubted, by the share of bits that the models give.",
           .numbers = "kMostReproducing kNarrowedDown",
           .test = "Outcome.TheShareOfBitsIsThatOfTheNearestOrder"},
      Rule{.name = "any-order",
           .when =
               [](C c) {
                 return c.Searches() && c.shape_.reduction_length != 0 && !c.result_.models.empty() &&
                        c.JudgesAll();
               },
           .apply = &Classifier::MeasureOrders,
           .place = "While the models are those that fit.",
           .numbers = "",
           .test = "Outcome.TheBoundOfAnyOrderHoldsTheErrorsOfEachOrder"},
      Rule{.name = "errors-near-float32",
           .when = Always,
           .apply = &Classifier::MeasureNearness,
           .place = "After the kind, which it reads.",
           .numbers = "kNearnessWork kErrsOfSum kFewestOfSums",
           .test = "Outcome.ExcludedFloat32SumsAreTheMeasureOfErrors"},
      Rule{.name = "other-forms-of-steps",
           .when =
               [](C c) {
                 return !c.HardOnly() && c.shape_.has_steps && !c.result_.models.empty() &&
                        c.result_.reproduced < kNearlyAll;
               },
           .apply = &Classifier::DoubtForms,
           .place = "After the share of bits, which it reads.",
           .numbers = "",
           .test = "Likelihood.AnotherFormOfTheStepsInsideAnOpIsNoNarrowSum"},
      Rule{.name = "zeros-alone",
           .when = [](C c) { return !c.result_.models.empty() && !c.stored_.empty(); },
           .apply = &Classifier::DoubtZeros,
           .place = "After all that may leave models: of nothing but zeros no format shows.",
           .numbers = "",
           .test = "Outcome.ZerosThatFloat16WouldGiveNameNoFormat"},
      Rule{.name = "exclusions",
           .when = Always,
           .apply = &Classifier::KeepExclusions,
           .place = "Once the models are settled: the neighbours of these are shown.",
           .numbers = "kMostExclusions",
           .test = "Outcome.ANeighbourOfTheModelsIsExcludedByAnElementOutsideItsBounds"},
      Rule{.name = "label",
           .when = Always,
           .apply = &Classifier::LabelValue,
           .place = "Last: it reads everything above.",
           .numbers = "",
           .test = "Causes.AGradientThatPassesAMaskIsRoundedAsItIsAddedUp"},
  };
};

std::span<const ClassifierRule> Classifier::OutcomeRules() { return OutcomeTable::kRules; }

}  // namespace ulpscope
