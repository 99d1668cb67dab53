// A case: the program, its inputs, what is observed, what is demanded of it and on whose authority.
//
// A case is data. casefile/ decodes it from YAML, run/ sends its program to an adapter, oracles/ evaluates it
// exactly. Everything here is fully resolved: sweeps are expanded, names are checked, every case stands
// alone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "harness/base/result.h"
#include "harness/model/tensor.h"
#include "harness/words/facets.h"
#include "harness/words/ops.h"
#include "harness/words/program.h"

namespace ulpscope {

struct TensorSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  std::vector<int64_t> strides = {};  ///< in elements; empty = contiguous
  bool requires_grad = false;
  Attr fill = {};  ///< as written; casefile/generate.h turns it into bits
  SourcePos pos = {};
};

/// A word that a case allows for a facet, and what it is as each facet has it; nothing where that facet has no such word.
struct DemandWord {
  DemandWord(std::string written);  // NOLINT: a demand is written in words
  DemandWord(const char* written) : DemandWord(std::string(written)) {}

  std::string text;
  std::optional<RoundSpec> in, prod, mid, out;
  std::optional<AccSpec> acc;
  const AccClass* acc_class = nullptr;

  bool Holds(const AccSpec& other) const {
    return acc == other || (acc_class != nullptr && acc_class->holds(other));
  }
  bool operator==(const DemandWord& other) const { return text == other.text; }
  bool operator==(std::string_view word) const { return text == word; }
  bool operator==(const std::string& word) const { return text == word; }
  bool operator==(const char* word) const { return text == word; }
};
using DemandWords = std::vector<DemandWord>;
std::vector<std::string> TextsOf(const DemandWords& words);

/// Allowed words for a value: dtype and, per facet (in prod acc mid out), the words of the precision models.
struct ValueDemand {
  std::optional<std::string> dtype;
  std::map<std::string, DemandWords> facets;  ///< keys: in prod acc mid out; in also as in.<operand>
};

struct RaisedMatch {
  std::string error_class;  ///< empty = any
  std::string match;        ///< ECMAScript regular expression searched in the text; empty = any
};

enum class ContractStatus { kNone, kSpecified, kDocumented, kDeFacto, kUnspecified };

struct Contract {
  ContractStatus status = ContractStatus::kNone;
  std::string source;
  bool accept_any = true;  ///< `accept: any`, or no contract at all
  std::map<std::string, ValueDemand> values;
  std::optional<RaisedMatch> raised;  ///< raising is allowed (or, without values, demanded)
  /// The case's own inputs are joined by companions that decide what is demanded (harness/casefile/prove.h).
  bool prove = false;
  /// Values of one backend that are to have the same bits, and that are to be of one class; each two or more, or empty.
  std::vector<std::string> equal, same_class;
  /// Anything at all is demanded.
  bool demands() const { return !accept_any || !equal.empty() || !same_class.empty(); }
};

/// What is known today of one backend; the first entry whose versions match applies. A change fails: it is
/// news.
/// How many conversions a stage of the trace shows.
struct CastCount {
  std::string stage;               ///< one of kTraceStages
  std::string from = {}, to = {};  ///< dtypes; empty = any
  int64_t count = 0;
};

struct Expectation {
  std::string versions;  ///< "torch>=2.9,<2.16"; empty = any
  std::optional<RaisedMatch> raised;
  std::optional<std::string> unsupported;  ///< a regular expression for the reason
  std::map<std::string, ValueDemand> values;
  std::map<std::string, std::string> observations;  ///< e.g. w.grad_metadata_dtype: bfloat16
  std::vector<CastCount> casts;                     ///< only where the case observes `trace`
};

struct Case {
  std::string id;  ///< path + name, "seeds/matmul_out/as_posted[k=64]"
  std::string about;
  std::string source;
  std::vector<std::string> tags;  ///< tiers smoke < ci < nightly are tags
  std::vector<TensorSpec> tensors;
  std::vector<Step> program;
  std::vector<std::string> observe;  ///< values, "w.grad", "w.grad_metadata_dtype", "peak_bytes"
  Contract contract;
  std::map<std::string, std::vector<Expectation>> expect;  ///< by backend string
  std::map<std::string, std::string> knobs;
  std::map<std::string, std::string> requires_;  ///< {device: cuda}
  std::string companion_of;  ///< id of the case whose contract these inputs prove; empty for a case of a file
  /// Of a companion: what the contract of that case says. Its own says nothing.
  std::map<std::string, ValueDemand> asked_of;
  SourcePos pos;           ///< tensors that it takes from files stand beside this file
  SourcePos written = {};  ///< of a case from a record: where a person wrote it

  const TensorSpec* FindTensor(std::string_view name) const;
};

}  // namespace ulpscope
