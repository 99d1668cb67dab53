// The classifier of one value: what its parts share. Only classif*.cc and rules*.cc include it; everybody else asks classify.h.
//
// A function that is a row of a table (rules.h) has neither arguments nor a result: its precondition stands in the table, and what it
// finds in `now_` (or `ranking_`). Its documentation here states the reason of the rule.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/judge/classify_options.h"
#include "harness/judge/rule.h"
#include "harness/judge/trial.h"
#include "harness/model/oracle.h"

namespace ulpscope {

struct MeasuredLines;

/// Judges one value of one backend. An object is asked once (Run); its members are what the phases hand on.
class Classifier {
 public:
  /// `only`: elements to judge instead of all; null for all.
  Classifier(const CaseOracle& oracle, const std::string& value, const TensorData& observed,
             const ClassifyOptions& options, const std::vector<int64_t>* only = nullptr)
      : oracle_(oracle), value_(value), observed_(observed), options_(options), only_(only) {}

  Classification Run();

  // The tables (rules_ranking.cc, rules_conclusion.cc, rules_outcome.cc)
  using Rule = ClassifierRule;
  static std::span<const Rule> EvidenceRules();
  static std::span<const Rule> RankingRules();
  static std::span<const Rule> ConclusionRules();
  static std::span<const Rule> OutcomeRules();

 private:
  struct EvidenceTable;
  struct RankingTable;
  struct ConclusionTable;
  struct OutcomeTable;
  struct Missing {
    int64_t results = 0;  ///< those that want more bits than `bits`
    int64_t bits = 0;     ///< how many more, in all
  };

  // The course of it (classifier.cc)

  void WalkAll();
  /// Applies the rules. The last one that changed what `models` is the hash of; "" for none.
  std::string_view Walk(std::span<const Rule> rules, const std::function<size_t()>& models);
  /// One op has few models, however long its sums are.
  bool TooMuch() const {
    return options_.most_work > 0 && shape_.cut_points.size() > 1 && spent_ > options_.most_work;
  }
  bool GaveUp() const { return stopped_ || TooMuch(); }
  bool HardOnly() const { return options_.evidence == ClassifyOptions::Evidence::kHard; }
  /// Something beyond the bank is looked for.
  bool Searches() const { return !HardOnly() && options_.search; }
  /// All elements, not those of one place.
  bool JudgesAll() const { return only_ == nullptr; }
  /// A sum of several terms, and nothing but it.
  bool IsPlainSum() const { return !shape_.has_steps && shape_.reduction_length >= 2; }
  /// Results of a plain computation that some model explains, and enough of them to doubt it.
  bool MayBeDoubted() const;
  bool AnySurvived() const;
  Classification NoReference(const std::string& why);
  Classification WrongShape(const std::vector<int64_t>& due);
  /// Of truth values and whole numbers, compared where `settled`.
  Classification WholeNumbers(bool settled);
  Classification NotJudged();
  /// What enclosing `elements` elements costs one model.
  int64_t WorkOf(size_t elements) const;
  int64_t WorkOfOrders(const Hypothesis& hypothesis, size_t elements) const;
  /// At least this: a few elements in some orders for each model that is left.
  int64_t WorkOfLikelihood() const;
  /// From a part of the models, at a sixteenth of what they would all cost: twice too much.
  bool WillBeTooMuch(size_t models);
  /// Errors against the exact values; elements without a finite reference leave the evidence.
  void MeasureErrors();
  /// Nothing in its operands, products and sums is narrower than the result that the program asks for.
  bool IsAsAsked(const PrecisionModel& model) const;
  std::set<PrecisionModel> Survivors() const;

  // Hard evidence (classify_bounds.cc, classify_stores.cc)

  void TryBank();
  /// What a contract names and the bank does not list.
  void TryNamed();
  /// What keeps its subnormals and is not excluded is not suspected of dropping them.
  void TryFlushing();
  /// A zero where the exact value is a number of the format, as flushing leaves it. Narrow formats of a small range leave it too:
  /// both are asked.
  bool AnyVanished() const;
  static void Fall(Trial* trial, Fallen fallen);
  Exclusion ExclusionOf(const Trial& trial) const;
  void TryAll(std::vector<std::unique_ptr<Hypothesis>> hypotheses);
  size_t FirstElements() const;
  /// Few elements before many: those that explain the first ones are held against all. The others too, where that costs
  /// little: what is not excluded leaves a contract open.
  void TryRest();
  /// The first element that the model cannot store. Models that store alike share the answer.
  size_t Unstorable(const Hypothesis& hypothesis);
  /// Looks at elements [first, last).
  void Try(Trial* trial, size_t first, size_t last);
  /// Counts zeros of the wrong sign, notes the first, and gives references that are zero the sign that they have.
  void CheckZeroSigns();
  /// Of a contract that does not name the store: what it asks for with a store that keeps either neighbour joins the models that
  /// are not excluded, but where another model gives all these results and such a store would by no accident.
  void TryAnyStore();
  /// How unlikely it is that a store which keeps either neighbour, the nearer one the likelier, gives these results: in powers of two.
  double BitsOfChosenNeighbours() const;

  // Ranking (classify_likely.cc)

  /// The survivors that explain the bits: an order of theirs gives them all, or their errors are those of an order that
  /// is not simulated.
  std::set<PrecisionModel> Likely();
  /// The elements that orders are simulated on.
  void ChooseSample();
  void WeighAll();
  /// Nobody's functions are ours. Without a sum the enclosures are a few units wide: to lie inside is to fit.
  void FitInside();
  /// What is nearer to the exact values than sums of exact products come is nearer than sums of rounded ones too: that these products
  /// err by about as much as the results do is no explanation. Behind a store of fewer bits the distance is the store's.
  void NoteTooNear();
  /// Which way the last bits of steps inside an op lean is the form's doing as much as the rounding's.
  void LeaveBiasToForms();
  void KeepLikely();
  /// Of one line of a norm all elements share what its sums are off by: they are one observation of how sums are computed.
  void KeepAlikeInRows();
  /// How a sum's errors lie tells its format; whether its products were rounded to that format the bits of one order tell.
  void KeepOtherProducts();
  bool IsExplanation(const Trial& trial) const;
  static bool IsBiasedByForm(const Trial& trial);
  /// What is made of one sum errs with it: as much evidence as there are sums.
  bool Fits(const Trial& trial) const;
  /// Sets the log likelihood of every surviving trial that can matter and returns the best one. Exact matches
  /// first: they are cheap, and where there is one, a rival has to come near it. The others are weighed from
  /// the most promising down.
  double Weigh(std::span<const int64_t> elements, std::span<const double> stored);
  /// The largest share of the sample that an order of one of the likeliest models gives: of those results that the model
  /// narrows down to a few, where they are enough. Of the others another function or order gives other bits as rightly.
  double Reproduced() const;
  double ReproducedBy(const Hypothesis& hypothesis) const;
  /// It was not excluded, and its model is one of those that are told.
  bool IsKept(const Trial& trial) const;
  /// A model less what it says of how products are rounded: what orders and errors of sums say little of.
  static PrecisionModel WithExactProducts(PrecisionModel model) {
    model.prod = {};
    return model;
  }
  /// A model less what it says of the sums and of what elements share (totals, means): what every element is evidence of. And whether it
  /// rounds any step: of what rounds some, the coarsest of these roundings is left out.
  std::pair<PrecisionModel, bool> OnEachElement(PrecisionModel model) const;
  /// How many elements of the sample share a sum; at least 1.
  double SampledOfLine() const;

  // Likely models compared by bits (classify_match.cc, classify_near.cc)

  /// Where one model gives every bit of more elements than the sample has, in one order, a rival each of whose orders misses
  /// many of them is set aside: a sum in float16 gives most of the bits that a float32 one leaves in bfloat16.
  void MatchMore();
  /// Of `elements` those whose result hangs on the order under `trial`, and what is stored of them; all of them where that is not known.
  /// What a model gives in every order no order misses: behind a narrow store nearly every result.
  std::pair<std::vector<int64_t>, std::vector<double>> OpenOf(const Trial& trial,
                                                              const std::vector<int64_t>& elements,
                                                              const std::vector<double>& stored) const;
  /// The sample, and as many elements more as orders can be held against.
  std::pair<std::vector<int64_t>, std::vector<double>> AffordableElements() const;
  /// Where one set of roundings inside an op gives nearly every bit of a 16-bit result, those that give fewer are set aside.
  void MatchSteps();
  void MatchStepsEverywhere(const std::vector<const Trial*>& rivals, int64_t work,
                            const std::pair<PrecisionModel, bool>& nearest);
  /// Of random numbers narrow sums leave many results other than the nearest to the exact ones, in whatever order: where hardly any is, it
  /// was none of them. Their bounds hold that too, and are never so near by accident.
  void ExcludeTooNear();
  /// How unlikely it is, at least, that `hypothesis` leaves so few results, `off`, other than the `nearest` to the exact ones: in powers of
  /// two.
  double BitsTooNear(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                     std::span<const double> nearest, size_t off, std::string* why) const;
  /// A unit of another size is set aside by orders, not by a bound: the element that none of them gives says so.
  void KeepOrderWitnesses();
  /// The first of `elements` that none of the orders gives. The very first ones tell mostly.
  void KeepOrderWitness(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                        std::span<const double> stored);
  bool OrderWitness(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                    std::span<const double> stored, size_t from);

  // Models that no bank lists (classify_proposed.cc)

  /// Those that give every bit of the sample in some order, and that no element excludes: they join the trials.
  std::set<PrecisionModel> KeepMatching(std::vector<std::unique_ptr<Hypothesis>> hypotheses);
  /// Those too that give fewer than so many `misses` of these elements otherwise.
  std::set<PrecisionModel> KeepMatching(std::vector<std::unique_ptr<Hypothesis>> hypotheses,
                                        std::span<const int64_t> elements, std::span<const double> stored,
                                        size_t misses);
  /// Those whose bounds hold the results.
  std::set<PrecisionModel> KeepHolding(std::span<const Proposal> proposals);
  /// Those of the proposals that explain the bits. An accumulator of so many bits has to give them in some order: of
  /// errors alone there are many causes.
  std::set<PrecisionModel> Proposed(std::span<const Proposal> proposals);
  /// What the trials from `before` on leave likely, of `all` that is.
  std::set<PrecisionModel> LikelyOfProposed(size_t before, const std::set<PrecisionModel>& all) const;
  void DropMissedByOrders(size_t before, std::set<PrecisionModel>* likely) const;
  /// Float32 in an order that was tried gives the sample: an unlisted order says nothing against what it does not give.
  bool IsOrderKnown() const;
  /// To as many bits as the results have, right before its store.
  bool IsRoundedToBits(const PrecisionModel& model) const;
  /// Float32 parts that are added in as many bits as the results have are as likely.
  bool MayBeJoined();
  /// What errors are measured against: the best explanation; without one, the program as it stands, in float32.
  const Trial* Natural(const std::set<PrecisionModel>& likely) const;
  void ChooseBaseline();
  /// The program as it is written, in float32 throughout: null where that was not tried; one that is not excluded before one that is.
  const Trial* PlainFloat32() const;
  /// As many misses as make none of them in an order of its own as unlikely as what likelihood sets aside.
  size_t MostMisses() const;

  // Roundings before the output, and outputs not to nearest (classify_output_rounding.cc)

  /// Sums that cut their terms or are joined of parts give every bit, and no plain sum does: a sum that was rounded to some bits before
  /// its store may too.
  void TryBitsBeforeStore();
  bool AsksBitsBeforeStore() const;
  bool IsAuxiliaryInFloat32() const;
  std::vector<Proposal> BitsBeforeStore() const;
  struct GivenBits {
    bool by_listed = false;  ///< every result, by what the bank lists
    size_t handful = 0;      ///< of results that float32 misses
  };
  /// Of `found` those that miss no more of these elements than chance has it are left.
  GivenBits DropMissing(std::span<const int64_t> elements, std::span<const double> stored,
                        std::set<PrecisionModel>* found) const;
  void DoubtManyWidths(size_t handful, size_t elements);
  /// Products in 11 bits of float32's range beside those in float16, which no bank lists and few inputs tell apart. Where other products
  /// are as likely, none is said to be rounded.
  void TryProductsInTf32();
  static bool HasProductsInFloat16(const PrecisionModel& model);
  /// A narrow sum that is then rounded to fewer bits still leaves what a wide one leaves that is rounded twice.
  void DoubtTwice();
  /// A wider sum whose store keeps either neighbour errs no more than a float32 sum whose errors stay within one unit: where no
  /// order gives the bits, nothing tells the two apart.
  void TryFaithful();

  // Doubt (classify_doubt.cc)
  //
  // A likelihood ranks models, it accuses none. Where no simulated order gives the bits, and all that explains them is a truncating or a
  // narrow sum in an order of its own, other causes are as plausible: narrower operands, a store that is not to nearest. What the search
  // finds for them takes its place.

  /// Errors that are smaller than a model's in every order are not that model's: a wider sum whose store is not to nearest.
  void DoubtTooNear();
  void NoteErrorsAlone();
  void DropLikely();
  void SpareSumsToNearest();
  void DoubtNearest();
  void TryOtherCauses();
  void DoubtTruncation();
  void DoubtNarrowSums();
  int MostBitsOfSums() const;
  /// Rounded to a neighbour of the exact sum, all of them, and some not to the nearest.
  bool IsFaithful(const Hypothesis& model) const;
  /// More of the results err to one side of the exact ones, seen from zero, than chance has it.
  bool Lean() const;

  // Beside the likely ones (classify_beside.cc)

  /// Read as a sum of several narrower numbers.
  static bool IsSplit(const std::pair<const std::string, RoundSpec>& in) { return in.second.pieces > 1; }
  /// Errors tell that a sum is one of float32's, not that its parts were joined in float32 too.
  void TryJoinedWider();
  bool CanBeJoinedWider() const;
  /// Errors larger than those of float32 in any order tried, or as large as those of split operands, and no order that gives the bits: what
  /// reads an operand or multiplies in fewer bits, and errs so too, stands beside.
  void TryBitsByErrors();
  std::vector<Proposal> ReadingsInFewerBits() const;
  void JoinAsFewBits(std::set<PrecisionModel>* found);
  /// Errors tell that operands were rounded to nearest, not which way the few went that lie half-way.
  void TryTiesAway();
  /// Where nothing explains the results: float32 sums in orders that hang on the terms, and other forms of a mean, that give all of them.
  void TryFurtherOrders();
  /// Sums in 25 to `most` bits, to nearest, cut, and with ties away.
  static std::vector<Proposal> SumsWithGuardBits(int most);
  /// Of a further input that no sum of the bank gives: sums in 25 to 34 bits, which none lists, join the trials.
  void TryGuardBits();

  // Steps and operands in fewer bits (classify_steps.cc)

  /// What is likely of an op with steps inside it gives the bits in no order, or a narrow sum does. Where sums in float32 and
  /// some of the steps rounded give all of them, that is the explanation, or another one.
  void LookInside();
  /// Results that err more than rounding does, where a likely model is as the program asks, or there is none.
  void ChooseErring();
  void Misread(std::string found);
  /// A library's function may err by several units; but where the same function of an operand rounded to fewer bits leaves
  /// hardly an error, it is the reading that errs.
  void DoubtReading();
  void DoubtStep();
  void DoubtErrorsOfStep();
  void DoubtFactorOfStep();
  /// How many results of the sample are these, rounded once.
  int64_t GivenBy(const std::vector<Reference>& exact) const;
  /// Whether these exact values, rounded once, are nearly every one of the results.
  bool GivesNearlyEvery(const std::vector<Reference>& exact, std::span<const double> stored) const;
  /// The steps as they are asked for, each in float32, give half of these results or more.
  bool GivenAsAsked(std::span<const int64_t> elements, std::span<const double> stored) const;
  /// The step inside the op that, kept in fewer bits, gives nearly all of these results bit by bit; else nothing.
  std::string StepKept(std::span<const int64_t> elements, std::span<const double> stored) const;
  /// What a step is called inside its op: "exp" of "y.exp".
  static std::string InsideName(const std::string& step) { return step.substr(step.rfind('.') + 1); }
  /// "as if exp inside were rounded to 20 significant bits", of a model that rounds that one step.
  static std::string AsIfRounded(const PrecisionModel& kept, int bits);
  /// The step inside the op that, kept in fewer bits, errs as the results do, in whatever form the others are computed.
  std::string StepsErrors() const;
  /// The step inside the op that is off by one share of itself in every element: a constant of few digits.
  std::string StepsFactor() const;

  // The size of errors (classify_errors.cc)

  /// Root mean square or largest errors in those of float32 throughout, in any order tried, and which: "rms". 0 where they are no larger
  /// than a library's functions make them, or float32 is not what fits.
  std::pair<double, std::string> Beyond() const;
  /// Tells that, and where there is no sum doubts what no library's function errs by.
  void MeasureBeyond();
  struct Nearness {
    double ratio = 0;  ///< 0 where it is more than kNearFloat32
    bool of_forms = false, of_sums = false;
  };
  /// The errors in those of `plain` in the orders tried, and of a mean in those of its other forms where they are larger: of root mean
  /// squares and of largest ones the larger ratio.
  Nearness NearnessToFloat32(const Hypothesis& plain) const;
  /// Says that of a further input that no float32 sum gives, and of results that nothing explains where nothing else is said of them.
  void MeasureNearness();
  bool IsOffByErrorsAlone() const;
  /// Every odd element has a finite exact value: none is a NaN or an infinity gone, or come.
  bool OddAreNumbers() const;
  /// How far any order of the plainest model that is left may lie from the exact value (Classification::any_order).
  void MeasureOrders();
  /// Of the errors of `stored` against `references`, in units in the last place: a few that cancellation
  /// has blown up do not count.
  double MedianError(std::span<const Reference> references, std::span<const double> stored) const;
  double ErrorInUlps(const Reference& reference, double stored) const;
  /// How far `stored` lies from the exact value, both words of it.
  static double DistanceFrom(const Reference& reference, double stored) {
    return std::fabs((stored - reference.hi) - reference.lo);
  }

  // Rows of elements that share sums (classify_lines.cc)

  void MeasureRows();
  void RowsErr(Remark shown);
  void DoubtBiasOfRows();
  void DoubtStepInRows();
  void DoubtSizeOfRows();
  void DoubtElementsOfRows();
  void DoubtLoneElements();
  /// The step inside the op that, kept in fewer bits, gives these errors; else nothing.
  std::string StepKeptInLines(const MeasuredLines& measured) const;
  /// Lines and their elements beside the orders of float32 sums; null where there is no line to measure.
  std::shared_ptr<const MeasuredLines> MeasureLines() const;
  /// Elements that are looked at, each with its line.
  std::vector<std::pair<int64_t, int64_t>> SomeOfEveryLine() const;

  // Every element (classify_whole.cc)

  /// Every element, as far as that is affordable: gross errors and special values. A sample has no tails, and no single element.
  void LookEverywhere();
  /// Another model may explain what the first one does not.
  void ExplainOdd();
  void ReportOdd();
  /// An element that `model` does not explain, with `reach` of its worst-case bound.
  bool IsOdd(const Hypothesis& model, double reach, int64_t element, double stored,
             const Interval& sum) const;
  std::vector<int64_t> OddOf(const Hypothesis& model, double reach,
                             const std::vector<int64_t>& elements) const;
  bool IsOddSpecial(const Hypothesis& model, int64_t element, double stored, Interval sum) const;
  /// The share of its worst-case bound that a model's simulated orders use, with room for orders that are not simulated.
  double Reach(const Hypothesis& model) const;
  /// Some order of `natural` gives every sampled element that is not odd.
  bool AreOthersGiven(const Hypothesis& natural, const std::vector<int64_t>& odd) const;
  /// Says where the odd elements are, and how the parts were computed when each shares a model.
  void SayWhere(const Hypothesis& natural, const std::vector<int64_t>& looked,
                const std::vector<int64_t>& odd);
  /// "3, 7": of these elements the one furthest from its exact value, in units in the last place.
  std::string FurthestOf(const std::vector<int64_t>& elements) const;

  // Significant bits (classify_bits.cc)

  /// Each result that wants more bits than any has would have had them with even odds, bit by bit.
  void CountBits();
  struct BitsInUse {
    int bits = 0;
    int64_t with_last = 0,
            numbers = 0;  ///< results whose last bit, of those that any has, is set; all results
  };
  /// Nothing where results use all bits of their format, or none.
  std::optional<BitsInUse> CountBitsInUse() const;
  void NotePerhapsBits(int bits);
  void DropByBounds(int bits);
  void DropByOrders(int bits, int64_t enough);
  /// The exact values, rounded once, have more bits by no accident.
  bool WantsMoreBits(int bits) const;
  /// What is left when wider sums have gone is no explanation by that: narrow sums whose errors are none too large, and none of
  /// whose orders gives the bits.
  void EraseGuesses();
  /// What the centre of each enclosure wants, as far as one rounding of the whole sum allows.
  Missing MissingByBounds(const Hypothesis& model, const std::vector<int64_t>& looked, int bits) const;
  /// The same from the order of the model that wants fewest, in the sample, for as many results as `looked`.
  int64_t MissingByOrders(const Hypothesis& model, int64_t looked, int bits) const;
  bool StoresIn(const PrecisionModel& model, int bits) const;
  /// Beside models that leave few results so few bits by chance, one rounding to so many.
  void TryPerhapsBits();

  // Search (classify_search.cc, classify_floors.cc)

  /// Nothing of the bank explains the value: what the numbers do say, and models that the search proposes.
  std::set<PrecisionModel> Search(const Trial& natural);
  void SearchBeyond();
  /// Another product than the program's, or narrower operands. On values that are not wrong in a place of their own.
  void Explain(const Hypothesis& model, std::vector<Proposal>* proposals);
  /// How few bits each facet might keep without that one saw it here: a rounding to so many bits or more would leave
  /// these results as likely as they are. By bisection, since fewer bits are easier to see.
  void MeasureFloors();
  using Propose = std::function<std::vector<Proposal>(int bits)>;
  const PrecisionModel* PlainestOfModels() const;
  /// One of the proposals may have given these results: by its bits, or by errors no less likely than `least`.
  bool MayBeOneOf(const std::vector<Proposal>& proposals, double least, bool bits_alone);
  int FloorOf(const Propose& propose, double least);

  // The outcome (classify_outcome.cc)

  void ListModels();
  void SettleFit();
  void NameNoModel();
  void NameKind();
  void MeasureReproduced();
  void LabelValue();
  /// Out of a format's range goes what is out of another's: of infinities and NaNs alone no format can be told.
  void DoubtSpecials();
  void SayWhatIsGone();
  /// Zero where every exact result is subnormal: any narrow format gives that, and so does what drops subnormals. Zero where it is not:
  /// any format whose range ends above the operands.
  void DoubtZeros();
  /// Of steps inside an op another algebraic form errs otherwise. Where what is likely gives few of the bits, likelihood
  /// accuses nobody while what the program asks for is not excluded, and no sum ever.
  void DoubtForms();
  static int Differences(const PrecisionModel& a, const PrecisionModel& b);
  /// One witness for each fallen neighbour of the surviving set: the models that differ from a survivor in
  /// one facet. With no survivor, for the models that explained the most elements.
  void KeepExclusions();

  const CaseOracle& oracle_;
  const std::string& value_;
  const TensorData& observed_;
  const ClassifyOptions& options_;
  ValueShape shape_;
  Classification result_;
  std::vector<int64_t> elements_;
  std::vector<double> stored_;
  std::vector<Reference> references_;
  std::vector<Trial> trials_;
  std::map<std::string, size_t>
      unstorable_;                ///< by how models store: the first element that such a one cannot
  std::vector<size_t> distinct_;  ///< the first element of each stored value: 16 bits repeat themselves
  bool all_points_ = true;
  const std::vector<int64_t>* only_ = nullptr;
  std::vector<int64_t> sample_;  ///< of elements_: those that orders are simulated on
  std::vector<double> sample_stored_;
  bool stopped_ = false;  ///< by what all models would cost
  int64_t spent_ = 0;     ///< terms that enclosing the first elements has cost
  ModelRanking ranking_;
  Conclusion now_;
};

}  // namespace ulpscope
