// Groups participants by stored bits and looks for the divergences that separate two groups.
#include "harness/judge/account.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/side.h"
#include "harness/model/tensor_diff.h"

namespace ulpscope {
namespace {

struct SameBits {
  const TensorData* tensor = nullptr;
  std::vector<const Participant*> members;
};

std::vector<SameBits> GroupByBits(std::span<const Participant> participants, const std::string& value) {
  std::vector<SameBits> groups;
  for (const Participant& each : participants) {
    if (each.observation == nullptr || !RanToAnAnswer(*each.result) ||
        each.result->outcome.kind != OutcomeKind::kCompleted)
      continue;
    const TensorData* tensor = Lookup(each.observation->values, value);
    if (tensor == nullptr) continue;
    const auto same =
        std::ranges::find_if(groups, [&](const SameBits& group) { return *group.tensor == *tensor; });
    SameBits& group = same == groups.end() ? groups.emplace_back() : *same;
    group.tensor = tensor;
    group.members.push_back(&each);
  }
  return groups;
}

bool ChangesFromRunToRun(const Participant& each, const std::string& value) {
  return each.observation->nondeterministic.contains(value);
}

DifferenceSize SizeOf(const TensorData& left, const TensorData& right) {
  DifferenceSize size;
  if (left.dtype == right.dtype && left.shape == right.shape) AddPair(CompareTensors(left, right), &size);
  return size;
}

/// The kinds of divergence that separate the two participants at `value`; empty: none does.
std::set<std::string> SaidOf(const Participant& one, const Participant& other, const std::string& value,
                             std::span<const Divergence> divergences) {
  std::set<std::string> by;
  for (const Divergence& divergence : divergences) {
    if (SetsApart(divergence, value, one.result->backend, other.result->backend))
      by.emplace(Name(divergence.kind));
  }
  if (by.empty() && (ChangesFromRunToRun(one, value) || ChangesFromRunToRun(other, value)))
    by.emplace("nondeterministic");
  return by;
}

AccountEntry EntryOf(const SameBits& left, const SameBits& right, const std::string& value,
                     std::span<const Divergence> divergences) {
  AccountEntry entry{.case_id = left.members.front()->result->id,
                     .value = value,
                     .backends = {{}, {}},
                     .size = SizeOf(*left.tensor, *right.tensor),
                     .by = {}};
  for (const Participant* each : left.members) entry.backends[0].push_back(each->result->backend);
  for (const Participant* each : right.members) entry.backends[1].push_back(each->result->backend);
  std::set<std::string> by;
  bool all = true;
  for (const Participant* one : left.members) {
    for (const Participant* other : right.members) {
      std::set<std::string> said = SaidOf(*one, *other, value, divergences);
      all = all && !said.empty();
      by.merge(said);
    }
  }
  // NaNs with different payloads are one value to every operation.
  if (entry.size.elements > 0 && entry.size.most == 0)
    by = {"nan_payload"};
  else if (!all)
    by.clear();
  entry.by.assign(by.begin(), by.end());
  return entry;
}

}  // namespace

bool SetsApart(const Divergence& divergence, const std::string& value, const std::string& one,
               const std::string& other) {
  if (!RowOf(divergence.kind).is_of_values || divergence.backends.size() != 2) return false;
  if (divergence.value != value && !Contains(divergence.also, value)) return false;
  const auto& [left, right] = std::pair(divergence.backends[0], divergence.backends[1]);
  return (Contains(left, one) && Contains(right, other)) || (Contains(left, other) && Contains(right, one));
}

std::vector<AccountEntry> TakeAccount(std::span<const Participant> participants,
                                      std::span<const Divergence> divergences) {
  std::vector<std::string> values;
  for (const Participant& each : participants) {
    for (const std::string& value : each.result->value_order) {
      if (!Contains(values, value)) values.push_back(value);
    }
  }
  std::vector<AccountEntry> account;
  for (const std::string& value : values) {
    const std::vector<SameBits> groups = GroupByBits(participants, value);
    for (size_t g = 0; g < groups.size(); ++g) {
      for (size_t h = g + 1; h < groups.size(); ++h)
        account.push_back(EntryOf(groups[g], groups[h], value, divergences));
    }
  }
  return account;
}

Divergence TellBySize(const AccountEntry& entry) {
  Divergence rest;
  rest.case_id = entry.case_id;
  rest.kind = DivergenceKind::kValue;
  rest.basis = "proved";
  rest.value = entry.value;
  rest.backends = entry.backends;
  rest.size = entry.size;
  rest.sentence =
      fmt::format("{} {} from {} in {} ({} of {} elements, by up to {:.2g}).", JoinNames(entry.backends[0]),
                  entry.backends[0].size() == 1 ? "differs" : "differ", JoinNames(entry.backends[1]),
                  Code(entry.value), entry.size.most, entry.size.elements, entry.size.largest);
  rest.summary = "differs in a value";
  rest.has_cause = false;
  return rest;
}

}  // namespace ulpscope
