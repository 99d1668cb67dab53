// The knobs: one row each, with the values that may be requested, and the backends that take it.
//
// An adapter offers what its rows list and holds, in one table of its own, how each is set and read back.
// Python reads the same rows from ulpscope_adapter/words.json.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/result.h"

namespace ulpscope {

struct KnobRow {
  enum class Form {
    kListed,  ///< one of `values`
    kCount,   ///< a positive integer; `values` are examples
    kOpen,    ///< any text; the library knows more words than `values`
    kName,    ///< the name of an environment: letters, digits, and . _ - inside
  };
  enum class Use {
    kSetting,  ///< how a backend computes: a case may ask for it
    kChoice,   ///< what runs, not how: which backend, which fault, which record
    kPlanted,  ///< of a backend that is a test's subject
  };
  std::string_view name;
  Form form = Form::kListed;
  std::vector<std::string> values;  ///< offered, the default first; empty: only the adapter knows
  std::vector<std::string> takers;  ///< backends, BACKEND@DEVICE where on that device alone; "*" is every one
  std::string_view about;
  Use use = Use::kSetting;
};

/// The Python environment .venv-NAME that an adapter runs in: which version computes. The harness acts on it, and
/// every adapter written with the Python SDK reads it back.
inline constexpr std::string_view kEnvKnob = "env";

std::span<const KnobRow> KnobRows();
/// Null for an unknown word: an adapter outside this tree may have knobs of its own.
const KnobRow* FindKnob(std::string_view name);

/// The devices on which `backend` takes the knob: "" is every one; empty when it does not take it.
std::vector<std::string> DevicesOf(const KnobRow& knob, std::string_view backend);

/// Whether a knob chooses what runs, not how. Such a knob has no default to be compared with.
bool ChoosesWhatRuns(std::string_view knob);

/// Fails where `value` is none of a knob's; an unknown knob's is the adapter's to judge.
Result<void> CheckKnobValue(std::string_view knob, std::string_view value);

/// Knob -> values, the default first, of the rows that a backend takes on a device ("cuda:1" is a "cuda").
std::map<std::string, std::vector<std::string>> KnobsTakenBy(std::string_view backend,
                                                             std::string_view device);

/// Why a backend does not take a knob: who does, and what it is. An unknown knob is called one.
std::string WhyNotTaken(std::string_view knob, std::string_view backend, std::string_view device);

}  // namespace ulpscope
