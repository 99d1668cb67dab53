// Expansion of sweeps on the tree, before anything is decoded.
#include "harness/casefile/sweep.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "harness/base/find.h"
#include "harness/base/text.h"

namespace ulpscope {
namespace {

constexpr size_t kMaxExpandedNodes = 400'000;

/// The name in a plain `$name`, else "".
std::string_view ReferredName(const Node& node) {
  if (node.kind != Node::Kind::kScalar || node.quoted || !node.text.starts_with('$')) return {};
  const std::string_view name = std::string_view(node.text).substr(1);
  return NamePattern().matches(name) ? name : std::string_view();
}

bool IsLeftAlone(std::string_view key) {
  return key == "name" || key == "about" || key == "source" || key == "sweep";
}

/// Calls `use` for every $name below `node`, keys of maps apart.
template <class Node, class Use>
void ForEachReference(Node& node, const Use& use) {
  if (!ReferredName(node).empty()) use(node);
  const size_t step = node.kind == ulpscope::Node::Kind::kMap ? 2 : 1;
  for (size_t i = step - 1; i < node.children.size(); i += step) ForEachReference(node.children[i], use);
}

template <class Node, class Use>
void ForEachReferenceInCase(Node& case_node, const Use& use) {
  for (size_t i = 0; i < case_node.entry_count(); ++i) {
    if (!IsLeftAlone(case_node.key(i).text)) ForEachReference(case_node.children[2 * i + 1], use);
  }
}

struct Axis {
  std::string name;
  std::vector<const Node*> choices = {};
  std::vector<std::string> labels = {};
};

std::string Label(const Node& choice) {
  if (choice.kind == Node::Kind::kScalar) return choice.text;
  std::string label;
  for (const Node& item : choice.children) label += (label.empty() ? "" : "x") + item.text;
  return label;
}

bool IsIdText(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return c > ' ' && c < 0x7F && std::string_view("/,[]=@\"'`$\\").find(c) == std::string_view::npos;
  });
}

std::vector<Axis> ReadAxes(const Node& sweep, ErrorSink& errors) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < sweep.entry_count(); ++i) {
    Axis axis{
        .name = sweep.key(i).text,
    };
    std::set<std::string> seen;
    for (const Node& choice : sweep.value(i).children) {
      std::string label = Label(choice);
      if (!IsIdText(label))
        errors.Add(choice.mark, "a choice of a sweep is part of the id", choice.Describe(),
                   "text without / , [ ] = @ $ quotes and spaces");
      if (!seen.insert(label).second) {
        errors.Add(choice.mark, "duplicate choice in sweep '" + axis.name + "'", "'" + label + "' again",
                   "each choice once");
      }
      axis.choices.push_back(&choice);
      axis.labels.push_back(std::move(label));
    }
    axes.push_back(std::move(axis));
  }
  return axes;
}

void CheckReferences(const Node& case_node, const Node* sweep, const std::vector<Axis>& axes,
                     ErrorSink& errors) {
  std::vector<std::string> names;
  for (const Axis& axis : axes) names.push_back(axis.name);
  std::set<std::string, std::less<>> used;
  ForEachReferenceInCase(case_node, [&](const Node& node) {
    const std::string_view name = ReferredName(node);
    used.emplace(name);
    if (!Contains(names, name)) {
      errors.Add(node.mark, "no sweep named '" + std::string(name) + "'", node.Describe(),
                 names.empty() ? "a sweep in this case" : "one of " + Join(names, ", "),
                 Suggest(name, names));
    }
  });
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!used.contains(axes[i].name))
      errors.Add(sweep->key(i).mark, "sweep '" + axes[i].name + "' is never used", "",
                 "$" + axes[i].name + " somewhere in the case");
  }
}

}  // namespace

void ForEachCombination(const Node& case_node, ErrorSink& errors,
                        const std::function<void(const Node&, const std::string&)>& use) {
  const size_t errors_before = errors.reported();
  const Node* sweep = case_node.Find("sweep");
  std::vector<Axis> axes;
  if (sweep != nullptr) {
    CheckStructure(*sweep, SweepType(), "'sweep'", errors);
    if (errors.reported() == errors_before) axes = ReadAxes(*sweep, errors);
  }
  CheckReferences(case_node, sweep, axes, errors);
  if (errors.reported() != errors_before) return;
  if (axes.empty()) {
    use(case_node, "");
    return;
  }
  size_t combinations = 1;
  const size_t limit = std::min(kMaxCombinations, kMaxExpandedNodes / CountNodes(case_node) + 1);
  for (const Axis& axis : axes) {
    combinations *= axis.choices.size();
    if (combinations > limit) {
      errors.Add(sweep->mark, "sweep is too large", "more than " + std::to_string(limit) + " combinations",
                 "at most " + std::to_string(limit));
      return;
    }
  }
  for (size_t index = 0; index < combinations; ++index) {
    std::map<std::string, const Node*, std::less<>> chosen;
    std::vector<std::string> settings(axes.size());
    size_t rest = index;
    for (size_t a = axes.size(); a-- > 0;) {
      const size_t choice = rest % axes[a].choices.size();
      rest /= axes[a].choices.size();
      chosen[axes[a].name] = axes[a].choices[choice];
      settings[a] = axes[a].name + "=" + axes[a].labels[choice];
    }
    Node expanded = case_node;
    ForEachReferenceInCase(expanded, [&](Node& node) {
      Node replacement = *chosen.find(ReferredName(node))->second;
      replacement.mark = node.mark;  // errors point to where the choice is used
      node = std::move(replacement);
    });
    use(expanded, "[" + Join(settings, ",") + "]");
  }
}

}  // namespace ulpscope
