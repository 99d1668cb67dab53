// Rules: the conclusion.
#include <algorithm>
#include <array>
#include <cmath>

#include "harness/judge/classifier.h"
#include "harness/judge/rule_numbers.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {

/// Likely models that something else explains as well join others, give way to them, or are no explanation.
struct Classifier::ConclusionTable {
  using C = const Classifier&;
  static bool Always(C) { return true; }

  static constexpr auto kLooksEverywhere = [](C c) {
    return c.now_.baseline != nullptr && !c.now_.rounded_twice && !c.now_.misread && c.JudgesAll();
  };
  static constexpr auto kOdd = [](C c) { return kLooksEverywhere(c) && !c.now_.odd.empty(); };
  static constexpr auto kDoubtsErrors = [](C c) { return c.now_.by_errors.has_value(); };
  static constexpr auto kErring = [](C c) { return c.now_.erring.has_value(); };
  static constexpr auto kErringSteps = [](C c) {
    return c.now_.erring.has_value() && c.shape_.has_steps && c.now_.erring->enough;
  };
  static constexpr auto kRows = [](C c) { return c.now_.rows != nullptr; };
  static constexpr std::array kRules = {
      Rule{.name = "parts-joined-wider",
           .when = [](C c) { return c.Searches() && c.CanBeJoinedWider(); },
           .apply = &Classifier::TryJoinedWider,
           .place = "First: what it adds is held against all elements by the next but one.",
           .numbers = "kFewTerms",
           .test = "Likelihood.LanesThatAreJoinedInFloat64AreNotSaidToBeJoinedInFloat32"},
      Rule{.name = "units-by-an-element",
           .when = [](C c) { return !c.HardOnly(); },
           .apply = &Classifier::KeepOrderWitnesses,
           .place = "While the likely ones are those of the ranking: it shows why others are not.",
           .numbers = "kFirstWitnesses kMostExclusions",
           .test = "Outcome.AnElementThatNoOrderOfABlockUnitGivesIsItsWitness"},
      Rule{.name = "all-elements",
           .when = Always,
           .apply = &Classifier::TryRest,
           .place = "Before any rule asks what is likely: a model that some element excludes is not.",
           .numbers = "kRestTerms",
           .test = "FunctionsInFloat32.HonestStepsAreFloat32AndNoMore"},
      // Also where to exclude is all that is asked: of what the bounds leave none may be told beside a rounding that no bank lists.
      Rule{.name = "rounded-before-the-output",
           .when = [](C c) { return (c.Searches() || c.HardOnly()) && c.AsksBitsBeforeStore(); },
           .apply = &Classifier::TryBitsBeforeStore,
           .place = "Before the doubts: it finds bits for what they would take by its errors.",
           .numbers = "kByChance kManyWidths",
           .test = "Search.SumsAreNotSeenBehindARoundingToFewBits"},
      Rule{.name = "products-in-tf32",
           .when =
               [](C c) {
                 return c.Searches() && c.JudgesAll() &&
                        std::ranges::all_of(c.now_.likely, HasProductsInFloat16);
               },
           .apply = &Classifier::TryProductsInTf32,
           .place = "After what may add models with other products, which leave none to doubt.",
           .numbers = "",
           .test = "Ranking.ProductsInElevenBitsMayHaveEitherRange"},
      Rule{.name = "rounded-twice",
           .when = [](C c) { return c.Searches() && c.MayBeDoubted(); },
           .apply = &Classifier::DoubtTwice,
           .place = "First of the doubts: it needs bits and no order.",
           .numbers = "kFaithfulLeast kRoundedTwice",
           .test = "Doubts.ASumThatIsRoundedTwiceIsNoNarrowSum"},
      Rule{.name = "nearer-than-any-order",
           .when = [](C c) { return c.Searches() && c.MayBeDoubted(); },
           .apply = &Classifier::DoubtTooNear,
           .place = "Before a store to either neighbour is tried: what it doubts is no such store.",
           .numbers = "kFaithfulLeast",
           .test = "Doubts.AnOutputToEitherNeighbourErrsLessThanSums"},
      Rule{.name = "output-to-either-neighbour",
           .when =
               [](C c) { return c.Searches() && !c.now_.likely.empty() && c.JudgesAll() && c.IsPlainSum(); },
           .apply = &Classifier::TryFaithful,
           .place = "Before errors alone are doubted: it adds what may explain them.",
           .numbers = "kFewerFarther",
           .test = "Ranking.AnOutputToEitherNeighbourMayErrAsFloat32SumsDo"},
      Rule{.name = "errors-alone",
           .when = [](C c) { return c.Searches() && !c.now_.likely.empty() && c.JudgesAll(); },
           .apply = &Classifier::NoteErrorsAlone,
           .place = "Opens the doubts of errors: the seven below apply where no likely model gives the bits.",
           .numbers = "kAsLarge",
           .test = "Doubts.NarrowSumsInAnOrderOfTheirOwnAreNotNamedByTheSizeOfErrors"},
      Rule{.name = "split-operands-err-as-much",
           .when =
               [](C c) {
                 return kDoubtsErrors(c) && c.now_.by_errors->split && !c.shape_.has_steps &&
                        (!c.now_.by_errors->large || c.shape_.reduction_length <= kFewTerms);
               },
           .apply = &Classifier::DropLikely,
           .place = "Before sums are asked about: those of split operands are to nearest too.",
           .numbers = "kFewTerms",
           .test = "Ranking.FewTermsOfSplitOperandsNameNoSumToNearestByTheirErrors"},
      Rule{.name = "sums-to-nearest-are-spared",
           .when = kDoubtsErrors,
           .apply = &Classifier::SpareSumsToNearest,
           .place = "Before any accusation: where a float32 sum to nearest is likely, none is made.",
           .numbers = "",
           .test = "AsWritten.WhatMayBeWrittenIsNotShown"},
      Rule{.name = "not-to-nearest",
           .when = kDoubtsErrors,
           .apply = &Classifier::DoubtNearest,
           .place = "Before other causes are searched, which would have to explain the output as well.",
           .numbers = "kFaithfulLeast",
           .test = "Doubts.AnOutputToEitherNeighbourStandsBesideSums"},
      Rule{.name = "other-causes",
           .when = kDoubtsErrors,
           .apply = &Classifier::TryOtherCauses,
           .place = "Before sums are accused: another product or operand is as plausible.",
           .numbers = "kSearchElements kMuchLess",
           .test = "Ranking.AnOperandInSixBitsIsNoBfloat16Sum"},
      Rule{.name = "truncating-by-bias-alone",
           .when = [](C c) { return kDoubtsErrors(c) && c.MostBitsOfSums() >= Binary32().precision; },
           .apply = &Classifier::DoubtTruncation,
           .place = "Of what is left; sums of float32's width apart from narrower ones.",
           .numbers = "kBiased",
           .test = "Doubts.TruncatingSumsInAnOrderOfTheirOwnAreSeenByTheirBias"},
      Rule{.name = "narrow-by-size-alone",
           .when = kDoubtsErrors,
           .apply = &Classifier::DoubtNarrowSums,
           .place = "Last of the doubts of errors: nothing else was found for them.",
           .numbers = "kAsLarge",
           .test = "Doubts.NarrowSumsInAnOrderOfTheirOwnAreNotNamedByTheSizeOfErrors"},
      Rule{.name = "steps-inside-rounded",
           .when =
               [](C c) { return c.Searches() && c.shape_.has_steps && c.JudgesAll() && !c.sample_.empty(); },
           .apply = &Classifier::LookInside,
           .place = "After the doubts, whose sentences it takes back where it gives every bit.",
           .numbers = "kLookInsideWork",
           .test = "Likelihood.StepsStoredWhereNobodyIsKnownToDoSoAreNoNarrowSum"},
      Rule{.name = "baseline",
           .when = [](C c) { return !c.HardOnly(); },
           .apply = &Classifier::ChooseBaseline,
           .place = "Once the likely models are settled by bits: what follows measures against one.",
           .numbers = "",
           .test = "FunctionsInFloat32.AConstantOfEightBitsIsReadOffTheResults"},
      Rule{.name = "results-that-err",
           .when =
               [](C c) {
                 return c.now_.baseline != nullptr && !c.now_.rounded_twice && c.JudgesAll() &&
                        c.shape_.reduction_length == 0 && c.sample_.size() >= kLeastRead &&
                        FormatOf(c.observed_.dtype)->precision >= Binary32().precision &&
                        c.result_.max_ulp > kErrsOfLibrary && std::isfinite(c.result_.max_ulp);
               },
           .apply = &Classifier::ChooseErring,
           .place = "Opens the four below, of functions that err by more than a library's do.",
           .numbers = "kErrsOfLibrary kLeastRead kMostRead kEnoughErr",
           .test = "FunctionsInFloat32.AConstantOfEightBitsIsReadOffTheResults"},
      Rule{.name = "operand-in-fewer-bits",
           .when = kErring,
           .apply = &Classifier::DoubtReading,
           .place = "Before steps inside: an operand in fewer bits is one cause for any form of the op.",
           .numbers = "kVanishes kFewestBitsRead",
           .test = "Doubts.AnOperandInTwelveBitsIsNamed"},
      Rule{.name = "step-in-fewer-bits",
           .when = kErringSteps,
           .apply = &Classifier::DoubtStep,
           .place = "Before the errors of a step: bits are better evidence.",
           .numbers = "kGivesErring kFewestBitsKept kMostBitsKept",
           .test = "Doubts.AStepInTwelveBitsIsNamed"},
      Rule{.name = "errors-of-a-step-in-fewer-bits",
           .when = kErringSteps,
           .apply = &Classifier::DoubtErrorsOfStep,
           .place = "Before a factor, which has a free number and explains more by chance.",
           .numbers = "kMostLeftOfStep kFewestBitsKept kMostBitsKept kNoCoincidence kFewestPredicted",
           .test = "Doubts.AStepInTwelveBitsIsNamedWhereOtherLastBitsHideItsOwn"},
      Rule{.name = "step-off-by-a-factor",
           .when = kErringSteps,
           .apply = &Classifier::DoubtFactorOfStep,
           .place = "Last of the four: nothing else explains the errors.",
           .numbers = "kFewestShare kMostOfResult kMostlyOneShare kNoCoincidence kFineDifference",
           .test = "FunctionsInFloat32.AConstantOfEightBitsIsReadOffTheResults"},
      Rule{.name = "every-element",
           .when = kLooksEverywhere,
           .apply = &Classifier::LookEverywhere,
           .place = "After what explains all results: single elements are outliers of what is left.",
           .numbers = "",
           .test = "SignificantBits.AreCountedInAnOpWithStepsInside"},
      Rule{.name = "significant-bits",
           .when = kLooksEverywhere,
           .apply = &Classifier::CountBits,
           .place = "Before outliers are reported: results that all lack bits are wrong everywhere.",
           .numbers = "kNoAccident kFewerBits kNoLastBits kChanceBits kFarFewerBits",
           .test = "SignificantBits.AreCountedInAnOpWithStepsInside"},
      Rule{.name = "outliers-of-another-model",
           .when = kOdd,
           .apply = &Classifier::ExplainOdd,
           .place = "Before outliers are reported: another likely model may have none.",
           .numbers = "",
           .test = "Causes.ElementsThatDifferTellFormsThatASampleDoesNot"},
      Rule{.name = "outliers",
           .when = kLooksEverywhere,
           .apply = &Classifier::ReportOdd,
           .place = "Ends the look at every element.",
           .numbers = "kLeastOfPlace kMostFurthest",
           .test = "Outcome.ElementsOutsideEveryBoundAreReportedWithTheirPlace"},
      Rule{.name = "errors-of-rows",
           .when =
               [](C c) {
                 return c.Searches() && kLooksEverywhere(c) && c.now_.odd.empty() && c.result_.says.empty() &&
                        c.shape_.has_steps && c.shape_.reduction_length >= 2 && !c.shape_.line_cuts.empty() &&
                        FormatOf(c.observed_.dtype) == &Binary32();
               },
           .apply = &Classifier::MeasureRows,
           .place = "Opens the five below; after outliers, which would count as their row's.",
           .numbers =
               "kMostDirections kOtherDirection kMovesNothing kFewestRows kMostRows kFewestOfRow kMostOfRow "
               "kMostLookedInRows kMostTermsOfRows",
           .test = "LinesOfAnOp.ExponentialsInFewBitsAreToldByTheirErrors"},
      Rule{.name = "rows-biased",
           .when = kRows,
           .apply = &Classifier::DoubtBiasOfRows,
           .place = "First of the five: a factor biases what the others measure.",
           .numbers = "kUnitsOfLibrary kShareOfBias kNoCoincidence",
           .test = "LinesOfAnOp.AFactorThatAllLinesShareIsNoOrdersDoing"},
      Rule{.name = "rows-of-a-step-in-fewer-bits",
           .when = kRows,
           .apply = &Classifier::DoubtStepInRows,
           .place = "Before sizes: it names the step, and errors of its size are its own.",
           .numbers = "kFewestBitsInRows kMostBitsInRows kUnitsOfOneBit kFewestUnits kNoCoincidence "
                      "kFewestPredicted kNearPredicted kMostlyNear",
           .test = "LinesOfAnOp.ExponentialsInFewBitsAreToldByTheirErrors"},
      Rule{.name = "rows-err-more-than-orders",
           .when = kRows,
           .apply = &Classifier::DoubtSizeOfRows,
           .place = "Before elements: what a row errs by is in each of them.",
           .numbers = "kFewestRows kRoomOfRows kRoomOfFewRows kUnitsOfLibrary kOneRow kDeviationsOfRow",
           .test = "LinesOfAnOp.RowsThatErrBeyondEveryOrderOfTheirSumsAreReported"},
      Rule{.name = "elements-err-beside-rows",
           .when = [](C c) { return kRows(c) && !c.shape_.has_functions; },
           .apply = &Classifier::DoubtElementsOfRows,
           .place = "Before single elements: the root mean square of all counts them too.",
           .numbers = "kFewestRows kUnitsOfLibrary",
           .test = "LinesOfAnOp.ElementsOfANormThatErrBesideTheirRowsAreReported"},
      Rule{.name = "single-elements-of-rows",
           .when = kRows,
           .apply = &Classifier::DoubtLoneElements,
           .place = "Last of the five: none of the others explains it.",
           .numbers = "kTimesOfElement kUnitsOfElement",
           .test = "LinesOfAnOp.SingleElementsThatErrBesideTheirRowsAreReported"},
      Rule{.name = "search-beyond-the-bank",
           .when =
               [](C c) {
                 return c.Searches() && c.now_.baseline != nullptr && !c.now_.rounded_twice &&
                        !c.now_.misread && !c.now_.rows_err && c.now_.likely.empty();
               },
           .apply = &Classifier::SearchBeyond,
           .place = "After every rule that may explain the results from listed models.",
           .numbers = "kErrsNoMore kMostGuardBits kSearchElements kMuchLess kOrdersCompared",
           .test = "Search.ProductsThatAreMissingOrCountedTwiceAreNamed"},
      Rule{
          .name = "perhaps-few-bits",
          .when =
              [](C c) {
                return c.Searches() && c.now_.baseline != nullptr && c.now_.perhaps_bits != 0 &&
                       !c.now_.likely.empty();
              },
          .apply = &Classifier::TryPerhapsBits,
          .place = "After the search, beside whatever is likely: a rounding to as many bits as were counted.",
          .numbers = "",
          .test = "Ranking.AFewResultsInTenBitsMayHaveBeenRoundedToTen"},
      Rule{.name = "fewer-bits-by-errors",
           .when =
               [](C c) {
                 return c.Searches() && c.now_.odd.empty() && c.JudgesAll() && !c.now_.likely.empty() &&
                        c.IsPlainSum();
               },
           .apply = &Classifier::TryBitsByErrors,
           .place = "After the search, which finds them where nothing is likely.",
           .numbers = "kFewestOfOperand kFewestOfProduct kFewResults",
           .test = "Ranking.AnOperandInTwentyOneBitsIsNamedBesideAFloat32Sum"},
      Rule{.name = "ties-away",
           .when =
               [](C c) { return c.Searches() && !c.shape_.has_steps && c.JudgesAll() && !c.sample_.empty(); },
           .apply = &Classifier::TryTiesAway,
           .place = "After every rule that adds rounded operands, to each of which it adds one.",
           .numbers = "kMostTiesAway",
           .test = "Ranking.AnUntestedOrderDoesNotTellWhichWayTiesOfAnOperandGo"},
      Rule{.name = "orders-by-value-and-other-means",
           .when =
               [](C c) {
                 const auto as_asked = [&](const PrecisionModel& model) {
                   return c.IsAsAsked(WithExactProducts(model));
                 };
                 return (c.Searches() ? c.now_.likely.empty()
                                      : c.HardOnly() && std::ranges::none_of(c.now_.likely, as_asked)) &&
                        c.JudgesAll() && !c.elements_.empty() && c.shape_.reduction_length >= 2 &&
                        c.OddAreNumbers();
               },
           .apply = &Classifier::TryFurtherOrders,
           .place = "After everything that may explain the results: it takes back what was said of them.",
           .numbers = "kFirstOfFurther",
           .test = "Unlisted.SumsOfSortedTermsAreFloat32"},
      Rule{.name = "guard-bits",
           .when = [](C c) { return c.HardOnly() && c.now_.likely.empty(); },
           .apply = &Classifier::TryGuardBits,
           .place = "After other orders of listed sums, of which one would explain the input.",
           .numbers = "kMostGuardBitsProved",
           .test = "Prove.SumsWithGuardBits"},
      Rule{.name = "nearer-than-narrow-sums",
           .when =
               [](C c) {
                 return c.options_.ordinary && c.JudgesAll() && !c.shape_.has_steps &&
                        c.shape_.reduction_length >= 1;
               },
           .apply = &Classifier::ExcludeTooNear,
           .place = "Once no more models join: it excludes them.",
           .numbers = "kNoAccident kFewestNearest",
           .test = "Prove.CompensatedSumsAreNoUnitsThatRoundToFloat16"},
      Rule{.name = "any-output-rounding",
           .when =
               [](C c) {
                 return c.options_.any_store_of != nullptr && c.JudgesAll() &&
                        (c.shape_.reduction_length >= 1 || c.shape_.has_steps);
               },
           .apply = &Classifier::TryAnyStore,
           .place = "Last of those that add: to what is not excluded, and to nothing that is likely.",
           .numbers = "kNoAccident",
           .test = "Outcome.AnAccumulatorIsNotExcludedBehindAnOutputToEitherNeighbour"},
      Rule{.name = "models",
           .when = Always,
           .apply = &Classifier::ListModels,
           .place = "Last: no rule of this table adds or takes a model after it, and the outcome reads them.",
           .numbers = "",
           .test = "AsWritten.WhatMayBeWrittenIsNotShown"},
  };
};

std::span<const ClassifierRule> Classifier::ConclusionRules() { return ConclusionTable::kRules; }

}  // namespace ulpscope
