// ulpscope-recorded: replays rows that real hardware computed, for inputs that are exactly those rows.
//
//     ulpscope-recorded DATA_FOLDER
//
// It computes nothing. A program is one baddbmm whose three operands are, bit for bit, the first rows of one
// record (README.md describes a record); anything else is refused with the reason, since no hardware computes
// here.
#include <cstring>
#include <filesystem>
#include <map>
#include <string>

#include "backends/sdk/adapter.h"
#include "harness/base/build_info.h"
#include "harness/base/find.h"
#include "harness/num/float_format.h"

namespace ulpscope::recorded {
namespace {

namespace fs = std::filesystem;
using sdk::RunReply;
using sdk::RunRequest;
using sdk::TensorMap;

constexpr const char* kAny = "any";

/// The operands of the one step that a record can answer.
struct Question {
  const TensorData* a = nullptr;  ///< [rows, 1, K]
  const TensorData* b = nullptr;  ///< [rows, K, 1]
  const TensorData* c = nullptr;  ///< [rows, 1, 1], in the dtype of the result
  std::string name;               ///< of the result
};

Result<Question> Ask(const RunRequest& request) {
  const auto& steps = request.program.steps;
  if (steps.size() != 1 || steps[0].op != "baddbmm" || steps[0].of.size() != 3 || !steps[0].out.empty())
    return Fail("only a program of one baddbmm was recorded");
  const sdk::Step& step = steps[0];
  for (const char* factor : {"alpha", "beta"}) {
    const auto value = ReadNumber(step, factor, 1.0);
    if (!value || *value != 1) return Fail(std::string(factor) + " is 1 in every record");
  }
  if (request.program.observe != std::vector<std::string>{step.as})
    return Fail("only the result of the baddbmm was recorded");
  std::vector<const TensorData*> operands;
  for (const sdk::Operand& operand : step.of) {
    const auto tensor = request.inputs.find(operand.name);
    if (tensor == request.inputs.end()) return Fail("the operands of a record are tensors");
    operands.push_back(&tensor->second);
  }
  const Question question{.a = operands[1], .b = operands[2], .c = operands[0], .name = step.as};
  const Shape& a = question.a->shape;
  if (a.size() != 3 || a[0] < 1 || a[1] != 1 || question.b->shape != Shape{a[0], a[2], 1} ||
      question.c->shape != Shape{a[0], 1, 1})
    return Fail("records have the shapes [rows, 1, 1] + [rows, 1, K] @ [rows, K, 1]");
  DType result = question.a->dtype;
  if (step.Find("out_dtype") != nullptr) {
    result = ULPSCOPE_TRY(ReadDType(step, "out_dtype"));
  }
  if (result != question.c->dtype) return Fail("in the records the addend has the dtype of the result");
  return question;
}

/// True if `rows` are the first of the record's tensor `whole`, bit for bit.
bool IsFront(const TensorData& rows, const TensorMap& record, const std::string& name) {
  const auto whole = record.find(name);
  if (whole == record.end() || whole->second.dtype != rows.dtype || rows.bytes.empty()) return false;
  return rows.bytes.size() <= whole->second.bytes.size() &&
         std::memcmp(rows.bytes.data(), whole->second.bytes.data(), rows.bytes.size()) == 0;
}

/// The first `count` elements of a recorded float32 tensor in `dtype`; the values of d_fp16 are float16
/// values.
TensorData Front(const TensorData& whole, int64_t count, DType dtype) {
  TensorData rows = TensorData::Zeros(dtype, {count, 1, 1});
  for (int64_t i = 0; i < count; ++i) rows.Set(i, RoundTo(whole.At(i), *FormatOf(dtype)));
  return rows;
}

const char* ResultFor(DType dtype) { return dtype == DType::kFloat16 ? "d_fp16" : "d_fp32"; }

class RecordedAdapter : public sdk::Adapter {
 public:
  explicit RecordedAdapter(fs::path folder) : folder_(std::move(folder)) {}

  sdk::Capabilities Hello(const sdk::HelloRequest& request) override {
    sdk::Capabilities can;
    can.name = "recorded";
    can.backends = {"recorded"};
    can.versions = {{"ulpscope", std::string(Version())}};
    can.ops = {"baddbmm"};
    can.dtypes = {"float32", "bfloat16", "float16"};
    can.capabilities = {"recorded"};
    can.error = Load();
    can.knobs = {{"threads", {"1"}}, {"record", {kAny}}};
    for (const auto& [name, record] : records_) can.knobs["record"].push_back(name);
    wanted_ = LookupOr(request.knobs, "record", kAny);
    if (wanted_ != kAny && !records_.contains(wanted_) && can.error.empty())
      can.error = "there is no record '" + wanted_ + "'";
    return can;
  }

  RunReply Run(const RunRequest& request) override {
    const auto question = Ask(request);
    if (!question) return RunReply::Unsupported(question.error().message);
    const int64_t rows = question->a->shape[0];
    const DType dtype = question->c->dtype;
    std::string refusal = "these inputs are not rows of " +
                          (wanted_ == kAny ? "any record" : "record " + wanted_) + ", bit for bit";
    std::string found;
    // Records share operands (the tf32 ones do), so one is known by all three.
    for (const auto& [name, record] : records_) {
      if (wanted_ != kAny && wanted_ != name) continue;
      if (record.at("a").shape[1] != question->a->shape[2]) continue;
      if (!IsFront(*question->a, record, "a") || !IsFront(*question->b, record, "b")) continue;
      if (!(Front(record.at("c"), rows, dtype) == *question->c)) {
        refusal = "the addend is not that of record " + name;
      } else if (!record.contains(ResultFor(dtype))) {
        refusal = "record " + name + " has no results stored as " + std::string(ulpscope::Name(dtype));
      } else if (!found.empty()) {
        return RunReply::Unsupported("records " + found + " and " + name +
                                     " have these rows; record=NAME says which is meant");
      } else {
        found = name;
      }
    }
    if (found.empty()) return RunReply::Unsupported(refusal);
    RunReply reply;
    reply.tensors[question->name] = Front(records_.at(found).at(ResultFor(dtype)), rows, dtype);
    reply.knobs = {{"threads", "1"}, {"record", found}};
    reply.notes = {"replayed from record " + found + ", nothing was computed"};
    return reply;
  }

 private:
  /// Reads every record. "" or what is wrong with one.
  std::string Load() {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder_, error)) {
      if (entry.path().extension() != ".safetensors") continue;
      auto record = sdk::ReadSafetensors(entry.path());
      if (!record) return record.error().Text();
      for (const char* name : {"a", "b", "c", "d_fp32"}) {
        if (!record->contains(name))
          return entry.path().filename().string() + " has no tensor '" + name + "'";
      }
      if (record->at("a").shape.size() != 2) return entry.path().filename().string() + ": 'a' is no matrix";
      records_[entry.path().stem().string()] = std::move(*record);
    }
    return records_.empty() ? "no records in " + folder_.string() : "";
  }

  fs::path folder_;
  std::map<std::string, TensorMap> records_;
  std::string wanted_ = kAny;
};

}  // namespace
}  // namespace ulpscope::recorded

int main(int argc, char** argv) {
  ulpscope::recorded::RecordedAdapter adapter(argc == 2 ? argv[1] : "");
  return ulpscope::sdk::ServeAdapter(adapter);
}
