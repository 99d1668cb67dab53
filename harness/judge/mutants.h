// Rules and numbers of the classifier that a test may switch off or scale: tests/mutants shows by it which test notices each.
//
// In a build with ULPSCOPE_MUTANTS the environment variable ULPSCOPE_MUTANT names one: "rule NAME" switches that rule off, "number NAME
// FACTOR" multiplies that number. In every other build a rule is never off and a number is a constant.
#pragma once

#include <string_view>

#ifdef ULPSCOPE_MUTANTS

#include <cmath>
#include <cstdlib>
#include <string>
#include <type_traits>

namespace ulpscope {

inline std::string_view Mutant() {
  const char* mutant = std::getenv("ULPSCOPE_MUTANT");
  return mutant == nullptr ? "" : mutant;
}

inline bool IsSwitchedOff(std::string_view rule) { return Mutant() == "rule " + std::string(rule); }

template <typename Number>
Number Scaled(std::string_view name, Number value) {
  const std::string head = "number " + std::string(name) + " ";
  if (!Mutant().starts_with(head)) return value;
  const double scaled =
      static_cast<double>(value) * std::strtod(std::string(Mutant().substr(head.size())).c_str(), nullptr);
  if constexpr (std::is_integral_v<Number>)
    return static_cast<Number>(std::llround(scaled));
  else
    return scaled;
}

}  // namespace ulpscope

#define ULPSCOPE_RULE_NUMBER(type, name, value) \
  inline const type name = ::ulpscope::Scaled<type>(#name, value)

#else

namespace ulpscope {

constexpr bool IsSwitchedOff(std::string_view) { return false; }

}  // namespace ulpscope

#define ULPSCOPE_RULE_NUMBER(type, name, value) inline constexpr type name = value

#endif
