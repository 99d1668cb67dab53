// The judge of steps: what its parts share. Only local*.cc include it; everybody else asks local.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/judge/open_piece.h"
#include "harness/model/flat_program.h"
#include "harness/model/oracle.h"
#include "harness/num/float_format.h"

namespace ulpscope {

/// Judges the steps of one opened program on one backend. An object is asked once (Run); its members are what was found of the steps before.
class StepJudge {
 public:
  StepJudge(const Case& opened, const std::map<std::string, TensorData>& inputs,
            const std::map<std::string, TensorData>& values, const OpenPiece& open, OracleCounts* counts,
            const LookedAt& looked_at = {})
      : case_(opened),
        inputs_(inputs),
        values_(values),
        open_(open),
        counts_(*counts),
        program_(opened.program),
        looked_at_(looked_at) {}

  std::map<std::string, Classification> Run();
  /// See harness/judge/local.h.
  void TellForms(std::map<std::string, Classification>* judged);

 private:
  /// A use: the step that reads, and the operand's name in it.
  using Use = std::pair<size_t, std::string>;
  using Uses = std::set<Use>;

  struct Explanation {
    Uses unrounded;
    Classification classification;
    bool plain = false;                               ///< nothing is narrower than the program asks for
    std::map<std::string, std::string> changed = {};  ///< operands read in another format, or flushed
    std::set<std::string> open = {};  ///< operands that give the same bits unrounded and as they are stored
    bool few = false;                 ///< open because there are few results to tell by
    bool of_narrow_sums = false;      ///< operands are what narrow sums gave before they were rounded
    bool narrow_number = false;       ///< plain where a Python number is rounded to 16 bits alone

    /// A kernel that keeps what it computes in float32 rounds no number to 16 bits: where another one of a longer chain is as good,
    /// that one is meant.
    bool IsOdd() const { return narrow_number && !unrounded.empty(); }
  };

  /// What is done to an operand before it is read.
  struct Change {
    const FloatFormat* format = nullptr;
    bool flush = false;                   ///< subnormals count as zero
    bool zero = false;                    ///< everything does
    const TensorData* instead = nullptr;  ///< other numbers of the same shape
  };
  using Changes = std::map<std::string, Change>;

  /// Operands in 16 bits as copies in float32, to which `changes` points: the steps of a form that reads them are in float32.
  struct Widened {
    std::map<std::string, TensorData> copies = {};
    Changes changes = {};
  };

  static constexpr const char* kScalar = "scalar.";
  static constexpr const char* kFlushed = "flushed";
  /// Terms that are gathered to look at the results of a step together with steps before it, and the least that are looked at.
  static constexpr int64_t kGrownTerms = int64_t{1} << 21, kFewestGrown = 256;
  /// What it may cost to try one such set of steps (ClassifyOptions::most_work): through norms and softmaxes the ways to round multiply.
  static constexpr int64_t kGrownWork = int64_t{1} << 27;

  /// More operands than this are tried unrounded one by one and all together alone.
  static constexpr size_t kMostCombined = 3;
  static constexpr size_t kMostKept =
      4;  ///< chosen: explanations kept of one step; nothing known tests its neighbours
  /// Of fewer different numbers chance gives what it pleases: two ways to round part in half of the results or less.
  static constexpr size_t kFewNumbers = 16;
  /// Some hundred orders and accumulators are tried: two of them part in half of the results or more, and so many as these are given
  /// by chance once in some millions.
  static constexpr size_t kSomeNumbers = 32;
  /// An operand read unrounded, and a narrow step besides: where both are free, fewer than this are given by chance.
  static constexpr size_t kManyNumbers = 64;

  struct Piece {
    Case program;
    std::map<std::string, TensorData> inputs;
    std::set<std::string> unrounded;
  };

  /// How the producer of what is read unrounded read its own operands. A kernel that holds what it computes often stores what it
  /// sums: kUpToSums takes sums as they are stored, kFromSums unrounded and what they add as it is stored.
  enum class Before { kAsExplained, kStored, kUpToSums, kFromSums, kUnrounded };

  bool IsArrangement(size_t i) const { return program_.IsArrangement(i); }
  std::optional<size_t> ComputedBy(const std::string& name) const { return program_.ComputedBy(name); }
  /// Sums, or steps inside the op: an accumulator is that of the step itself.
  bool HasFormat(size_t last) const { return sums_.contains(last) || has_steps_.contains(last); }

  // The course of it (local.cc)

  std::vector<std::vector<Step>> FormsOf(size_t i) const;

  /// The form as a formula; "" where it is none that can be read, or does not give every one of many results.
  std::string NameOfForm(size_t last, const std::vector<Step>& form, const Changes& changes);
  /// Whether one way to compute the piece as it is written gives all of these results.
  bool GivenByOne(size_t last, const std::optional<Piece>& piece, const std::vector<int64_t>& elements);
  void TellForm(size_t last, const std::vector<int64_t>& elements, Classification* result);

  /// The operand of `last` that a step without a reference gave; empty where there is none.
  std::string GivenOperand(size_t last) const;

  /// Nothing explains the results of `last` from what `operand` is stored as: a compiler may have read it before it was rounded,
  /// and what it was then nobody knows.
  Classification NotKnown(size_t last, const std::string& operand);

  /// Of a step with more models than can be gone through in a moment: what an honest kernel computes, where that gives nearly
  /// all of its results. Nothing where it does not.
  std::optional<Classification> Honest(size_t last);

  std::optional<Classification> Judge(size_t last);
  bool CastsDown(size_t last) const;
  /// Beside narrow sums read unrounded: operands in another format that give as many of the results.
  void JoinOtherFormats(size_t last, std::vector<Explanation>* found);
  /// What gives no more than what is stored, or is given by chance.
  void DropUnlikely(size_t last, const Classification& stored, std::vector<Explanation>* found) const;

  /// What gives the results of `last` from its operands as they are stored or before they were rounded, the best first.
  std::vector<Explanation> AsStoredOrBefore(size_t last, const Classification& stored,
                                            const std::vector<std::string>& operands);

  /// Where nothing of that does: from operands in other formats, by sums in narrow ones, with subnormals dropped.
  std::vector<Explanation> Otherwise(size_t last, const Classification& stored,
                                     const std::vector<std::string>& operands);

  /// Every model rounds an operand to 16 bits or less, and sums in as few: of two free choices chance gives a handful of results.
  static bool RoundsTwice(const Classification& found);

  /// What is said where nothing explains the results; `stored`: what was found of them from operands as they are stored.
  Classification Unexplained(size_t last, Classification stored);

  /// How `last` read its operands, for the steps that read its results before they are rounded.
  void NoteReads(size_t last, const Explanation& simplest);

  /// Each use with the words of all explanations.
  void TellReads(size_t last, const std::vector<Explanation>& found, Classification* result) const;

  /// Pieces with some of the operands unrounded, all that were not `tried`. `natural`: with sums in float32 alone.
  void Grow(size_t last, const std::vector<std::string>& operands, Before before, bool natural,
            std::set<Uses>* tried, std::vector<Explanation>* found);

  /// Other forms of the step, with operands unrounded: 1 + erf(x) of a negative x leaves what no rounding of the exact gelu is.
  void GrowForms(size_t last, const std::vector<std::string>& operands, std::vector<Explanation>* found);

  /// A step without a sum that reads what sums in a narrow format give before it was rounded: in the accumulators that were found
  /// for them, and where that gives every result of many.
  void GrowNarrow(size_t last, const std::vector<std::string>& operands, std::vector<Explanation>* found);

  /// The accumulators of a step whose sums are narrow in every model that is left.
  void NoteNarrow(size_t last, const Classification& judged);

  /// Elements that the step gives otherwise where it is computed as it is written, from what is stored.
  void ShowWritten(size_t last, Classification* result);

  /// The label, with what was read otherwise than as it is stored in front.
  static Classification Said(const std::string& value, Classification classification);

  // Uses (local_uses.cc)

  /// The operands of a step that other steps with a reference computed as floating-point numbers, each once.
  std::vector<std::string> ComputedOperands(size_t i) const;

  /// Of results of other steps that have a fraction nobody knows whether they were read as they are stored.
  bool ReadsComputedNumbers(size_t i) const;

  /// The name under which a use is reported: that of the value which is shown.
  std::string Shown(const std::string& operand) const;

  /// The same; of two operands that show one value, their own names: one may be read otherwise than the other.
  std::string NameOfUse(size_t last, const std::string& operand) const;

  /// The uses of `last` in `operands` and, with them, those of their producers.
  Uses With(size_t last, const std::vector<std::string>& operands, Before before) const;

  void AddChain(size_t reader, const std::string& operand, Before before, Uses* uses) const;

  /// A sum whose result is read unrounded: with every accumulator of the bank such a piece explains too much.
  bool SumsBefore(size_t last, const Uses& uses) const;

  static std::vector<std::vector<std::string>> Combinations(const std::vector<std::string>& names);

  std::string NameOf(const Uses& uses) const;

  /// The uses inside a piece, and those of its last step.
  std::vector<Use> UsesOf(size_t last, const Uses& uses) const;

  /// What is said in place of a share where there are too many models to ask.
  static constexpr double kNotAsked = 2;

  /// The share of some results that the step gives bit by bit with these uses unrounded; -1 where it cannot be said.
  double ShareWith(size_t last, const Uses& uses, const std::vector<int64_t>& elements,
                   PieceOptions how = {.unrounded = {}, .as_written = true});

  /// A set of unrounded uses, over several steps, that gives nearly all results and more than any plain one: from what is stored,
  /// from everything unrounded, and from everything but what products give, one use at a time. Empty where none does.
  Uses SearchUses(size_t last);
  /// All uses before `last`, as far as they are stored by a step; without `through_products` up to those that products give.
  Uses AllUses(size_t last, bool through_products);
  /// Those of `uses` that `last` reads, and those that are read for these: what is behind a rounded use is no part of the piece.
  Uses Reached(size_t last, const Uses& uses) const;

  // Pieces (local_piece.cc)

  /// The steps that `last` and the unrounded uses need, on stored tensors where a use is not unrounded. `changes`: to operands
  /// of `last`. `form`: steps in its place.
  std::optional<Piece> Cut(size_t last, const Uses& unrounded, const Changes& changes = {},
                           const std::vector<Step>& form = {}) const;

  /// In which formats a step was found to read its operands.
  const Changes& ChangesOf(size_t i) const;

  bool ReadsInside(size_t i, const std::string& operand, const Uses& unrounded) const;

  /// As the backend had it: a tensor of the case, or what another step gave; null for neither.
  const TensorData* DataOf(const std::string& name) const;

  bool AddTensor(const std::string& name, const std::string& as, const Change& change, Piece* piece) const;

  ErrorsOf OwnErrors() const;
  std::optional<Classification> Classify(size_t last, const std::optional<Piece>& piece, bool natural,
                                         const TensorData* observed = nullptr,
                                         std::vector<Proposal> named = {});

  static RoundSpec CoarsestOf(const std::map<std::string, RoundSpec>& cuts);

  bool TakesNumber(size_t i) const;

  /// The narrowest format among the results of these steps.
  const FloatFormat& NarrowestOf(const std::set<std::string>& values, size_t last) const;

  /// What is read before its rounding is said by `reads`, not by the models.
  void LeaveOut(const std::set<std::string>& unrounded, const CaseOracle& oracle, size_t last,
                Classification* found) const;

  // Explanations (local_explain.cc)

  /// A Python scalar is read as it is, or in a format that holds what the result's own holds.
  static bool IsPlainScalar(const RoundSpec& conversion, const FloatFormat& result);

  /// Nothing in it is narrower than the program asks for: what an honest backend does.
  bool IsPlain(const PrecisionModel& model, const std::string& value) const;

  void Keep(size_t last, const Uses& uses, std::string piece, std::optional<Classification> found,
            std::vector<Explanation>* all) const;

  /// Those that give as many results bit by bit as the best one does, but for chance; the plain ones first. A 16-bit store hides
  /// orders and the last bits of functions: an explanation has to give nearly all of what was stored so. What nothing plain
  /// explains has to be given nearly everywhere: worst-case bounds of narrow formats hold much that is something else.
  std::vector<Explanation> Best(size_t last, std::vector<Explanation> all) const;

  /// An operand in float32 or wider that is said to be read before it was rounded, by results of which that gives no more than what
  /// is stored does: the bounds of the one hold an element that those of the other do not, and bits alone tell what was read.
  bool GivesNoMore(size_t last, const Explanation& each, const Classification& stored) const;

  // What is open (local_open.cc)

  /// Results that needless uses are looked for in, and the shares of them that a set of uses gives.
  struct Needless {
    int64_t most;
    std::vector<int64_t> elements = {};
    double written = 0, natural = 0;
  };

  /// Of operands read before they were rounded those that give no bit more than what is stored: with them the bounds hold an
  /// element that they do not hold without them, and bits alone tell what was read.
  void OpenNeedless(size_t last, Explanation* each);

  /// Of these results `fewer` uses give as many as all that are unrounded.
  bool IsNeedless(size_t last, const Uses& unrounded, const Uses& fewer, Needless* sample);

  /// A sum in a narrow format rounds each term that it adds first: that is no rounding of the operand beside it.
  void LoadInto(Classification* result) const;

  /// An operand in the bits of float16 and in a larger range, where most of its numbers are below that of float16: that they were
  /// rounded to float16 is open where the bounds of that hold the results too.
  void OpenToRange(size_t last, Classification* result);

  /// A sum in a narrow format: that an operand was rounded to as many bits or more before does not show in a handful of results,
  /// nor where one of its orders gives as many of them from the operand so rounded.
  void OpenToSum(size_t last, Classification* result);

  /// Different numbers among the results, counted up to `most`.
  static size_t CountNumbers(const TensorData& data, size_t most);

  /// Of a handful of results chance gives whatever was asked first: what else would give them, an operand in a narrower format or
  /// a sum in one whose order was not tried, is open beside it.
  void JoinFew(size_t last, const Classification& stored, std::vector<Explanation>* found);

  /// Few results may follow from an unrounded operand in full precision, and as well from the stored one in a narrower format, or
  /// from a sum in a narrow format and as well from its rounding: the models of both are open.
  void JoinNarrow(size_t last, const std::vector<Explanation>& found, Classification* result) const;

  /// All these models are open.
  void TakeModels(size_t last, const std::set<PrecisionModel>& models, const std::set<PrecisionModel>& proved,
                  Classification* result) const;

  /// A narrow step is the likeliest, and gives too few of the results to be named; what the program asks for is not excluded, and
  /// gives as many but for chance: both are open. Of one line of a norm all elements share what its sums are off by.
  std::optional<Classification> LeaveOpen(size_t last, const Classification& narrow);

  // Other formats (local_formats.cc)

  /// A cast that gives numbers of more bits than its operand is stored with, each of which rounds to what is stored: it read them
  /// before they were rounded, however they were computed.
  void FinerCopy(size_t last, std::vector<Explanation>* found);

  /// A cast computed anew from a narrow operand as that is stored, where the kernel stored the cast of something wider: what is
  /// read is the stored value in the narrow format, with fewer bits and not more.
  void NameCopies(size_t last, Explanation* each) const;

  /// An operand may be out of the range of whatever format it was read in: of nothing but zeros none can be told.
  void SayWhatCountsAsZero(size_t last, Classification* unmodelled);

  /// Narrow steps whose bounds hold the results, and that give too few of them.
  static void BecomeUnmodelled(const TensorData& observed, Classification* narrow);

  /// The floating-point operands of a step, tensors of the case among them.
  std::vector<std::string> FloatingOperands(size_t i) const;

  /// Nothing explains the results from operands as they are or were: some of them in a narrower format.
  void InOtherFormats(size_t last, std::vector<Explanation>* found);

  Widened Widen(size_t last) const;

  /// Sums in a narrow format, and every other step in the one that results are computed in: with a bias, a mean, a norm around them,
  /// and with an operand that was rounded before. Where that gives every result of many.
  void InNarrowSums(size_t last, const Classification& stored, std::vector<Explanation>* found);

  /// Most of the numbers stay in the range of the format: of those that do not, nothing is left to tell formats apart by.
  static bool LeavesNumbers(const TensorData& data, const FloatFormat& format);

  /// Operands whose subnormal numbers count as zero, some of them or all, results that are zero where they would be subnormal, and
  /// both.
  void Flushed(size_t last, std::vector<Explanation>* found);

  static bool IsZero(const TensorData& data);

  /// Where nothing but zeros is left, an operand that float16 has no number of explains as much as subnormals that are dropped.
  void OutOfRange(size_t last, std::vector<Explanation>* found);

  void TryChanged(size_t last, const Changes& changes, const std::map<std::string, std::string>& words,
                  std::vector<Explanation>* found, const TensorData* observed = nullptr);

  static bool HoldsSubnormals(const TensorData& data);

  /// What was observed, with what each plain model gives put back where there is a zero and the model has a subnormal.
  std::vector<TensorData> Unflushed(size_t last, const Changes& changes) const;

  const Case& case_;
  const std::map<std::string, TensorData>& inputs_;
  const std::map<std::string, TensorData>& values_;
  const OpenPiece& open_;
  OracleCounts& counts_;
  const FlatProgram program_;
  const LookedAt looked_at_;
  const std::vector<FlatStep>& steps_ = program_.steps;
  const std::map<std::string, size_t>& made_by_ = program_.made_by;
  std::optional<ValueShape> alone_;            ///< of the step that is judged, from what is stored
  std::set<size_t> sums_;                      ///< steps that hold a sum
  std::set<size_t> has_steps_;                 ///< those that compute in steps inside one op
  std::map<size_t, std::vector<Step>> forms_;  ///< steps that were explained as a single step of another op
  std::set<size_t> exact_;                     ///< those that round nothing of what they read
  std::set<size_t> given_;             ///< those without a reference: what they gave is taken as it is
  std::map<size_t, Changes> changes_;  ///< operands that a step was found to read in another format
  std::map<size_t, std::set<AccSpec>>
      narrow_;                        ///< sums that were found to be in a narrow format: their accumulators
  std::map<size_t, Uses> explained_;  ///< the unrounded uses by which a step's own results were explained
};

}  // namespace ulpscope
