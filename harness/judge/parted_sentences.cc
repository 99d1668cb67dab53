// Divergences of two groups: names, sizes, bounds, sentences.
#include "harness/judge/parted_sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/casts.h"
#include "harness/judge/sentence.h"
#include "harness/model/flat_program.h"
#include "harness/model/tensor_diff.h"

namespace ulpscope {

Divergence PartedSentences::Named(DivergenceKind kind, const Parted& parted) const {
  Divergence divergence;
  divergence.case_id = case_.id;
  divergence.kind = kind;
  divergence.basis = parted.all_proved ? "proved" : "likely";
  const bool names_values = kind != DivergenceKind::kOutcome && kind != DivergenceKind::kCasts;
  if (names_values) {
    divergence.value = names_[*parted.values.begin()];
    for (const size_t v : parted.values) {
      if (v != *parted.values.begin()) divergence.also.push_back(names_[v]);
    }
  }
  const size_t i = parted.speakers[0], j = parted.speakers[1];
  divergence.backends = {MakeSide(parted.left, i).names, MakeSide(parted.right, j).names};
  if (names_values) divergence.size = SizeOf(parted, divergence.value);
  divergence.bound = BoundOf(kind, parted, divergence.value);
  if (kind == DivergenceKind::kCasts)
    divergence.stages = {StageThatDiffers(*members_[i].result, *members_[j].result)};
  return divergence;
}

DifferenceSize PartedSentences::SizeOf(const Parted& parted, const std::string& value) const {
  DifferenceSize size;
  for (const size_t i : parted.left) {
    for (const size_t j : parted.right) {
      if (Differs(i, j, value)) AddPair(*Difference(i, j, value), &size);
    }
  }
  return size;
}

double PartedSentences::BoundOf(DivergenceKind kind, const Parted& parted, const std::string& value) const {
  if (kind != DivergenceKind::kOrder && kind != DivergenceKind::kBits) return 0;
  double bound = 0;
  for (const size_t i : parted.left) {
    for (const size_t j : parted.right) {
      if (Difference(i, j, value) == nullptr) continue;
      bound =
          std::max(bound, kind == DivergenceKind::kOrder ? OrderBound(i, j, value) : LastBitsBound(i, value));
    }
  }
  return bound;
}

PartedSentences::Parted PartedSentences::WithTheSameCasts(Parted parted) const {
  const std::string stage =
      StageThatDiffers(*members_[parted.speakers[0]].result, *members_[parted.speakers[1]].result);
  const auto keep = [&](std::set<size_t>* side, size_t speaker) {
    const CastKeys keys = CastKeysOf(*members_[speaker].result, stage);
    std::erase_if(*side, [&](size_t member) { return CastKeysOf(*members_[member].result, stage) != keys; });
  };
  keep(&parted.left, parted.speakers[0]);
  keep(&parted.right, parted.speakers[1]);
  return parted;
}

Divergence PartedSentences::Said(DivergenceKind kind, const Parted& all) const {
  const Parted parted = kind == DivergenceKind::kCasts ? WithTheSameCasts(all) : all;
  Divergence divergence = Named(kind, parted);
  if (kind == DivergenceKind::kPrecision)
    Take(PrecisionSentenceOf(divergence, parted), &divergence);
  else
    Tell(MakeSide(parted.left, parted.speakers[0]), MakeSide(parted.right, parted.speakers[1]), parted,
         &divergence);
  return divergence;
}

void PartedSentences::Take(const Sentence& sentence, Divergence* divergence) {
  divergence->sentence = sentence.Text();
  divergence->summary = sentence.summary;
  if (divergence->kind == DivergenceKind::kPrecision) divergence->claim = sentence.claim;
}

Sentence PartedSentences::PrecisionSentenceOf(const Divergence& divergence, const Parted& parted) const {
  const Side a = MakeSide(parted.left, parted.speakers[0]), b = MakeSide(parted.right, parted.speakers[1]);
  return PrecisionSentence(case_, a, b, divergence.value, divergence.basis, Although(a, b, divergence.value));
}

Side PartedSentences::MakeSide(const std::set<size_t>& members, size_t speaker) const {
  Side side{.names = {}, .speaker = members_[speaker]};
  for (const size_t member : members) {
    side.names.push_back(members_[member].result->backend);
    side.all.push_back(members_[member].observation);
    side.results.push_back(members_[member].result);
  }
  return side;
}

void PartedSentences::Tell(const Side& a, const Side& b, const Parted& parted, Divergence* divergence) const {
  const std::string& value = divergence->value;
  const size_t i = parted.speakers[0], j = parted.speakers[1];
  switch (divergence->kind) {
    case DivergenceKind::kOutcome:
      return Take(OutcomeSentence(a, b), divergence);
    case DivergenceKind::kDtype:
      return Take(DtypeSentence(a, b, value, TypeOf(i, j, value), TypeOf(j, i, value)), divergence);
    case DivergenceKind::kCasts: {
      const std::string& stage = divergence->stages.front();
      return Take(CastsSentence(a, b, stage, CastsOf(*members_[i].result, stage),
                                CastsOf(*members_[j].result, stage)),
                  divergence);
    }
    default: {
      if (divergence->kind == DivergenceKind::kSpecial && Difference(i, j, value)->one_finite > 0)
        return Take(RangeSentence(a, b, value, GrowsAlone(value) ? Infinity::kOverflow : Infinity::kAny),
                    divergence);
      DifferingOperands operands;
      if (divergence->kind == DivergenceKind::kBits) operands.everywhere = ComesFrom(parted, value);
      if (divergence->kind == DivergenceKind::kCarried) {
        operands.names = DifferingOperandsOf(parted, value);
        operands.from_equal = MostFromEqual(parted, value);
      }
      divergence->sentence = DifferenceSentence(divergence, a, b, DifferencesOf(parted, value), operands);
    }
  }
}

std::string PartedSentences::ComesFrom(const Parted& parted, const std::string& value) const {
  const Step* step = FindStep(case_.program, value);
  if (step == nullptr) return "";
  const auto differs_where_it_does = [&](size_t i, size_t j, const std::string& operand) {
    if (!Differs(i, j, value)) return true;
    if (!Differs(i, j, operand)) return false;
    const TensorData &a = *FindTensor(i, value), &b = *FindTensor(j, value);
    const TensorData &from_a = *FindTensor(i, operand), &from_b = *FindTensor(j, operand);
    if (from_a.shape != a.shape) return false;
    for (int64_t k = 0; k < a.size(); ++k) {
      if (DiffersInNumber(a.At(k), b.At(k)) && !DiffersInNumber(from_a.At(k), from_b.At(k))) return false;
    }
    return true;
  };
  for (const Operand& operand : step->of) {
    if (operand.IsScalar() || case_.FindTensor(operand.name) != nullptr) continue;
    const bool all = std::ranges::all_of(parted.left, [&](size_t i) {
      return std::ranges::all_of(parted.right,
                                 [&](size_t j) { return differs_where_it_does(i, j, operand.name); });
    });
    if (all) return operand.name;
  }
  return "";
}

std::vector<std::string> PartedSentences::DifferingOperandsOf(const Parted& parted,
                                                              const std::string& value) const {
  std::vector<std::string> differing;
  const auto operands = operands_.find(value);
  if (operands == operands_.end()) return differing;
  for (const std::string& operand : operands->second) {
    const bool differs = std::ranges::any_of(parted.left, [&](size_t i) {
      return std::ranges::any_of(parted.right, [&](size_t j) { return Differs(i, j, operand); });
    });
    if (differs && !Contains(differing, operand)) differing.push_back(operand);
  }
  return differing;
}

int64_t PartedSentences::DifferFromEqual(size_t i, size_t j, const std::string& name) const {
  const Step* step = FindStep(case_.program, name);
  const TensorData *a = FindTensor(i, name), *b = FindTensor(j, name);
  if (step == nullptr || !IsElementwise(step->op) || a == nullptr || b == nullptr || a->shape != b->shape)
    return 0;
  std::vector<std::pair<const TensorData*, const TensorData*>> operands;
  for (const Operand& operand : step->of) {
    if (operand.IsScalar() || case_.FindTensor(operand.name) != nullptr) continue;
    const TensorData *from_a = FindTensor(i, operand.name), *from_b = FindTensor(j, operand.name);
    const bool aligned = from_a != nullptr && from_b != nullptr && from_a->dtype == from_b->dtype &&
                         from_a->shape == from_b->shape &&
                         (from_a->shape == a->shape || from_a->bytes == from_b->bytes);
    if (!aligned) return 0;
    if (from_a->bytes != from_b->bytes) operands.emplace_back(from_a, from_b);
  }
  int64_t count = 0;
  for (int64_t k = 0; k < a->size(); ++k) {
    const auto differ = [k](const TensorData& left, const TensorData& right) {
      return DiffersInNumber(left.At(k), right.At(k)) || DiffersInKind(left.At(k), right.At(k));
    };
    count += differ(*a, *b) && std::ranges::none_of(operands, [&](const auto& each) {
               return differ(*each.first, *each.second);
             });
  }
  return count;
}

int64_t PartedSentences::MostFromEqual(const Parted& parted, const std::string& value) const {
  int64_t most = 0;
  for (const size_t i : parted.left) {
    for (const size_t j : parted.right) most = std::max(most, DifferFromEqual(i, j, value));
  }
  return most;
}

std::vector<const TensorDifference*> PartedSentences::DifferencesOf(const Parted& parted,
                                                                    const std::string& value) const {
  std::vector<const TensorDifference*> found{Difference(parted.speakers[0], parted.speakers[1], value)};
  for (const size_t i : parted.left) {
    for (const size_t j : parted.right) {
      const TensorDifference* each = Difference(i, j, value);
      if (each != nullptr && each != found.front()) found.push_back(each);
    }
  }
  return found;
}

std::string PartedSentences::Although(const Side& a, const Side& b, const std::string& value) const {
  for (const Side* side : {&a, &b}) {
    const auto lost = FindVanishedRounding(*side->speaker.result, TraceOf(side->speaker));
    if (!lost || lost->value != value) continue;
    const std::string of = side->names.size() == 1 ? "" : " of " + side->speaker.result->backend;
    return fmt::format(", although {} {} stage{} {} ({} -> {})", of.empty() ? "its" : "the", lost->from, of,
                       lost->by == GraphGap::By::kCast
                           ? fmt::format("rounds {} to {} and back", Code(value), lost->format)
                           : fmt::format("computes {} in {}", Code(value), lost->format),
                       lost->from, lost->to);
  }
  return "";
}

std::span<const TraceNode> PartedSentences::TraceOf(const Participant& member) {
  return member.observation == nullptr ? std::span<const TraceNode>{} : member.observation->trace;
}

}  // namespace ulpscope
