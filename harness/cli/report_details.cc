// Reading details.
#include "harness/cli/report_details.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "harness/base/deadline.h"
#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/casefile/generate.h"
#include "harness/workspace/case_yaml.h"
#include "oracles/oracle.h"

namespace ulpscope {
namespace {

/// More elements than a plot has pixels are not computed again.
constexpr int64_t kMostElements = 1024;
/// A case whose inputs alone take seconds to make again gets no plot: a page is written in less.
constexpr int64_t kMostInputElements = 1 << 18;

struct ExactValues {
  std::vector<int64_t> elements;
  std::vector<Reference> references;
};

/// Details of the cells of one run; what is exact about a case is computed once for all of its backends.
class DetailReader {
 public:
  DetailReader(const RecordedRun& run, const Workspace& workspace) : run_(run), cases_(workspace) {
    for (const RecordedResult& result : run.results) results_[{result.case_id, result.backend}] = &result;
  }

  Explanation Case(const std::string& id) const {
    const auto* found = cases_.Find(id);
    return found == nullptr ? Explanation() : ExplanationOf(*found);
  }

  std::vector<TraceNode> Trace(const CaseResult& result) const {
    const auto found = results_.find({result.id, result.backend});
    if (found == results_.end()) return {};
    RecordedResult record = *found->second;
    return LoadTrace(run_, record) ? std::move(record.observation.trace) : std::vector<TraceNode>();
  }

  /// Records that cannot be read are not shown: the report itself states it where it matters.
  CellDetails Cell(const CaseResult& result) {
    CellDetails details;
    const auto found = results_.find({result.id, result.backend});
    if (found == results_.end()) return details;
    RecordedResult record = *found->second;
    if (LoadTrace(run_, record)) details.trace = std::move(record.observation.trace);
    if (!LoadTensors(run_, record)) return details;
    for (const auto& value : record.observation.values) {
      const auto& tensor = value.second;
      if (!IsFloating(tensor.dtype)) continue;
      ErrorSample sample{.elements = tensor.size()};
      // An interrupted run stops the plots too.
      const bool computed = BeforeDeadline([&] {
        const ExactValues& exact = Exact(result.id, value.first, tensor.shape);
        for (size_t i = 0; i < exact.references.size(); ++i)
          sample.ulp.push_back(ErrorOf(tensor, exact.elements[i], exact.references[i]));
      });
      if (computed && !sample.ulp.empty()) details.errors[value.first] = std::move(sample);
    }
    return details;
  }

 private:
  static double ErrorOf(const TensorData& tensor, int64_t element, const Reference& reference) {
    const double observed = tensor.At(element);
    const bool same = SameValue(observed, reference.hi);
    if (!std::isfinite(observed) || !std::isfinite(reference.hi))
      return same ? 0 : std::numeric_limits<double>::quiet_NaN();
    return UlpError(observed, reference.value(), *FormatOf(tensor.dtype));
  }

  /// Cells come by what they are about, so that those of one case do not come together: what was found is kept.
  const ExactValues& Exact(const std::string& id, const std::string& value, const Shape& shape) {
    const auto [found, added] = exact_.try_emplace({id, value});
    ExactValues& exact = found->second;
    if (!added) return exact;
    if (id != open_case_) {
      oracle_ = Open(id);
      open_case_ = id;
    }
    if (oracle_ == nullptr) return exact;
    const auto described = oracle_->Describe(value);
    if (!described || described->shape != shape) return exact;
    const int64_t size = ElementCount(shape), looked = std::min(size, kMostElements);
    for (int64_t i = 0; i < looked; ++i) exact.elements.push_back(i * size / looked);
    exact.references = oracle_->References(value, exact.elements);
    return exact;
  }

  std::unique_ptr<CaseOracle> Open(const std::string& id) const {
    const auto* test_case = cases_.Find(id);
    if (test_case == nullptr) return nullptr;
    int64_t elements = 0;
    for (const TensorSpec& tensor : test_case->tensors) elements += ElementCount(tensor.shape);
    if (elements > kMostInputElements) return nullptr;
    auto inputs = MakeInputs(*test_case, run_.header.seed);
    if (!inputs) return nullptr;
    auto oracle = OpenCaseOracle(*test_case, std::move(*inputs));
    return oracle ? std::move(*oracle) : nullptr;
  }

  const RecordedRun& run_;
  CaseIndex cases_;
  std::map<std::pair<std::string, std::string>, const RecordedResult*> results_;
  std::string open_case_;
  std::unique_ptr<CaseOracle> oracle_;
  std::map<std::pair<std::string, std::string>, ExactValues> exact_;
};

/// Origins of a step, or of the steps in a scope: each once.
void NoteOrigins(const std::vector<Step>& steps, std::vector<std::string>* origins) {
  for (const Step& step : steps) {
    if (std::string text = step.at.Text(); !text.empty() && !Contains(*origins, text))
      origins->push_back(std::move(text));
    NoteOrigins(step.steps, origins);
  }
}

}  // namespace

Explanation ExplanationOf(const Case& test_case) {
  Explanation explanation{
      .about = test_case.about,
      .source = test_case.source,
  };
  std::vector<std::string> tensors;
  for (const TensorSpec& tensor : test_case.tensors)
    tensors.push_back(tensor.name + " " + Describe(tensor.dtype, tensor.shape));
  explanation.tensors = Join(tensors, ", ");
  for (const Step& step : test_case.program) {
    explanation.program.push_back(StepYaml(step));
    std::vector<std::string> origins;
    NoteOrigins({step}, &origins);
    explanation.origins.push_back(origins.empty() ? "" : "at " + Join(origins, "; "));
  }
  return explanation;
}

ReportDetails DetailsOf(const RecordedRun& run, const Workspace& workspace) {
  const auto reader = std::make_shared<DetailReader>(run, workspace);
  return {.of_case = [reader](const std::string& id) { return reader->Case(id); },
          .of_cell = [reader](const CaseResult& result) { return reader->Cell(result); },
          .of_trace = [reader](const CaseResult& result) { return reader->Trace(result); }};
}

}  // namespace ulpscope
