// From results to cells.
#include "reports/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "harness/base/distinct.h"
#include "harness/base/find.h"
#include "reports/cell.h"
#include "reports/findings.h"

namespace ulpscope {
namespace {

using Tone = MatrixCell::Tone;

using Place = std::tuple<std::string, std::string, std::string>;  ///< case, backend, value

/// The members of divergences that are marked. In an outcome divergence only the side that refused is marked: all
/// others are members too, and a mark on every cell would be meaningless. Differences of order and of casts are not
/// differences of class and are not marked.
std::set<Place> Marks(const RunReport& report) {
  std::set<Place> marks;
  for (const Divergence& divergence : report.divergences) {
    if (!PartsClasses(divergence)) continue;
    std::vector<std::string> values = divergence.also;
    values.insert(values.begin(), divergence.value);
    for (const auto& group : divergence.backends) {
      for (const auto& value : values) {
        for (const auto& backend : group) marks.insert({divergence.case_id, backend, value});
      }
    }
  }
  return marks;
}

std::string OutcomeText(const CaseResult& result) {
  if (result.status == Status::kSkip) return "skip";
  if (result.outcome.kind == OutcomeKind::kRaised) return "raises";
  return std::string(Name(result.status));
}

bool HasValues(const CaseResult& result) {
  return result.outcome.kind == OutcomeKind::kCompleted && result.status != Status::kSkip &&
         result.status != Status::kNotRun;
}

class Builder {
 public:
  explicit Builder(const RunReport& report) : marks_(Marks(report)) {
    for (const Place& place : marks_) marked_.emplace(std::get<0>(place), std::get<2>(place));
    for (const auto& result : report.results) {
      results_[result.id][result.backend] = &result;
      backends_.Add(result.backend);
      ids_.Add(result.id);
      if (result.status != Status::kSkip) shown_.Add(result.backend);
    }
  }

  Matrix Build() {
    Matrix matrix;
    for (const auto& backend : backends_.texts()) {
      const bool shown = shown_.Has(backend);
      (shown ? matrix.backends : matrix.skipped).push_back(backend);
    }
    for (const auto& id : ids_.texts()) {
      const auto& of_case = results_.at(id);
      const auto all = [&](std::initializer_list<Status> statuses) {
        return std::ranges::all_of(
            of_case, [&](const auto& result) { return Contains(statuses, result.second->status); });
      };
      if (all({Status::kSkip})) {
        ++matrix.skipped_cases;
      } else if (!all({Status::kSkip, Status::kNotRun})) {
        matrix.cases.push_back(BuildCase(id, matrix.backends));
      }
    }
    return matrix;
  }

 private:
  static void AddOnce(std::vector<std::string>* names, const std::string& name) {
    if (!Contains(*names, name)) names->push_back(name);
  }

  const CaseResult* Find(const std::string& id, const std::string& backend) const {
    const auto& of_case = results_.at(id);
    return LookupOr(of_case, backend);
  }

  MatrixCase BuildCase(const std::string& id, const std::vector<std::string>& backends) const {
    std::vector<std::string> labels;
    for (const auto& backend : backends) {
      const CaseResult* result = Find(id, backend);
      if (result == nullptr || !HasValues(*result)) continue;
      for (const auto& value : result->value_order) AddOnce(&labels, value);
    }
    for (const auto& backend : backends) {
      const CaseResult* result = Find(id, backend);
      if (result == nullptr || !HasValues(*result)) continue;
      for (const auto& [name, text] : result->observations) {
        if (name.ends_with("_dtype")) AddOnce(&labels, name);
      }
    }
    if (labels.empty()) labels.push_back("");
    MatrixCase made{.id = id};
    for (size_t row = 0; row < labels.size(); ++row) {
      const auto letters = LettersOf(id, labels[row], backends);
      MatrixRow cells{.label = labels[row]};
      const bool is_one = !letters.empty() && std::ranges::all_of(letters, [&](const auto& each) {
        return each.second == letters.begin()->second;
      });
      // A difference before this value shows in its bits too, although no finding is about it.
      std::set<std::string> classes;
      for (const auto& [backend, letter] : letters)
        classes.insert(CellText(Find(id, backend)->values.at(labels[row])));
      const bool lettered = marked_.contains({id, labels[row]}) || (!is_one && classes.size() > 1);
      const auto shown = lettered ? letters : std::map<std::string, std::string>();
      for (const auto& backend : backends)
        cells.cells.push_back(BuildCell(Find(id, backend), labels, row, shown));
      const bool observed = labels[row].ends_with("_dtype") && letters.empty();
      const auto given = static_cast<size_t>(std::ranges::count_if(cells.cells, [](const MatrixCell& cell) {
        return !cell.text.empty() && cell.tone != Tone::kFaint;
      }));
      cells.same_bits = observed || (is_one && letters.size() == given);
      made.rows.push_back(std::move(cells));
    }
    return made;
  }

  /// A letter for each different tensor, in the order of the columns; after Z twice the letter.
  std::map<std::string, std::string> LettersOf(const std::string& id, const std::string& label,
                                               const std::vector<std::string>& backends) const {
    std::map<std::string, std::string> of_bits, letters;
    for (const auto& backend : backends) {
      const CaseResult* result = Find(id, backend);
      if (result == nullptr || !HasValues(*result)) continue;
      const auto value = result->values.find(label);
      if (value == result->values.end() || value->second.bits.empty()) continue;
      const size_t next = of_bits.size();
      const std::string letter = std::string(1 + next / 26, static_cast<char>('A' + next % 26));
      letters[backend] = of_bits.try_emplace(value->second.bits, letter).first->second;
    }
    return letters;
  }

  /// The status is shown in the rows of the values that it is about, if there are any; else in the first.
  static bool BearsStatus(const CaseResult& result, const std::vector<std::string>& labels, size_t row) {
    const auto is_about = [&](const std::string& label) { return Contains(result.status_values, label); };
    return std::ranges::any_of(labels, is_about) ? is_about(labels[row]) : row == 0;
  }

  MatrixCell BuildCell(const CaseResult* result, const std::vector<std::string>& labels, size_t row,
                       const std::map<std::string, std::string>& letters) const {
    const std::string& label = labels[row];
    if (result == nullptr) return {.text = "-", .tone = Tone::kFaint};
    const bool failing = IsFailing(result->status);
    if (!HasValues(*result) || label.empty()) {
      if (row > 0) return {};
      MatrixCell cell{.text = OutcomeText(*result), .tone = failing ? Tone::kFailing : Tone::kPlain};
      if (result->status == Status::kSkip) cell.tone = Tone::kFaint;
      Mark(*result, "", letters, &cell);
      if (failing && result->outcome.kind == OutcomeKind::kRaised)
        cell.text += " " + std::string(Name(result->status));
      return cell;
    }
    MatrixCell cell;
    if (const auto value = result->values.find(label); value != result->values.end()) {
      cell.text = CellText(value->second);
    } else {
      const auto observation = result->observations.find(label);
      cell.text = observation == result->observations.end() ? "none" : Brief(observation->second);
    }
    Mark(*result, label, letters, &cell);
    if (BearsStatus(*result, labels, row)) {
      if (result->status != Status::kPass) cell.text += " " + std::string(Name(result->status));
      if (failing) cell.tone = Tone::kFailing;
    }
    return cell;
  }

  /// The letter of its bits; a refusal has none.
  void Mark(const CaseResult& result, const std::string& label,
            const std::map<std::string, std::string>& letters, MatrixCell* cell) const {
    const auto letter = letters.find(result.backend);
    if (letter != letters.end()) cell->text += fmt::format(" {}", letter->second);
    if (marks_.contains({result.id, result.backend, label}) && cell->tone == Tone::kPlain)
      cell->tone = Tone::kDivergent;
  }

  std::set<Place> marks_;
  std::set<std::pair<std::string, std::string>> marked_;  ///< case and value of those
  std::map<std::string, std::map<std::string, const CaseResult*>> results_;
  Distinct ids_, backends_, shown_;
};

}  // namespace

Matrix BuildMatrix(const RunReport& report) { return Builder(report).Build(); }

std::vector<std::string> LegendOf(const Matrix& matrix) {
  std::set<std::string> cells;
  for (const MatrixCase& c : matrix.cases) {
    for (const MatrixRow& row : c.rows) {
      for (const MatrixCell& cell : row.cells) cells.insert(cell.text);
    }
  }
  return CellLegend(cells);
}

bool AllAgree(const MatrixRow& row) {
  const MatrixCell* first = nullptr;
  size_t compared = 0;
  for (const MatrixCell& cell : row.cells) {
    if (cell.text.empty() || cell.tone == Tone::kFaint) continue;
    if (cell.tone != Tone::kPlain || (first != nullptr && cell.text != first->text)) return false;
    first = &cell;
    ++compared;
  }
  return compared >= 2;
}

bool Differs(const MatrixRow& row) {
  const MatrixCell* first = nullptr;
  for (const MatrixCell& cell : row.cells) {
    if (cell.text.empty() || cell.tone == Tone::kFaint) continue;
    if (cell.tone != Tone::kPlain || (first != nullptr && cell.text != first->text)) return true;
    first = &cell;
  }
  return false;
}

bool IsFailing(Status status) {
  return status != Status::kPass && status != Status::kSkip && status != Status::kXfail;
}

}  // namespace ulpscope
