// Decoders: from trees that passed the structure check to the types of model/, with the checks that no table
// can state.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/casefile/known_names.h"
#include "harness/casefile/structure.h"
#include "harness/model/case.h"

namespace ulpscope {

inline constexpr int64_t kMaxCaseElements = int64_t{1} << 28;
inline constexpr int64_t kMaxCaseBytes = int64_t{1} << 30;

/// The memory that a case may allocate: the sum over its tensors and the buffers that its program requests.
class Budget {
 public:
  /// Adds `span` elements of `dtype`; an error at `mark` when the case goes over the budget (once).
  void Spend(const Mark& mark, int64_t span, DType dtype, ErrorSink& errors);

 private:
  int64_t elements_ = 0, bytes_ = 0;
  bool told_ = false;
};

/// Product of the extents, or a number above every budget when it is larger.
int64_t CappedElementCount(const Shape& shape);

/// The names that a program can use, and whether it did.
struct NameTable {
  struct Entry {
    Mark mark;
    bool is_tensor = false;
    bool requires_grad = false;
    bool used = false;
    std::string attribute = {};  ///< the attribute whose value this name is, if no table has its type
  };
  std::map<std::string, Entry, std::less<>> entries;
  bool has_backward = false;

  /// Adds `name`, or an error when it is defined already or reserved.
  void Define(const Node& name, Entry entry, ErrorSink& errors);
  /// Marks `name` used, or adds an error at `mark`. Returns the entry or null.
  Entry* Use(const Mark& mark, const std::string& name, ErrorSink& errors);
  std::vector<std::string> Names() const;
};

/// An attribute as its field type reads it; kAny by the look of the scalar.
Attr DecodeAttr(const Node& node, const Type& type, ErrorSink& errors);
/// A number: int64 when written as an integer, else double (rounded once).
Attr DecodeNumber(const Node& node, ErrorSink& errors);

TensorSpec DecodeTensor(const Node& name, const Node& node, Budget& budget, ErrorSink& errors);
std::vector<Step> DecodeSteps(const Node& list, NameTable& names, Budget& budget, ErrorSink& errors);

/// `observed`: the values that contract and expect may name. `case_name` is in errors, since defaults of a file are far
/// from the case.
struct DemandContext {
  const std::vector<std::string>& observed;
  const std::string& case_name;
  const Vocabulary& vocabulary;
};
Contract DecodeContract(const Node& node, const DemandContext& context, ErrorSink& errors);
void DecodeExpect(const Node& node, const DemandContext& context,
                  std::map<std::string, std::vector<Expectation>>& expect, ErrorSink& errors);

/// `file` is the root of the case file: its keys are the defaults of the cases.
Case DecodeCase(const Node& node, const Node& file, const std::string& id, const Vocabulary& vocabulary,
                ErrorSink& errors);

}  // namespace ulpscope
