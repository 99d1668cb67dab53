// Pairwise comparison, grouping, and one divergence per pair of groups.
#include "harness/judge/divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "harness/base/find.h"
#include "harness/judge/parted_sentences.h"
#include "harness/judge/parting.h"
#include "harness/judge/sentence.h"

namespace ulpscope {
namespace {

/// Compares the participants of one case in their values, kind by kind.
class Comparison : public PartedSentences {
 public:
  using PartedSentences::PartedSentences;

  std::vector<Divergence> Run() {
    const auto outcome = [this](size_t i, size_t j) { return OutcomeParts(i, j); };
    const auto dtype = [this](size_t i, size_t j) { return AtEachValue(i, j, &Comparison::PartInDtype); };
    const auto precision = [this](size_t i, size_t j) {
      return AtEachValue(i, j, &Comparison::PartInPrecision);
    };
    const auto classes = [&](size_t i, size_t j) {
      Parts parts = outcome(i, j);
      for (const Part& part : dtype(i, j)) parts.push_back(part);
      for (const Part& part : precision(i, j)) parts.push_back(part);
      return parts;
    };
    // Two unexplained backends are kept apart, so that each one's errors are reported, unless both gave the same bits.
    const auto unlike = [&](size_t i, size_t j) {
      Parts parts = precision(i, j);
      for (const Part& part : AtEachValue(i, j, &Comparison::PartUnexplained)) parts.push_back(part);
      return parts;
    };
    Collect(DivergenceKind::kOutcome, classes, outcome);
    Collect(DivergenceKind::kDtype, dtype, dtype);
    if (operands_.empty())
      Collect(DivergenceKind::kPrecision, unlike, precision);
    else
      TellSteps();
    for (const auto& [kind, member] : {std::pair{DivergenceKind::kOrder, &Comparison::PartInOrder},
                                       std::pair{DivergenceKind::kBits, &Comparison::PartInBits},
                                       std::pair{DivergenceKind::kValue, &Comparison::PartInValue},
                                       std::pair{DivergenceKind::kSpecial, &Comparison::PartInSpecial},
                                       std::pair{DivergenceKind::kCarried, &Comparison::PartInCarried}}) {
      const auto relation = [this, member = member](size_t i, size_t j) { return AtEachValue(i, j, member); };
      // Backends that differ in precision at such a value are kept in separate groups.
      std::set<size_t> at;
      for (size_t i = 0; i < members_.size(); ++i) {
        for (size_t j = i + 1; j < members_.size(); ++j) {
          for (const Part& part : Between(relation, i, j)) at.insert(part.value);
        }
      }
      const auto alike = [&](size_t i, size_t j) {
        Parts parts = relation(i, j);
        for (const Part& part : precision(i, j)) {
          if (at.contains(part.value)) parts.push_back(part);
        }
        return parts;
      };
      const bool one_class =
          kind == DivergenceKind::kOrder || kind == DivergenceKind::kBits || kind == DivergenceKind::kCarried;
      Collect(kind, one_class ? Relation(alike) : Relation(relation), relation);
    }
    const auto casts = [this](size_t i, size_t j) { return CastParts(i, j); };
    Collect(DivergenceKind::kCasts, casts, casts);
    AddGraphGaps();
    return std::move(divergences_);
  }

 private:
  using Relation = std::function<Parts(size_t, size_t)>;

  /// The differences between two backends that are to be compared.
  Parts Between(const Relation& relation, size_t i, size_t j) const {
    return known_[i] && known_[j] ? Parts{} : relation(i, j);
  }

  /// Each backend joins the first group in which it differs from no member.
  std::vector<std::vector<size_t>> Group(const Relation& relation) const {
    std::vector<std::vector<size_t>> groups;
    for (size_t i = 0; i < members_.size(); ++i) {
      const auto fits = std::ranges::find_if(groups, [&](const std::vector<size_t>& group) {
        return std::ranges::all_of(group,
                                   [&](size_t member) { return Between(relation, member, i).empty(); });
      });
      if (fits == groups.end()) {
        groups.push_back({i});
      } else {
        fits->push_back(i);
      }
    }
    return groups;
  }

  void Collect(DivergenceKind kind, const Relation& grouping, const Relation& relation) {
    const auto groups = Group(grouping);
    for (size_t g = 0; g < groups.size(); ++g) {
      for (size_t h = g + 1; h < groups.size(); ++h) Compare(kind, groups[g], groups[h], relation);
    }
  }

  void Compare(DivergenceKind kind, const std::vector<size_t>& left, const std::vector<size_t>& right,
               const Relation& relation) {
    std::map<size_t, Parted> by_value;
    for (const size_t i : left) {
      for (const size_t j : right) {
        for (const Part& part : Between(relation, i, j)) {
          const auto [entry, is_new] = by_value.try_emplace(part.value);
          Parted& parted = entry->second;
          if (is_new) {
            parted.speakers[0] = i;
            parted.speakers[1] = j;
          }
          parted.left.insert(i);
          parted.right.insert(j);
          parted.values.insert(part.value);
          parted.all_proved = parted.all_proved && part.basis == Basis::kProved;
        }
      }
    }
    if (by_value.empty()) return;
    // In a program that was judged as a whole, one cause persists from value to value.
    Parted cause = std::move(by_value.begin()->second);
    for (auto entry = std::next(by_value.begin()); entry != by_value.end(); ++entry) {
      cause.left.merge(entry->second.left);
      cause.right.merge(entry->second.right);
      cause.values.insert(entry->first);
    }
    divergences_.push_back(Said(kind, cause));
  }

  /// A behaviour that some backends have in one step and others do not. `left` have it.
  struct Finding {
    Parted parted;
    std::string what;  ///< without the name of the value, so that one finding can cover several values
    Sentence sentence;
  };

  /// Each step has its own findings: one for each behaviour, about the backends that show it; one for each pair of
  /// behaviours that these do not report for both backends; one for each backend whose results nothing explains.
  void TellSteps() {
    std::vector<Finding> found;
    for (size_t v = 0; v < names_.size(); ++v) {
      for (Finding& finding : FindingsOf(v)) {
        const auto known = std::ranges::find_if(found, [&](const Finding& each) {
          return each.what == finding.what && each.parted.left == finding.parted.left &&
                 each.parted.right == finding.parted.right;
        });
        if (known == found.end())
          found.push_back(std::move(finding));
        else
          known->parted.values.insert(v);
      }
    }
    for (const Finding& finding : found) {
      divergences_.push_back(Named(DivergenceKind::kPrecision, finding.parted));
      Take(finding.sentence, &divergences_.back());
    }
  }

  /// Two backends that differ in a step, and the behaviour of each that the other does not have.
  struct Pair {
    size_t i = 0, j = 0;
    Basis basis = Basis::kSame;
    std::optional<Parting> deeds;
  };

  std::vector<Pair> PairsOf(size_t v) const {
    std::vector<Pair> pairs;
    const bool is_view = views_.contains(names_[v]);
    for (size_t i = 0; i < members_.size(); ++i) {
      for (size_t j = i + 1; j < members_.size(); ++j) {
        if (!Completed(i) || !Completed(j) || (known_[i] && known_[j])) continue;
        // A view only rearranges a difference that was reported already.
        if (is_view && Inherited(i, j, names_[v])) continue;
        const Basis basis = PartInPrecision(i, j, names_[v]);
        if (basis == Basis::kSame) continue;
        pairs.push_back(
            {.i = i,
             .j = j,
             .basis = basis,
             .deeds = FindDeeds(case_, names_[v], *FindValue(i, names_[v]), *FindValue(j, names_[v]))});
      }
    }
    return pairs;
  }

  static void Join(size_t doer, size_t other, Basis basis, size_t v, Parted* parted) {
    if (parted->left.empty()) {
      parted->speakers[0] = doer;
      parted->speakers[1] = other;
    }
    parted->left.insert(doer);
    parted->right.insert(other);
    parted->values.insert(v);
    parted->all_proved = parted->all_proved && basis == Basis::kProved;
  }

  std::vector<Finding> FindingsOf(size_t v) const {
    std::vector<std::pair<Deed, Parted>> deeds;
    std::vector<std::pair<std::pair<Deed, Deed>, Parted>> both;
    std::vector<std::pair<std::pair<std::string, std::string>, Parted>> classes;
    std::vector<std::pair<size_t, Parted>> unexplained;
    const auto at = [](auto& list, const auto& key) -> Parted& {
      const auto known = std::ranges::find_if(list, [&](const auto& each) { return each.first == key; });
      if (known != list.end()) return known->second;
      return list.emplace_back(key, Parted{}).second;
    };
    const std::vector<Pair> pairs = PairsOf(v);
    for (const Pair& pair : pairs) {
      for (const auto& [mine, other] : {std::pair{pair.i, pair.j}, std::pair{pair.j, pair.i}}) {
        if (IsUnexplained(mine, names_[v]))
          Join(mine, other, Basis::kProved, v, &at(unexplained, FirstUnexplainedLike(mine, names_[v])));
      }
      if (!pair.deeds) continue;
      if (pair.deeds->b.Nothing()) Join(pair.i, pair.j, pair.basis, v, &at(deeds, pair.deeds->a));
      if (pair.deeds->a.Nothing()) Join(pair.j, pair.i, pair.basis, v, &at(deeds, pair.deeds->b));
    }
    const auto is_told = [&](size_t member, const Deed& deed) {
      return std::ranges::any_of(
          deeds, [&](const auto& each) { return each.first == deed && each.second.left.contains(member); });
    };
    for (const Pair& pair : pairs) {
      if (IsUnexplained(pair.i, names_[v]) || IsUnexplained(pair.j, names_[v])) continue;
      if (!pair.deeds) {
        const auto how = [&](size_t member) {
          return DescribeClass(case_, names_[v], *FindValue(member, names_[v]));
        };
        std::string left = how(pair.i), right = how(pair.j);
        const bool turned = right < left;
        if (turned) std::swap(left, right);
        Join(turned ? pair.j : pair.i, turned ? pair.i : pair.j, pair.basis, v,
             &at(classes, std::pair{std::move(left), std::move(right)}));
      } else if (!pair.deeds->a.Nothing() && !pair.deeds->b.Nothing() &&
                 !(is_told(pair.i, pair.deeds->a) && is_told(pair.j, pair.deeds->b))) {
        const bool turned = pair.deeds->b.singular < pair.deeds->a.singular;
        Join(turned ? pair.j : pair.i, turned ? pair.i : pair.j, pair.basis, v,
             &at(both,
                 turned ? std::pair{pair.deeds->b, pair.deeds->a} : std::pair{pair.deeds->a, pair.deeds->b}));
      }
    }
    std::vector<Finding> findings;
    const auto tell = [&](const Parted& parted, const std::string& what, const Sentence& sentence) {
      findings.push_back({.parted = parted, .what = OfAnyValue(what, names_[v]), .sentence = sentence});
    };
    const auto tell_both = [&](const Parted& parted, const std::string& what) {
      tell(parted, what, PrecisionSentenceOf(Named(DivergenceKind::kPrecision, parted), parted));
    };
    for (const auto& [deed, parted] : deeds) {
      const Side doers = MakeSide(parted.left, parted.speakers[0]),
                 others = MakeSide(parted.right, parted.speakers[1]);
      tell(parted, deed.singular,
           DeedSentence(doers, others, names_[v], deed, parted.all_proved ? "proved" : "likely",
                        Although(doers, others, names_[v])));
    }
    for (const auto& [two, parted] : both) tell_both(parted, two.first.singular + ";" + two.second.singular);
    for (const auto& [two, parted] : classes) tell_both(parted, two.first + ";" + two.second);
    for (const auto& [who, parted] : unexplained) {
      tell(parted, fmt::format("unexplained {} {}", who, v),
           UnexplainedSentence(MakeSide(parted.left, who), MakeSide(parted.right, parted.speakers[1]),
                               names_[v]));
    }
    return findings;
  }

  /// Adds vanished roundings that no precision divergence of this case reports, and all that appeared.
  void AddGraphGaps() {
    const auto told = [&](const std::string& backend) {
      return std::ranges::any_of(divergences_, [&](const Divergence& divergence) {
        return divergence.kind == DivergenceKind::kPrecision &&
               std::ranges::any_of(divergence.backends,
                                   [&](const auto& group) { return Contains(group, backend); });
      });
    };
    for (const Participant& member : members_) {
      const std::string& backend = member.result->backend;
      if (const auto lost = FindVanishedRounding(*member.result, TraceOf(member)); lost && !told(backend))
        AddGraphGap(backend, *lost);
      if (const auto appeared = FindAppearedRounding(*member.result, TraceOf(member)))
        AddGraphGap(backend, *appeared);
    }
  }

  void AddGraphGap(const std::string& backend, const GraphGap& gap) {
    Divergence divergence;
    divergence.case_id = case_.id;
    divergence.kind = DivergenceKind::kGraphVsExecution;
    divergence.backends = {{backend}};
    divergence.value = gap.value;
    divergence.basis = gap.basis;
    divergence.stages = {gap.from, gap.to};
    Take(GraphGapSentence(backend, gap), &divergence);
    divergences_.push_back(std::move(divergence));
  }

  std::vector<Divergence> divergences_;
};
}  // namespace

std::vector<Divergence> FindDivergences(const Case& test_case, std::span<const Participant> participants,
                                        JudgedAs judged, const std::set<std::string>& known,
                                        const std::set<std::string>& observed) {
  return Comparison(test_case, participants, judged, known, observed).Run();
}

}  // namespace ulpscope
