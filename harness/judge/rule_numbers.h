// The numbers that the classifier's rules use (rules.h names them), each with its origin, which begins with one of three words:
//   derived   follows from a format or from a probability, in the line beside it;
//   measured  by the script or the test named;
//   chosen    between the two cases named, or with nothing known that tests its neighbours.
// tests/mutants scales each of them and runs the tests of the classifier; Limits has tests of theirs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "harness/judge/mutants.h"

namespace ulpscope {

// What judging may cost. These decide how much is looked at, and no verdict where all of it is affordable.

/// chosen: to list a model takes about as long as some thousand terms of a sum; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(int64_t, kTermsOfListing, 2048);
/// chosen: orders and elements that weighing one model looks at, at least; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(int64_t, kOrdersOfWeighing, 16);
ULPSCOPE_RULE_NUMBER(int64_t, kElementsOfWeighing, 4);
/// chosen: what a sixteenth of the models costs tells what all of them do; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(size_t, kPartOfModels, 16);
/// chosen: models between two looks at the cost; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(size_t, kModelsBetweenLooks, 64);
/// chosen: exclusions that one report of a value lists; no rule reads their number.
ULPSCOPE_RULE_NUMBER(size_t, kMostExclusions, 64);
/// chosen: every model is held against so many elements, fewer where sums are long; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(int64_t, kFirstElements, 512);
ULPSCOPE_RULE_NUMBER(int64_t, kFirstTerms, int64_t{1} << 17);
/// chosen: terms that models which are not likely are held against besides; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(int64_t, kRestTerms, int64_t{1} << 24);
/// measured: ci/bench --judging (a 64 x 64 x 64 bfloat16 product in 0.116 s, 0.152 s before): where more than one element in so many
/// depends on the order, which ones is not kept.
ULPSCOPE_RULE_NUMBER(size_t, kOpenShare, 2);
/// chosen: terms of a sample on which every order is simulated, and its fewest elements; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(int64_t, kSampleTerms, 65536);
ULPSCOPE_RULE_NUMBER(int64_t, kFewestOfSample, 16);
/// chosen: products of the elements on which orders that give the whole sample are compared; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(int64_t, kMatchTerms, int64_t{1} << 18);
/// chosen: terms that comparing sets of rounded steps may cost; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(int64_t, kMatchStepsWork, int64_t{1} << 26);
/// chosen: terms that trying sets of rounded steps inside an op may cost: of a layer_norm of 16 rows all 32 sets are tried (Likelihood.
/// StepsStoredWhereNobodyIsKnownToDoSoAreNoNarrowSum); nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(int64_t, kLookInsideWork, int64_t{1} << 20);
/// chosen: terms that measuring errors against float32's may cost; else the sample is measured. Nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(int64_t, kBeyondWork, int64_t{1} << 20);
/// chosen: the same on auxiliary inputs, of which there are few; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(int64_t, kNearnessWork, int64_t{1} << 24);
/// chosen: the likeliest models whose share of the bits is reported; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(size_t, kMostReproducing, 6);
/// chosen: the first elements on which orders of a unit are compared before all of the sample; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(size_t, kFirstWitnesses, 4);
/// chosen: elements of a search beyond the bank: twice as many fail Ranking.AnOperandInSixBitsIsNoBfloat16Sum.
ULPSCOPE_RULE_NUMBER(size_t, kSearchElements, 16);
/// chosen: elements of a search for the fewest bits; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(size_t, kFloorElements, 64);
/// chosen: the first elements on which a further order is tried before all of them; it decides nothing.
ULPSCOPE_RULE_NUMBER(size_t, kFirstOfFurther, 16);
/// chosen: models with ties away from zero that are tried, each at the cost of a look at all elements.
ULPSCOPE_RULE_NUMBER(size_t, kMostTiesAway, 8);
/// chosen: elements whose exact values are computed to find the one furthest off; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(size_t, kMostFurthest, 512);
/// chosen: elements of rows that are looked at, and terms of them; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(int64_t, kMostLookedInRows, int64_t{1} << 14);
ULPSCOPE_RULE_NUMBER(int64_t, kMostTermsOfRows, int64_t{1} << 20);

// Results that are enough to tell by, and chances

/// derived: of results of which half are neighbours of the exact value by chance, 32 all are with odds of 2^-32.
ULPSCOPE_RULE_NUMBER(size_t, kFaithfulLeast, 32);
/// chosen: of so few products the orders that are tried are nearly all that there are; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(int64_t, kFewTerms, 16);
/// derived: some thousand orders of some tens of roundings are 2^16: so many results that each gives in half of the cases are given by
/// one of them by chance.
ULPSCOPE_RULE_NUMBER(size_t, kByChance, 16);
/// chosen: widths of which each gives the sample in some order, so that none of them is an explanation; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(int64_t, kManyWidths, 4);
/// chosen: the share of results that the exact sum rounded twice gives: a float32 sum is not the exact one.
ULPSCOPE_RULE_NUMBER(double, kRoundedTwice, 0.98);
/// derived: standard deviations; fewer results by so many are an accident once in 30,000 values.
ULPSCOPE_RULE_NUMBER(double, kFewerFarther, 4);
/// derived: standard deviations; of as many signs of errors so many differ by chance once in 16,000 values.
ULPSCOPE_RULE_NUMBER(double, kBiased, 4);
/// chosen: errors below this share of those of a model's own sums are not as large as these; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(double, kAsLarge, 0.75);
/// chosen: of fewer infinities and NaNs, and no number, the kind of a format may still be told: between six and twelve
/// (Limits.EightInfinitiesShowThatNoFormatShows).
ULPSCOPE_RULE_NUMBER(int64_t, kFewestSpecials, 8);
/// chosen: powers of two inside the range of the result's format; Limits.ZerosFarInsideTheRangeAreCounted tests its neighbours.
ULPSCOPE_RULE_NUMBER(int, kFarInsideRange, 8);

// Fewer bits

/// chosen: the most bits of sums that auxiliary inputs are tried with; half as many fail Prove.SumsWithGuardBits.
ULPSCOPE_RULE_NUMBER(int, kMostGuardBitsProved, 34);
/// chosen: the same of the case's own data; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(int, kMostGuardBits, 32);
/// chosen: sums with guard bits err by no more than this times float32's errors; between 1 and 2, which a sum in 23 bits errs by.
ULPSCOPE_RULE_NUMBER(double, kErrsNoMore, 1.5);
/// chosen: fewer bits of an operand, or of a product, are found by what the bank lists and by the search. Twice as many fail
/// Ranking.AnOperandInTwentyOneBitsIsNamedBesideAFloat32Sum and Limits.ProductsInTwentyOneBitsStandBesideAFloat32Sum.
ULPSCOPE_RULE_NUMBER(int, kFewestOfOperand, 16);
ULPSCOPE_RULE_NUMBER(int, kFewestOfProduct, 18);
/// chosen: fewer results may err by three times as much as mostly; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(size_t, kFewResults, 16);
/// derived: odds of 2^-48 are met by no value in 10^14.
ULPSCOPE_RULE_NUMBER(int64_t, kNoAccident, 48);
/// derived: odds of 2^-32, of bits that no order tried leaves out.
ULPSCOPE_RULE_NUMBER(int64_t, kFewerBits, 32);
/// derived: half of the results have a last bit of their own: where a sum would leave 16 of them one, 32 are without it, by 2^-32.
ULPSCOPE_RULE_NUMBER(int64_t, kNoLastBits, 16);
/// derived: ClassifyOptions::keep_factor is 10^6, which is 2^20.
ULPSCOPE_RULE_NUMBER(int64_t, kChanceBits, 20);
/// derived: a rounding leaves a result eight bits short of the others once in 256.
ULPSCOPE_RULE_NUMBER(int, kFarFewerBits, 8);
/// chosen: places that stand out are named "only" from so many elements on, and classified by themselves: between six and twelve
/// (Limits.APlaceOfEightElementsIsClassifiedByItself).
ULPSCOPE_RULE_NUMBER(size_t, kLeastOfPlace, 8);
/// chosen: what is left of squared errors beside a common factor; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(double, kMuchLess, 0.25);

// Narrow sums that a result is too near for

/// chosen: units in the last place; an element that a model narrows down to these tells whether it gives the bits.
ULPSCOPE_RULE_NUMBER(double, kNarrowedDown, 2);
/// chosen: so many sums or more show that they are all nearer than a narrow format comes; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(int64_t, kFewestSums, 16);
/// chosen: where every result is due to differ from the nearest, 48 have odds of 2^-48 at best (kNoAccident); twice as many: between
/// 81 and 100 (Limits.AHundredNearestResultsExcludeNarrowSums).
ULPSCOPE_RULE_NUMBER(size_t, kFewestNearest, 96);

// A step or an operand in fewer bits

/// chosen: units in the last place that libraries' functions err by where nothing is wrong with them; twice as many fail
/// FunctionsInFloat32.AConstantOfEightBitsIsReadOffTheResults.
ULPSCOPE_RULE_NUMBER(double, kErrsOfLibrary, 2.5);
/// chosen: the median error falls by this factor where the operand is read in the fewer bits; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(double, kVanishes, 3);
/// chosen: results of the sample: between 18 and 36 (Limits.TwentyFourResultsShowAnOperandInTwelveBits).
ULPSCOPE_RULE_NUMBER(size_t, kLeastRead, 24);
/// chosen: those that are looked at where few err, and those that err and are enough; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(size_t, kMostRead, 64);
ULPSCOPE_RULE_NUMBER(size_t, kEnoughErr, 12);
/// derived: one bit more than bfloat16's 8: the bank rounds operands to these and fewer.
ULPSCOPE_RULE_NUMBER(int, kFewestBitsRead, 9);
/// chosen: the share of results that err which one step in fewer bits gives: between that and all of them lie other forms of the op.
ULPSCOPE_RULE_NUMBER(double, kGivesErring, 0.9);
/// chosen: from one bit more than bfloat16's 8 up; 1 + tanh in float32 leaves 23 bits of tanh, and of a smaller one fewer: 21 is clear
/// of these.
ULPSCOPE_RULE_NUMBER(int, kFewestBitsKept, 9);
ULPSCOPE_RULE_NUMBER(int, kMostBitsKept, 21);
/// chosen: the share of squared errors that a step in fewer bits leaves; other forms of an op leave more.
ULPSCOPE_RULE_NUMBER(double, kMostLeftOfStep, 0.1);
/// derived: products in float32 and constants of it are off by a quarter of this and an eighth.
ULPSCOPE_RULE_NUMBER(double, kFewestShare, 0x1p-22);
/// chosen: where more of a result is wrong its errors are not as large as the step's: 1 + erf leaves nothing of a small one.
ULPSCOPE_RULE_NUMBER(double, kMostOfResult, 0x1p-7);
/// chosen: the share of one half of the results in that of the other, and of results that are looked at; one that cannot be fails
/// FunctionsInFloat32.AConstantOfEightBitsIsReadOffTheResults.
ULPSCOPE_RULE_NUMBER(double, kMostlyOneShare, 0.75);

// Errors against float32's

/// chosen: of fewer results their errors name no size: between 12 and 20 (Limits.ErrorsOfTwiceFloat32sAreStatedOfSixteenResults).
ULPSCOPE_RULE_NUMBER(size_t, kFewestBeyond, 16);
/// chosen: libraries' functions err by less than twice what float32 steps do, and one result by less than three times.
ULPSCOPE_RULE_NUMBER(double, kBeyondRms, 2);
ULPSCOPE_RULE_NUMBER(double, kBeyondLargest, 3);
/// chosen: no library's function errs by ten times what its steps do, and by four units in the last place besides: beside steps that
/// happen to be exact ten times is a multiple of nothing.
ULPSCOPE_RULE_NUMBER(double, kNoFunction, 10);
ULPSCOPE_RULE_NUMBER(double, kNoFunctionUnits, 4);
/// derived: one rounding of the result errs by half a unit in the last place: four times as much is the sum's.
ULPSCOPE_RULE_NUMBER(double, kErrsOfSum, 2);
/// chosen: results that err in some float32 order by more than their rounding, for that to tell of the sums; nothing known tests its
/// neighbours.
ULPSCOPE_RULE_NUMBER(size_t, kFewestOfSums, 16);

// Rows of elements that share sums

/// derived: a row is moved by its total or its mean, and by its inverse deviation.
ULPSCOPE_RULE_NUMBER(size_t, kMostDirections, 2);
/// chosen: what is left of a step's moves beside those of other steps, in a share of them; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(double, kOtherDirection, 1e-3);
/// derived: a step that moves a row by less than a unit in the last place moves nothing that is stored.
ULPSCOPE_RULE_NUMBER(double, kMovesNothing, 1);
/// chosen: units in the last place that roots, reciprocals and quotients of libraries are off by at the most, root mean square.
ULPSCOPE_RULE_NUMBER(double, kUnitsOfLibrary, 1.5);
/// chosen: what these are off by to one side in the mean over rows, of that: a reciprocal of Newton's is never too large.
ULPSCOPE_RULE_NUMBER(double, kShareOfBias, 0.5);
/// derived: two units in the last place of float32, 2^-23, are the largest that one of these is off by.
ULPSCOPE_RULE_NUMBER(double, kOneRow, 0x1p-22);
/// chosen: rows that are looked at, and elements of each; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(size_t, kFewestRows, 8);
ULPSCOPE_RULE_NUMBER(size_t, kMostRows, 64);
ULPSCOPE_RULE_NUMBER(size_t, kFewestOfRow, 4);
ULPSCOPE_RULE_NUMBER(size_t, kMostOfRow, 128);
/// chosen: room for the errors of a row above those of the worst order, and for the chance of few rows (over the root of their number).
ULPSCOPE_RULE_NUMBER(double, kRoomOfRows, 1.25);
ULPSCOPE_RULE_NUMBER(double, kRoomOfFewRows, 3);
/// derived: standard deviations of what elements alone move a row by; of 64 rows one is so far off once in 27,000 values.
ULPSCOPE_RULE_NUMBER(double, kDeviationsOfRow, 5);
/// chosen: forms that no order stands for (2^(x log2 e)) and libraries' functions at their worst err by a few times as much.
ULPSCOPE_RULE_NUMBER(double, kTimesOfElement, 4);
ULPSCOPE_RULE_NUMBER(double, kUnitsOfElement, 16);
/// chosen: from one bit more than bfloat16's 8 to two fewer than float32's 24, which a rounding in float32 is told from.
ULPSCOPE_RULE_NUMBER(int, kFewestBitsInRows, 9);
ULPSCOPE_RULE_NUMBER(int, kMostBitsInRows, 22);
/// derived: a rounding to p bits is off by 2^(24 - p) units times 0.2 to 0.6: the middle of these, and their upper end.
ULPSCOPE_RULE_NUMBER(double, kUnitsOfOneBit, 0.35);
ULPSCOPE_RULE_NUMBER(double, kFewestUnits, 0.6);

// The likelihood of errors (likelihood.h, error_law.h)

/// measured: coverage of known answers fell where the law of more results was not tempered; by which script is not recorded.
ULPSCOPE_RULE_NUMBER(double, kTemperedOutputs, 128);
/// chosen: elements on which a goodness of fit is computed; half as many fail Limits.SixtyFourErrorsOfOneSignAreNoChance.
ULPSCOPE_RULE_NUMBER(size_t, kFitElements, 64);
/// derived: binary64 has 53 bits, which is where a bisection ends; 16 steps at least find the edge of a cell to 2^-16 of its width.
ULPSCOPE_RULE_NUMBER(int, kFewestHalvings, 16);
ULPSCOPE_RULE_NUMBER(int, kMostHalvings, 53);
/// chosen: the edge of a cell is off by so small a part of a typical error; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(double, kPartOfError, 1.0 / 64);
/// chosen: bounds of elements that are alike, in powers of two; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(int, kAlikeBounds, 3);
/// chosen: the last addition alone leaves half a unit of the sum, and a sum by a tree errs by few of these; what is nearer than every
/// order by this factor is no such sum.
ULPSCOPE_RULE_NUMBER(double, kFarNearer, 16);
/// chosen: elements that every order moves, for results that move none of them to tell; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(size_t, kFewestMoved, 16);
/// chosen: fewer than one in so many of the elements that every order moves; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(size_t, kRarelyMoved, 4);
/// chosen: orders of which the nearest one to each is looked for; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(size_t, kOrdersCompared, 24);
/// chosen: elements that rule out most models before any law is learnt; more of them cost more.
ULPSCOPE_RULE_NUMBER(size_t, kMayFit, 4);
/// chosen: root mean square errors of these, over those of the worst order: FitsOrders allows 2 + 6 / sqrt(4) of four elements, which is
/// less.
ULPSCOPE_RULE_NUMBER(double, kRoomOfFirstLook, 6);
/// chosen: what the law of a few elements may lack of the whole, whose widths are learnt from more; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(double, kProbeRoom, 4);
/// chosen: FitsOrders; sequential sums are among the simulated orders, and nothing in use errs more: root mean square and largest
/// errors, over those of the orders, and how much further they are biased.
ULPSCOPE_RULE_NUMBER(double, kWorstRatio, 2);
ULPSCOPE_RULE_NUMBER(double, kWorstLargest, 4);
ULPSCOPE_RULE_NUMBER(double, kWorstLean, 0.2);
/// derived: standard deviations of a mean and of a mean of squares of n errors are 1 / sqrt(n) and less: six and three of them.
ULPSCOPE_RULE_NUMBER(double, kRoomOfFew, 6);
ULPSCOPE_RULE_NUMBER(double, kRoomOfLean, 3);

// Errors that are those of one step (same_errors.h)

/// derived: the natural logarithm of 2.6e10; that many values are judged before one accident.
ULPSCOPE_RULE_NUMBER(double, kNoCoincidence, 24);
/// derived: a finer difference than 2^-44 of a unit in the last place is the rounding of binary64 in what is compared.
ULPSCOPE_RULE_NUMBER(double, kFineDifference, 0x1p44);
/// chosen: an error is near a predicted one within half of itself, and three in four have to be. Half of the first
/// fails SameErrors.ThoseThatWerePredictedBesideALittleOfTheirOwn.
ULPSCOPE_RULE_NUMBER(double, kNearPredicted, 0.5);
ULPSCOPE_RULE_NUMBER(double, kMostlyNear, 0.75);
/// chosen: of fewer errors chance predicts what it pleases; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(size_t, kFewestPredicted, 12);

// The sample of a large tensor (sample.h)

/// chosen: neighbours of one piece, and pieces of a row; nothing known tests its neighbours.
ULPSCOPE_RULE_NUMBER(int64_t, kPieceOfSample, 64);
ULPSCOPE_RULE_NUMBER(int64_t, kPiecesOfSample, 4);

}  // namespace ulpscope
