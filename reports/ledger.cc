// Ledgers as text.
#include "reports/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"

namespace ulpscope {
namespace {

bool SidesOf(const Divergence& divergence, const Ledger& ledger) {
  if (divergence.backends.size() != 2 || ledger.backends.size() != 2) return false;
  const std::string &a = ledger.backends[0].front(), &b = ledger.backends[1].front();
  const auto &left = divergence.backends[0], &right = divergence.backends[1];
  return (Contains(left, a) && Contains(right, b)) || (Contains(left, b) && Contains(right, a));
}

bool SpeaksOf(const Divergence& divergence, const std::string& step) {
  return divergence.value == step || Contains(divergence.also, step);
}

}  // namespace

std::string Percent(double share) {
  const double percent = 100 * share;
  const double size = std::fabs(percent);
  if (size < 0.1 && size > 0) return percent > 0 ? "less than 0.1 %" : "0 %";
  if (size >= 99.5 && size < 100 - 1e-7) return fmt::format("{:.4g} %", percent);
  return size >= 9.5 || size == 0 ? fmt::format("{:.0f} %", percent) : fmt::format("{:.1g} %", percent);
}

namespace {

/// `ledgers`: of its case.
Weight WeightIn(const std::vector<const Ledger*>& ledgers, const Divergence& divergence) {
  Weight weight;
  bool booked = false;
  for (const Ledger* each : ledgers) {
    const Ledger& ledger = *each;
    if (!SidesOf(divergence, ledger)) continue;
    booked = booked || ledger.left_out.empty();
    // That an observed value differs, for whatever causes, is all of the difference.
    bool any = divergence.kind == DivergenceKind::kValue && divergence.value == ledger.value;
    double share = any ? 1 : 0;
    for (const LedgerEntry& entry : ledger.entries) {
      if (any) break;
      if (!SpeaksOf(divergence, entry.step.empty() ? ledger.value : entry.step)) continue;
      share += entry.share;
      any = true;
    }
    if (any && (weight.ledger == nullptr || std::fabs(share) > std::fabs(weight.share))) {
      weight.ledger = &ledger;
      weight.share = share;
    }
  }
  weight.moves_nothing = booked && RowOf(divergence.kind).is_of_step && weight.ledger == nullptr;
  return weight;
}

}  // namespace

Weight WeightOf(const RunReport& report, const Divergence& divergence) {
  std::vector<const Ledger*> ledgers;
  for (const Ledger& ledger : report.ledgers) {
    if (ledger.case_id == divergence.case_id) ledgers.push_back(&ledger);
  }
  return WeightIn(ledgers, divergence);
}

std::string WeightText(const Weight& weight) {
  if (weight.ledger == nullptr) return "";
  return fmt::format("{} of the difference of {}", Percent(weight.share), weight.ledger->value);
}

namespace {

/// The heaviest first.
std::vector<const LedgerEntry*> EntriesByShare(const Ledger& ledger) {
  std::vector<const LedgerEntry*> entries;
  for (const LedgerEntry& entry : ledger.entries) entries.push_back(&entry);
  std::ranges::stable_sort(entries, [](const LedgerEntry* a, const LedgerEntry* b) {
    return std::fabs(a->share) > std::fabs(b->share);
  });
  return entries;
}

}  // namespace

namespace {

/// The key by which causes in different steps are the same; if the behaviour of the sides is unknown, the sentence.
std::string KeyOf(const LedgerCause& cause) {
  return fmt::format("{}|{}|{}|{}", cause.backend, Name(cause.kind), cause.is_explained,
                     cause.does.empty() ? cause.sentence : cause.does);
}

std::string KeyOf(const LedgerEntry& entry) {
  if (!entry.IsExplained()) return "";
  std::string key;
  for (const LedgerCause& cause : entry.causes) key += KeyOf(cause) + "\n";
  return key;
}

bool IsReported(const FoldedCause& cause, const Ledger& ledger, const std::vector<Divergence>& reported) {
  return std::ranges::all_of(cause.entries, [&](const LedgerEntry* entry) {
    return std::ranges::all_of(entry->causes, [&](const LedgerCause& one) {
      return std::ranges::any_of(reported, [&](const Divergence& divergence) {
        return divergence.kind == one.kind && divergence.case_id == ledger.case_id &&
               SidesOf(divergence, ledger) && SpeaksOf(divergence, entry->step);
      });
    });
  });
}

std::string NameOf(const LedgerEntry& entry) {
  return entry.step.empty() ? "what observing changes" : entry.step;
}

}  // namespace

std::vector<FoldedCause> FoldCauses(const Ledger& ledger) {
  std::vector<FoldedCause> folded;
  std::map<std::string, size_t> number;
  for (const LedgerEntry* entry : EntriesByShare(ledger)) {
    const auto [known, is_new] = number.try_emplace(KeyOf(*entry), folded.size());
    if (is_new) folded.emplace_back();
    folded[known->second].entries.push_back(entry);
    folded[known->second].share += entry->share;
  }
  std::ranges::stable_sort(folded, [](const FoldedCause& a, const FoldedCause& b) {
    return std::fabs(a.share) > std::fabs(b.share);
  });
  return folded;
}

std::vector<std::string> PlaceTexts(const FoldedCause& cause) {
  struct Place {
    std::vector<const LedgerEntry*> entries;
    double share = 0;
  };
  std::vector<Place> places;
  std::map<StepOrigin, size_t> number;
  for (const LedgerEntry* entry : cause.entries) {
    size_t at = places.size();
    if (!entry->at.IsEmpty()) at = number.try_emplace(entry->at.OfAnyLayer(), at).first->second;
    if (at == places.size()) places.emplace_back();
    places[at].entries.push_back(entry);
    places[at].share += entry->share;
  }
  std::vector<std::string> texts;
  for (const Place& place : places) {
    const LedgerEntry& first = *place.entries.front();
    std::string text = fmt::format("{}  {}", Percent(place.share), NameOf(first));
    if (const std::string origin = first.at.Text(); !origin.empty()) text += ", " + origin;
    std::set<std::string> modules;
    for (const LedgerEntry* entry : place.entries) modules.insert(entry->at.module);
    if (first.layers > 1)
      text += fmt::format("; in {} of {} layers, most of it here", modules.size(), first.layers);
    else if (place.entries.size() > 1)
      text += fmt::format("; in {} steps of this source line, most of it here", place.entries.size());
    texts.push_back(std::move(text));
  }
  return texts;
}

std::vector<std::string> CauseTexts(const Ledger& ledger, const std::vector<Divergence>& reported) {
  constexpr size_t kMostPlaces = 8;
  std::vector<std::string> texts;
  for (const FoldedCause& folded : FoldCauses(ledger)) {
    const LedgerEntry& first = *folded.entries.front();
    if (first.IsOrderOnly() || (!first.causes.empty() && IsReported(folded, ledger, reported))) continue;
    std::string text = first.causes.empty() ? fmt::format("{} of the difference, in {}: no cause is known.",
                                                          Percent(folded.share), NameOf(first))
                                            : fmt::format("{} of the difference: ", Percent(folded.share));
    for (size_t i = 0; i < first.causes.size(); ++i) text += (i > 0 ? " " : "") + first.causes[i].sentence;
    if (folded.entries.size() > 1)
      text += fmt::format(" The same in {}.", Counted(folded.entries.size() - 1, "more step"));
    texts.push_back(std::move(text));
    if (folded.entries.size() == 1 && first.at.IsEmpty()) continue;
    const auto places = PlaceTexts(folded);
    for (size_t i = 0; i < std::min(places.size(), kMostPlaces); ++i) texts.push_back("  " + places[i]);
    if (places.size() > kMostPlaces)
      texts.push_back(fmt::format("  and {} more", places.size() - kMostPlaces));
  }
  return texts;
}

std::string EntriesText(const Ledger& ledger) {
  if (!ledger.left_out.empty()) return "booked as a whole, since " + ledger.left_out;
  constexpr size_t kMostEntries = 4;
  const auto entries = EntriesByShare(ledger);
  std::vector<std::string> shown;
  int64_t steps = 0;
  for (const LedgerEntry* entry : entries) {
    steps += entry->step.empty() ? 0 : 1;
    if (shown.size() == kMostEntries) continue;
    shown.push_back(fmt::format("{} {}{}", entry->step.empty() ? "what observing changes" : entry->step,
                                Percent(entry->share), entry->IsExplained() ? "" : " (not explained)"));
  }
  std::string text = ledger.steps == 0 ? ""
                                       : fmt::format("{} of {} {}: ", steps,
                                                     Counted(static_cast<size_t>(ledger.steps), "step"),
                                                     steps == 1 ? "differs" : "differ");
  text += Join(shown, ", ");
  if (entries.size() > kMostEntries) text += fmt::format(", and {} more", entries.size() - kMostEntries);
  return text;
}

std::string NearnessText(const Ledger& ledger) {
  if (!ledger.nearness) return "";
  const Nearness& nearness = *ledger.nearness;
  using Side = Nearness::Side;
  const bool second = nearness.nearer == Side::kSecond;
  const std::string &near = ledger.backends.at(second ? 1 : 0).front(),
                    &far = ledger.backends.at(second ? 0 : 1).front();
  const ProgramError &of_near = second ? nearness.second : nearness.first,
                     &of_far = second ? nearness.first : nearness.second;
  const std::string rms = fmt::format("rms {:.2g} against {:.2g}", of_near.rms, of_far.rms);
  if (nearness.nearer == Side::kNeither)
    return fmt::format("{} and {} are about as near to exact ({}, of values of rms {:.2g})", near, far, rms,
                       nearness.scale);
  return fmt::format("{} is nearer to exact: {} of {}, of values of rms {:.2g}", near, rms, far,
                     nearness.scale);
}

std::vector<std::string> RemedyTexts(const Ledger& ledger) {
  std::vector<std::string> texts, in_vain;
  for (const TriedRemedy& tried : ledger.remedies) {
    if (tried.differing < ledger.differing)
      texts.push_back(fmt::format("with {} {} differs in {} of {} elements ({} without)", tried.setting,
                                  tried.backend, tried.differing, ledger.elements, ledger.differing));
    else
      in_vain.push_back(fmt::format("{} ({})", tried.setting, tried.backend));
  }
  if (!in_vain.empty()) texts.push_back("no fewer elements differ with " + Join(in_vain, ", "));
  return texts;
}

std::string LedgerText(const Ledger& ledger) {
  std::string text = fmt::format("{}  {} against {}: {}", ledger.value, ledger.backends.at(0).front(),
                                 ledger.backends.at(1).front(), EntriesText(ledger));
  if (const std::string nearness = NearnessText(ledger); !nearness.empty()) text += "; " + nearness;
  return text;
}

namespace {

/// The causes of its kind in the entries of its steps, in any ledger of its case, each with its backend; empty if
/// unknown.
std::map<std::string, std::string> CausesOf(const std::vector<const Ledger*>& ledgers,
                                            const Divergence& divergence) {
  std::map<std::string, std::string> keys;
  for (const Ledger* ledger : ledgers) {
    if (!SidesOf(divergence, *ledger)) continue;
    for (const LedgerEntry& entry : ledger->entries) {
      if (!SpeaksOf(divergence, entry.step)) continue;
      for (const LedgerCause& cause : entry.causes) {
        if (cause.kind == divergence.kind && !cause.does.empty()) keys.emplace(KeyOf(cause), cause.backend);
      }
    }
  }
  return keys;
}

}  // namespace

std::string WeighedDivergence::LikewiseText() const {
  std::vector<std::string> names;
  for (const WeighedDivergence& each : likewise) {
    const std::string weighs = WeightText(each.weight);
    names.push_back(each.divergence->value + (weighs.empty() ? "" : " (" + weighs + ")"));
  }
  if (names.empty()) return "";
  const std::string last = names.back();
  names.pop_back();
  const std::string where = names.empty() ? last : Join(names, ", ") + " and " + last;
  return fmt::format(" {} in {}.", who.size() == 1 ? who[0] + " does the same" : "The same", where);
}

std::vector<WeighedDivergence> ByWeight(const RunReport& report) {
  std::map<std::string_view, std::vector<const Ledger*>> of_case;
  for (const Ledger& ledger : report.ledgers) of_case[ledger.case_id].push_back(&ledger);
  std::vector<WeighedDivergence> weighed;
  for (const Divergence& each : report.divergences)
    weighed.push_back({.divergence = &each, .weight = WeightIn(of_case[each.case_id], each)});
  const auto rank = [](const WeighedDivergence& each) {
    // One that raised, or gave another dtype, is no matter of shares.
    return RowOf(each.divergence->kind).comes_first ? std::numeric_limits<double>::infinity()
                                                    : std::fabs(each.weight.share);
  };
  std::ranges::stable_sort(weighed, [&](const WeighedDivergence& a, const WeighedDivergence& b) {
    if (a.divergence->case_id != b.divergence->case_id) return a.divergence->case_id < b.divergence->case_id;
    return rank(a) > rank(b);
  });
  std::vector<WeighedDivergence> folded;
  std::map<std::string, size_t> number;
  for (WeighedDivergence& each : weighed) {
    const Divergence& divergence = *each.divergence;
    const auto causes = CausesOf(of_case[divergence.case_id], divergence);
    if (!causes.empty() && !each.weight.moves_nothing) {
      std::string key = divergence.case_id;
      for (const auto& [cause, backend] : causes) {
        key += "|" + cause;
        if (!Contains(each.who, backend)) each.who.push_back(backend);
      }
      const auto [known, is_new] = number.try_emplace(std::move(key), folded.size());
      if (!is_new) {
        folded[known->second].likewise.push_back(std::move(each));
        continue;
      }
    }
    folded.push_back(std::move(each));
  }
  return folded;
}

std::string LedgerSummary(const RunReport& report) {
  if (report.ledgers.empty()) return "";
  std::set<std::string> causes;
  const Ledger* worst = nullptr;
  size_t open = 0;
  bool order_only = true;
  for (const Ledger& ledger : report.ledgers) {
    for (const LedgerEntry& entry : ledger.entries) {
      order_only = order_only && entry.IsOrderOnly();
      for (const LedgerCause& cause : entry.causes) causes.insert(KeyOf(cause));
    }
    if (std::ranges::all_of(ledger.entries, &LedgerEntry::IsExplained)) continue;
    ++open;
    if (worst == nullptr || ledger.Unexplained() > worst->Unexplained()) worst = &ledger;
  }
  if (worst == nullptr) {
    return fmt::format("every difference is {}: {} {} all of it",
                       order_only ? "order of summation or last bits" : "rounding",
                       Counted(causes.size(), "cause"), causes.size() == 1 ? "explains" : "explain");
  }
  const std::string share = Percent(std::min(1.0, worst->Unexplained()));
  if (report.ledgers.size() == 1)
    return fmt::format("{} of the difference of {} is not explained", share, worst->value);
  return fmt::format("{} of {} differences are explained entirely; of {} in {} {} is not explained",
                     report.ledgers.size() - open, report.ledgers.size(), worst->value, worst->case_id,
                     share);
}

}  // namespace ulpscope
