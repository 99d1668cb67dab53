// Collecting the details of cells.
#include "reports/html_details.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "reports/births.h"
#include "reports/cell.h"
#include "reports/findings.h"
#include "reports/matrix.h"
#include "reports/op_tree.h"
#include "reports/places.h"
#include "reports/text_safe.h"
#include "reports/witness.h"

namespace ulpscope {
namespace {

using DetailJson = nlohmann::json;

/// Bars of a plot, and the scale of their ends: the sign, and the logarithm of four times the error and one. Half an ulp is 2.5,
/// a million are 31.
constexpr size_t kMostBars = 96;
constexpr double kScale = 1.55;
constexpr std::string_view kCodes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

char Code(double ulp) {
  if (!std::isfinite(ulp)) return '~';
  const double size = std::min(31.0, std::round(kScale * std::log2(1 + 4 * std::fabs(ulp))));
  return kCodes[static_cast<size_t>(32 + (ulp < 0 ? -size : size))];
}

/// With as many digits as in the table of the values; empty if none is finite.
std::string Largest(const std::vector<double>& ulp) {
  double largest = -1;
  for (const double each : ulp) {
    if (std::isfinite(each)) largest = std::max(largest, std::fabs(each));
  }
  return largest < 0 ? "" : fmt::format("{:.4g}", largest);
}

std::string Codes(const std::vector<double>& ulp) {
  const size_t bars = std::min(kMostBars, ulp.size());
  std::string codes;
  for (size_t bar = 0; bar < bars; ++bar) {
    const size_t begin = bar * ulp.size() / bars, end = (bar + 1) * ulp.size() / bars;
    double low = ulp[begin], high = ulp[begin];
    for (size_t i = begin; i < end; ++i) {
      if (!std::isfinite(ulp[i])) low = high = ulp[i];
      if (!std::isfinite(low)) break;
      low = std::min(low, ulp[i]);
      high = std::max(high, ulp[i]);
    }
    codes += Code(low);
    codes += Code(high);
  }
  return codes;
}

/// JSON that no script element ends inside of.
std::string ScriptSafe(std::string_view json) {
  std::string safe;
  for (const char c : json) safe += c == '<' ? "\\u003c" : std::string(1, c);
  return safe;
}

class TextTable {
 public:
  size_t Place(const std::string& text) {
    const auto [found, added] = places_.try_emplace(text, texts_.size());
    if (added) {
      texts_.push_back(ScriptSafe(DetailJson(XmlSafe(text)).dump()));
      bytes_ += texts_.back().size() + 1;
    }
    return found->second;
  }
  size_t bytes() const { return bytes_; }
  std::string Dump() const { return "[" + Join(texts_, ",") + "]"; }

 private:
  std::unordered_map<std::string, size_t> places_;
  std::vector<std::string> texts_;
  size_t bytes_ = 0;
};

/// Placeholders for the id and the backend in a repro line, which is otherwise the same for all: two characters of
/// private use.
constexpr std::string_view kIdMark = "\xee\x80\x80", kBackendMark = "\xee\x80\x81";

void Replace(std::string* text, std::string_view what, std::string_view by) {
  if (what.empty()) return;
  for (size_t at = text->find(what); at != std::string::npos; at = text->find(what, at + by.size()))
    text->replace(at, what.size(), by);
}

std::string ReproTemplate(const CaseResult& result) {
  std::string line = result.repro;
  if (line.find(kIdMark) != std::string::npos || line.find(kBackendMark) != std::string::npos) return line;
  // The backend first: it may be named by a case (faulty:case=ID), never the other way round.
  Replace(&line, result.backend, kBackendMark);
  Replace(&line, result.id, kIdMark);
  return line;
}

class Collector {
 public:
  Collector(const RunReport& report, const ReportDetails& details)
      : report_(report), details_(details), findings_(report), witnesses_(report) {}

  HtmlDetails Collect(size_t bytes) {
    HtmlDetails collected;
    const std::vector<const CaseResult*> wanted = CellsWithDetails(report_);
    collected.wanted = wanted.size();
    std::vector<DetailJson> cells;
    size_t used = 0;
    for (const CaseResult* result : wanted) {
      if (used + Shared() > bytes) break;
      cells.push_back(Cell(*result));
      used += cells.back().dump().size() + 8;  // and the places of a trace and of plots
      collected.cells[{result->id, result->backend}] = cells.size() - 1;
    }
    for (size_t i = 0; i < cells.size(); ++i) {
      DetailJson trace = 0, errors = DetailJson::array();
      if (used + Shared() > bytes) {
        ++collected.without;
      } else if (details_.of_cell) {
        const CellDetails more = details_.of_cell(*wanted[i]);
        trace = Trace(*wanted[i], more);
        errors = Errors(*wanted[i], more);
        used += trace.dump().size() + ScriptSafe(errors.dump()).size();
      }
      cells[i].push_back(std::move(trace));
      cells[i].push_back(std::move(errors));
    }
    const auto dumped = [](const std::vector<DetailJson>& list) {
      return "[" + Join(Mapped(list, [&](const auto& each) { return ScriptSafe(each.dump()); }), ",\n") + "]";
    };
    collected.json = fmt::format("{{\"cases\":{},\n\"finds\":{},\n\"cells\":{},\n\"texts\":{}}}",
                                 dumped(cases_), dumped(finds_), dumped(cells), texts_.Dump());
    return collected;
  }

 private:
  size_t Shared() const { return texts_.bytes() + shared_; }
  size_t T(const std::string& text) { return texts_.Place(text); }

  DetailJson List(const std::vector<std::string>& texts) {
    DetailJson list = DetailJson::array();
    for (const auto& text : texts) list.push_back(T(text));
    return list;
  }

  size_t CaseOf(const std::string& id) {
    const auto [found, added] = case_places_.try_emplace(id, cases_.size());
    if (added) {
      const Explanation about = details_.of_case ? details_.of_case(id) : Explanation();
      cases_.push_back({T(id), T(about.about), T(about.tensors), List(about.program), List(about.origins)});
      shared_ += cases_.back().dump().size() + 2;
    }
    return found->second;
  }

  size_t FindingOf(const Divergence& divergence) {
    const auto [found, added] = find_places_.try_emplace(&divergence, finds_.size());
    if (added) {
      finds_.push_back({T(std::string(Name(divergence.kind))), T(divergence.basis),
                        T(FindingValues(divergence)), T(divergence.value),
                        T(WithPlaces(BriefSentence(divergence), SourcePlacesOf(report_, divergence)))});
      shared_ += finds_.back().dump().size() + 2;
    }
    return found->second;
  }

  DetailJson Cell(const CaseResult& result) {
    std::string outcome;
    if (result.outcome.kind != OutcomeKind::kCompleted && result.status != Status::kNotRun) {
      outcome = fmt::format("{} {}", Name(result.outcome.kind), result.outcome.error_class);
      if (!result.outcome.text.empty()) outcome += ": " + result.outcome.text;
    }
    const Divergence* parting = nullptr;
    DetailJson findings = DetailJson::array();
    for (const Divergence* divergence : findings_.Of(result)) {
      findings.push_back(FindingOf(*divergence));
      if (parting == nullptr && divergence->kind == DivergenceKind::kPrecision) parting = divergence;
    }
    DetailJson proof = DetailJson::array();
    if (const auto witness = witnesses_.Of(result, parting)) proof = {T(witness->proof), T(witness->rival)};
    DetailJson knobs = DetailJson::array();
    std::set<std::string> names;
    for (const auto& [knob, value] : result.knobs_asked) names.insert(knob);
    for (const auto& [knob, value] : result.knobs_effective) names.insert(knob);
    for (const auto& knob : names)
      knobs.push_back(
          {T(knob), T(LookupOr(result.knobs_asked, knob)), T(LookupOr(result.knobs_effective, knob))});
    std::vector<std::string> notes = result.notes;
    for (const NonFiniteBirth& birth : result.not_finite) notes.push_back(BirthSentence(birth, ""));
    if (const std::string proved = ProvedOnSentence(result.proved_on); !proved.empty())
      notes.push_back(proved);
    return {CaseOf(result.id),
            T(result.backend),
            T(std::string(Name(result.status))),
            T(result.reason),
            T(outcome),
            T(ReproTemplate(result)),
            Values(result),
            proof,
            knobs,
            findings,
            List(notes)};
  }

  DetailJson Values(const CaseResult& result) {
    DetailJson values = DetailJson::array();
    for (const auto& [name, value] : result.ValuesInOrder()) {
      const Classification& classification = value->classification;
      std::string error =
          fmt::format("{} of {} elements checked", classification.checked, classification.elements);
      if (classification.checked > 0) error += ", " + ErrorText(classification);
      std::vector<std::string> says = TextsOf(classification.says);
      for (const auto& region : classification.regions) says.push_back(region.where + ": " + region.label);
      values.push_back({T(name), T(Describe(value->dtype, value->shape)), T(CellText(*value)),
                        T(classification.label), T(error), T(std::string(Name(value->contract))),
                        List(says)});
    }
    return values;
  }

  /// The last stage, and those that a divergence names. Times are left out: they differ from run to run, so no two
  /// lines would be equal.
  DetailJson Trace(const CaseResult& result, const CellDetails& more) {
    if (more.trace.empty()) return 0;
    OpTreeOptions tree{.console = {.columns = 160}};
    std::vector<TraceNode> nodes = more.trace;
    for (TraceNode& node : nodes) node.us.reset();
    tree.stages.emplace_back(LastStage(nodes));
    for (const Divergence* divergence : findings_.Of(result)) {
      if (divergence->kind == DivergenceKind::kGraphVsExecution)
        tree.stages.insert(tree.stages.end(), divergence->stages.begin(), divergence->stages.end());
    }
    return List(LinesOf(DrawOpTree(nodes, result.casts, tree)));
  }

  DetailJson Errors(const CaseResult& result, const CellDetails& more) {
    DetailJson list = DetailJson::array();
    for (const auto& name : result.value_order) {
      const auto found = more.errors.find(name);
      if (found == more.errors.end() || found->second.ulp.empty()) continue;
      list.push_back({T(name), found->second.elements, found->second.ulp.size(), Codes(found->second.ulp),
                      T(Largest(found->second.ulp))});
    }
    return list;
  }

  const RunReport& report_;
  const ReportDetails& details_;
  const FindingsOfCells findings_;
  const Witnesses witnesses_;
  TextTable texts_;
  std::map<std::string, size_t> case_places_;
  std::map<const Divergence*, size_t> find_places_;
  std::vector<DetailJson> cases_, finds_;
  size_t shared_ = 0;  ///< bytes of both
};

}  // namespace

std::vector<const CaseResult*> CellsWithDetails(const RunReport& report) {
  const FindingsOfCells findings(report);
  std::vector<const CaseResult*> ranked[3];
  for (const CaseResult& result : report.results) {
    const auto& of_cell = findings.Of(result);
    const bool parts =
        std::ranges::any_of(of_cell, [](const Divergence* divergence) { return PartsClasses(*divergence); });
    if (IsFailing(result.status)) {
      ranked[0].push_back(&result);
    } else if (parts) {
      ranked[1].push_back(&result);
    } else if (!of_cell.empty() || result.status == Status::kXfail) {
      ranked[2].push_back(&result);
    }
  }
  std::vector<const CaseResult*> cells;
  for (const auto& rank : ranked) cells.insert(cells.end(), rank.begin(), rank.end());
  return cells;
}

HtmlDetails CollectHtmlDetails(const RunReport& report, const ReportDetails& details, size_t bytes) {
  return Collector(report, details).Collect(bytes);
}

}  // namespace ulpscope
