// The judge of steps: declarations that its parts share. Only local*.cc include it; everything else includes local.h.
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

/// Judges the steps of one instrumented program on one backend, once per object; members hold earlier steps' findings.
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
  void TellForms(std::map<std::string, Classification>* judged);

 private:
  /// A use: the step that reads, and the operand's name in it.
  using Use = std::pair<size_t, std::string>;
  using Uses = std::set<Use>;

  struct Explanation {
    Uses unrounded;
    Classification classification;
    bool plain = false;                               ///< nothing is narrower than the program requests
    std::map<std::string, std::string> changed = {};  ///< operands read in another format, or flushed
    std::set<std::string> open = {};  ///< operands that give the same bits unrounded and as stored
    bool few = false;                 ///< open because there are too few results to decide
    bool of_narrow_sums = false;      ///< operands are unrounded results of narrow sums
    bool narrow_number = false;       ///< plain except for a Python number rounded to 16 bits

    /// A kernel that computes in float32 rounds no number to 16 bits: an equally good longer chain is preferred.
    bool IsOdd() const { return narrow_number && !unrounded.empty(); }
  };

  /// A change made to an operand before it is read.
  struct Change {
    const FloatFormat* format = nullptr;
    bool flush = false;                   ///< subnormals count as zero
    bool zero = false;                    ///< everything does
    const TensorData* instead = nullptr;  ///< other numbers of the same shape
  };
  using Changes = std::map<std::string, Change>;

  /// 16-bit operands as float32 copies, to which `changes` points: the steps of a form that reads them are in float32.
  struct Widened {
    std::map<std::string, TensorData> copies = {};
    Changes changes = {};
  };

  static constexpr const char* kScalar = "scalar.";
  static constexpr const char* kFlushed = "flushed";
  /// The terms gathered to judge a step together with steps before it, and the fewest elements looked at.
  static constexpr int64_t kGrownTerms = int64_t{1} << 21, kFewestGrown = 256;
  /// The work limit for one such set of steps (ClassifyOptions::most_work): norms and softmaxes multiply the roundings.
  static constexpr int64_t kGrownWork = int64_t{1} << 27;

  /// With more operands than this, only single ones and all together are tried unrounded.
  static constexpr size_t kMostCombined = 3;
  static constexpr size_t kMostKept =
      4;  ///< chosen: explanations kept of one step; no test of its neighbours
  /// With fewer distinct numbers, chance decides: two ways to round differ in half of the results or less.
  static constexpr size_t kFewNumbers = 16;
  /// Some hundred orders and accumulators are tried; two differ in half of the results or more: once in some millions.
  static constexpr size_t kSomeNumbers = 32;
  /// For an unrounded operand and a narrow step: if both are free, chance can reproduce fewer than this many.
  static constexpr size_t kManyNumbers = 64;

  struct Piece {
    Case program;
    std::map<std::string, TensorData> inputs;
    std::set<std::string> unrounded;
  };

  /// How the producer of an unrounded operand read its own operands. A kernel that keeps its results often stores its
  /// sums: kUpToSums takes sums as stored; kFromSums takes sums unrounded and their terms as stored.
  enum class Before { kAsExplained, kStored, kUpToSums, kFromSums, kUnrounded };

  bool IsArrangement(size_t i) const { return program_.IsArrangement(i); }
  std::optional<size_t> ComputedBy(const std::string& name) const { return program_.ComputedBy(name); }
  /// True for sums, or steps inside the op: the accumulator is the step's own.
  bool HasFormat(size_t last) const { return sums_.contains(last) || has_steps_.contains(last); }

  // The main steps of judging (local.cc)

  std::vector<std::vector<Step>> FormsOf(size_t i) const;

  /// The form as a formula; "" if it is unreadable, or does not give every one of many results.
  std::string NameOfForm(size_t last, const std::vector<Step>& form, const Changes& changes);
  /// True if one way to compute the subprogram as expected gives all of these results.
  bool GivenByOne(size_t last, const std::optional<Piece>& piece, const std::vector<int64_t>& elements);
  void TellForm(size_t last, const std::vector<int64_t>& elements, Classification* result);

  /// The operand of `last` that a step without a reference gave; empty if there is none.
  std::string GivenOperand(size_t last) const;

  /// For unexplained results of `last`: a compiler may have read `operand` before its rounding, with an unknown value.
  Classification NotKnown(size_t last, const std::string& operand);

  /// For a step with too many models: the class as a conforming kernel, if that reproduces nearly all results.
  std::optional<Classification> Honest(size_t last);

  std::optional<Classification> Judge(size_t last);
  bool CastsDown(size_t last) const;
  /// Adds, next to narrow sums read unrounded, operands in another format that reproduce as many of the results.
  void JoinOtherFormats(size_t last, std::vector<Explanation>* found);
  /// Drops explanations that reproduce no more than the stored operands do, or that may match by chance.
  void DropUnlikely(size_t last, const Classification& stored, std::vector<Explanation>* found) const;

  /// Explanations of the results of `last` from its operands as stored or before their rounding, the best first.
  std::vector<Explanation> AsStoredOrBefore(size_t last, const Classification& stored,
                                            const std::vector<std::string>& operands);

  /// If there are none: explanations from operands in other formats, by sums in narrow ones, with subnormals dropped.
  std::vector<Explanation> Otherwise(size_t last, const Classification& stored,
                                     const std::vector<std::string>& operands);

  /// Every model rounds an operand to 16 bits or less, and sums in as few: two free choices reproduce a few by chance.
  static bool RoundsTwice(const Classification& found);

  /// The classification if nothing explains the results; `stored`: the one from operands as stored.
  Classification Unexplained(size_t last, Classification stored);

  /// Records how `last` read its operands, for steps that read its results unrounded.
  void NoteReads(size_t last, const Explanation& simplest);

  /// Each use with the words of all explanations.
  void TellReads(size_t last, const std::vector<Explanation>& found, Classification* result) const;

  /// Subprograms with some of the operands unrounded, except those in `tried`. `natural`: with sums in float32 only.
  void Grow(size_t last, const std::vector<std::string>& operands, Before before, bool natural,
            std::set<Uses>* tried, std::vector<Explanation>* found);

  /// Other forms of the step, with unrounded operands: 1 + erf(x) for negative x differs from any rounding of gelu.
  void GrowForms(size_t last, const std::vector<std::string>& operands, std::vector<Explanation>* found);

  /// For a step without a sum that reads narrow sums unrounded: tries their accumulators; every result must follow.
  void GrowNarrow(size_t last, const std::vector<std::string>& operands, std::vector<Explanation>* found);

  /// Records the accumulators of a step whose sums are narrow in every surviving model.
  void NoteNarrow(size_t last, const Classification& judged);

  /// Records the elements in which the results differ from the expected ones, computed from stored operands.
  void ShowWritten(size_t last, Classification* result);

  /// Puts the operands that were not read as stored in front of the label.
  static Classification Said(const std::string& value, Classification classification);

  // Uses (local_uses.cc)

  /// The operands of a step that other steps with a reference computed as floating-point numbers, each once.
  std::vector<std::string> ComputedOperands(size_t i) const;

  /// True if the step reads floating-point results of other steps, which it may not have read as stored.
  bool ReadsComputedNumbers(size_t i) const;

  /// The name under which a use is reported: that of the shown value.
  std::string Shown(const std::string& operand) const;

  /// The same; if two operands show one value, their own names, since they may be read differently.
  std::string NameOfUse(size_t last, const std::string& operand) const;

  /// The uses of `last` in `operands` and, with them, those of their producers.
  Uses With(size_t last, const std::vector<std::string>& operands, Before before) const;

  void AddChain(size_t reader, const std::string& operand, Before before, Uses* uses) const;

  /// True if a sum's result is read unrounded: with every accumulator, such a subprogram explains too much.
  bool SumsBefore(size_t last, const Uses& uses) const;

  static std::vector<std::vector<std::string>> Combinations(const std::vector<std::string>& names);

  std::string NameOf(const Uses& uses) const;

  /// The uses inside a subprogram, and those of its last step.
  std::vector<Use> UsesOf(size_t last, const Uses& uses) const;

  /// Returned in place of a share if there are too many models to test.
  static constexpr double kNotAsked = 2;

  /// The share of some results that the step reproduces bit by bit with these uses unrounded; -1 if unknown.
  double ShareWith(size_t last, const Uses& uses, const std::vector<int64_t>& elements,
                   PieceOptions how = {.unrounded = {}, .as_written = true});

  /// A set of unrounded uses, over several steps, that reproduces nearly all results and more than any plain one; else
  /// empty. The search starts from none, from all, and from all but the results of products, and changes one use at a
  /// time.
  Uses SearchUses(size_t last);
  /// All uses before `last` of values that a step stores; without `through_products`, up to the results of products.
  Uses AllUses(size_t last, bool through_products);
  /// Those of `uses` that `last` reads, directly or through others: a rounded use ends the subprogram.
  Uses Reached(size_t last, const Uses& uses) const;

  // Subprograms (local_piece.cc)

  /// The steps that `last` and the unrounded uses need; other uses read stored tensors. `form`: replaces `last`.
  std::optional<Piece> Cut(size_t last, const Uses& unrounded, const Changes& changes = {},
                           const std::vector<Step>& form = {}) const;

  /// The formats in which a step was found to read its operands.
  const Changes& ChangesOf(size_t i) const;

  bool ReadsInside(size_t i, const std::string& operand, const Uses& unrounded) const;

  /// The backend's own data: a tensor of the case, or another step's result; null for neither.
  const TensorData* DataOf(const std::string& name) const;

  bool AddTensor(const std::string& name, const std::string& as, const Change& change, Piece* piece) const;

  ErrorsOf OwnErrors() const;
  std::optional<Classification> Classify(size_t last, const std::optional<Piece>& piece, bool natural,
                                         const TensorData* observed = nullptr,
                                         std::vector<Proposal> named = {});

  static RoundSpec CoarsestOf(const std::map<std::string, RoundSpec>& cuts);

  bool TakesNumber(size_t i) const;

  const FloatFormat& NarrowestOf(const std::set<std::string>& values, size_t last) const;

  /// Removes roundings that were skipped: `reads` states them, not the models.
  void LeaveOut(const std::set<std::string>& unrounded, const CaseOracle& oracle, size_t last,
                Classification* found) const;

  // Explanations (local_explain.cc)

  /// True if a Python scalar is read unchanged, or in a format that contains the result's.
  static bool IsPlainScalar(const RoundSpec& conversion, const FloatFormat& result);

  /// True if nothing in the model is narrower than the program requests, as in a conforming backend.
  bool IsPlain(const PrecisionModel& model, const std::string& value) const;

  void Keep(size_t last, const Uses& uses, std::string piece, std::optional<Classification> found,
            std::vector<Explanation>* all) const;

  /// The explanations that reproduce as many results as the best one does, up to chance, the plain ones first. A 16-bit
  /// output rounding hides orders and the last bits of functions, so an explanation has to reproduce nearly all 16-bit
  /// results. One that is not plain has to match nearly everywhere: bounds of narrow formats contain much else.
  std::vector<Explanation> Best(size_t last, std::vector<Explanation> all) const;

  /// True if an operand in float32 or wider seems to be read unrounded, but reproduces no more results than the stored
  /// one. Its bounds contain an element that the others do not; only bits are evidence of the operand that was read.
  bool GivesNoMore(size_t last, const Explanation& each, const Classification& stored) const;

  // Open alternatives (local_open.cc)

  /// Results that needless uses are looked for in, and the shares of them that a set of uses gives.
  struct Needless {
    int64_t most;
    std::vector<int64_t> elements = {};
    double written = 0, natural = 0;
  };

  /// Opens the unrounded operands that reproduce no bit more than the stored ones: bounds alone are no evidence.
  void OpenNeedless(size_t last, Explanation* each);

  /// True if `fewer` uses reproduce as many of these results as all unrounded uses.
  bool IsNeedless(size_t last, const Uses& unrounded, const Uses& fewer, Needless* sample);

  /// A sum in a narrow format first rounds each term that it adds; that is no rounding of the operand.
  void LoadInto(Classification* result) const;

  /// For an operand with the bits of float16 and a larger range, most of whose numbers are below float16's range: a
  /// rounding to float16 stays open if its bounds contain the results too.
  void OpenToRange(size_t last, Classification* result);

  /// For a sum in a narrow format: an earlier rounding of an operand to at least as many bits stays open if there are
  /// only a handful of results, or if one of the sum's orders reproduces as many from the operand so rounded.
  void OpenToSum(size_t last, Classification* result);

  /// Different numbers among the results, counted up to `most`.
  static size_t CountNumbers(const TensorData& data, size_t most);

  /// A handful of results may fit any explanation by chance: an operand in a narrower format, another order stay open.
  void JoinFew(size_t last, const Classification& stored, std::vector<Explanation>* found);

  /// Few results may follow from an unrounded operand in full precision as well as from the stored one in a narrower
  /// format, or from a sum in a narrow format as well as from its rounding: the models of both are open.
  void JoinNarrow(size_t last, const std::vector<Explanation>& found, Classification* result) const;

  /// Keeps all these models open.
  void TakeModels(size_t last, const std::set<PrecisionModel>& models, const std::set<PrecisionModel>& proved,
                  Classification* result) const;

  /// Handles a narrow step that is the likeliest explanation but reproduces too few results to be named, while the
  /// requested precision is not excluded and reproduces as many up to chance: both stay open. Rows of a norm share an
  /// error.
  std::optional<Classification> LeaveOpen(size_t last, const Classification& narrow);

  // Other formats (local_formats.cc)

  /// A cast whose results have more bits than its stored operand, and all round to it: it read the unrounded operand.
  void FinerCopy(size_t last, std::vector<Explanation>* found);

  /// Handles a cast that was recomputed from a narrow operand as stored, although the kernel stored the cast of
  /// something wider: the read value is the stored one in the narrow format, with fewer bits and not more.
  void NameCopies(size_t last, Explanation* each) const;

  /// An operand may be out of the range of any format it was read in: if all results are zero, none can be told.
  void SayWhatCountsAsZero(size_t last, Classification* unmodelled);

  /// Handles narrow steps whose bounds contain the results, but which reproduce too few of them.
  static void BecomeUnmodelled(const TensorData& observed, Classification* narrow);

  /// The floating-point operands of a step, tensors of the case among them.
  std::vector<std::string> FloatingOperands(size_t i) const;

  /// Tries some operands in a narrower format if nothing explains the results from the operands as stored or unrounded.
  void InOtherFormats(size_t last, std::vector<Explanation>* found);

  Widened Widen(size_t last) const;

  /// Tries sums in a narrow format with every other step in the format of the results: with a bias, a mean or a norm
  /// around them, and with an operand that was rounded before. Requires that every one of many results follows.
  void InNarrowSums(size_t last, const Classification& stored, std::vector<Explanation>* found);

  /// True if most of the numbers stay in the range of the format: the others cannot distinguish formats.
  static bool LeavesNumbers(const TensorData& data, const FloatFormat& format);

  /// Tries subnormal operands (some or all) as zero, subnormal results as zero, and both.
  void Flushed(size_t last, std::vector<Explanation>* found);

  static bool IsZero(const TensorData& data);

  /// If all results are zero, an operand outside float16's range explains as much as dropped subnormals do.
  void OutOfRange(size_t last, std::vector<Explanation>* found);

  void TryChanged(size_t last, const Changes& changes, const std::map<std::string, std::string>& words,
                  std::vector<Explanation>* found, const TensorData* observed = nullptr);

  static bool HoldsSubnormals(const TensorData& data);

  /// The observed results, with each plain model's own subnormal in place of an observed zero.
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
  std::optional<ValueShape> alone_;            ///< of the judged step, with operands as stored
  std::set<size_t> sums_;                      ///< steps that hold a sum
  std::set<size_t> has_steps_;                 ///< those that compute in steps inside one op
  std::map<size_t, std::vector<Step>> forms_;  ///< steps that were explained as a single step of another op
  std::set<size_t> exact_;                     ///< those that round none of their operands
  std::set<size_t> given_;             ///< those without a reference: their results are used unchanged
  std::map<size_t, Changes> changes_;  ///< operands that a step was found to read in another format
  std::map<size_t, std::set<AccSpec>> narrow_;  ///< accumulators of sums found to be narrow
  std::map<size_t, Uses> explained_;  ///< the unrounded uses by which a step's own results were explained
};

}  // namespace ulpscope
