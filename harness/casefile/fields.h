// THE field table: which keys a case file has, what may stand at each, and what each is for.
//
// One table, three readers: the structure check of the loader (structure.h), the JSON Schema (schema.h) and
// the suggestions in error messages. A Type defines what may stand at a place; the decoders (decode_*.cc) run
// only on trees that passed it, and add what no table can express: names that are defined, counts that agree,
// budgets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/casefile/words.h"

namespace ulpscope {

struct Type;

enum class Presence { kOptional, kRequired };

struct Field {
  std::string_view key;
  const Type* type = nullptr;
  Presence presence = Presence::kOptional;
  std::string_view about = {};
};

/// The type of one place of a case file. The kind decides which members have a meaning.
struct Type {
  enum class Kind {
    kText,      ///< a scalar that `pattern` accepts (null pattern: any scalar)
    kWord,      ///< a scalar out of `words`
    kBoolean,   ///< plain true or false, nothing else
    kInteger,   ///< an integer from low to high
    kNumber,    ///< a number (see number.h)
    kList,      ///< min_items to max_items times *item
    kMap,       ///< `fields`; other keys only if `rest` is set, and then they fit rest_key
    kTagged,    ///< a map whose key `tag` selects one of `variants`
    kEither,    ///< *scalar, *list or *map, by YAML kind (null: not allowed)
    kAny,       ///< anything of scalars, lists and maps
    kDeferred,  ///< checked by someone else: cases, one by one, after their sweeps are expanded
  };
  struct Variant {
    std::string_view word;  ///< ends in "*": every word with this beginning
    std::vector<Field> fields = {};
    const Type* rest = nullptr;  ///< other keys, for open argument lists
  };

  Kind kind = Kind::kAny;
  std::string_view what = {};        ///< "a tensor": for messages
  std::string_view definition = {};  ///< name under "definitions" in the schema; empty = written in place
  const Pattern* pattern = nullptr;
  std::vector<std::string> words = {};
  int64_t low = INT64_MIN, high = INT64_MAX;
  const Type* item = nullptr;
  size_t min_items = 0, max_items = SIZE_MAX;
  std::vector<Field> fields = {};
  const Type* rest = nullptr;
  const Pattern* rest_key = nullptr;
  size_t exactly_keys = 0;  ///< 0 = any number; 1 = a choice of one
  std::string_view tag = {};
  std::vector<Variant> variants = {};
  const Type* scalar = nullptr;
  const Type* list = nullptr;
  const Type* map = nullptr;
};

const Type& FileType();      ///< a case file
const Type& FileHeadType();  ///< a case file whose cases are not checked
const Type& CaseType();      ///< one case, its sweep expanded
const Type& SweepType();
const Type& DeviationsType();  ///< cases/deviations.yaml

// Parts that decoders or the op table refer to.
const Type& TextType();
const Type& NameType();
const Type& NumberType();
const Type& IntegerType();
const Type& BooleanType();
const Type& ShapeType();  ///< extents from 1 to 2^28
const Type& DTypeType();
const Type& StepType();
const Type& StepsType();
const Type& TensorsType();
const Type& ContractType();
const Type& ExpectType();
const Type& KnobsType();
const Type& RequiresType();
const Type& TagsType();

}  // namespace ulpscope
