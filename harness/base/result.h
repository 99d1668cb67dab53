// Result<T>: expected failures (bad input, missing environment) as values that carry the place they happened
// at.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

namespace ulpscope {

/// A place in a file a person wrote. line and column count from 1; line 0 means "no place".
struct SourcePos {
  std::string file = {};
  int line = 0;
  int column = 0;
};

/// An error that the user or the environment caused: what is wrong, where, what stood there, what belongs
/// there.
struct Error {
  std::string message;
  SourcePos pos = {};
  std::string found = {};
  std::string expected = {};
  std::string hint = {};  ///< "did you mean ...", or the command that mends it

  /// One line: `file:line:column: message; found X, expected Y (hint)`.
  std::string Text() const;
};

/// An error whose place the caller adds, or that has none.
Error Problem(std::string message, std::string found, std::string expected, std::string hint = {});

/// The one alias for an expected failure. Broken invariants of our own use ULPSCOPE_CHECK instead.
template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> Fail(Error error) { return tl::unexpected<Error>(std::move(error)); }
inline tl::unexpected<Error> Fail(std::string message) { return Fail(Error{.message = std::move(message)}); }

/// The value of a result that is no error.
template <class T, class E>
T ValueOf(tl::expected<T, E>&& result) {
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace ulpscope

/// The value of a Result; an error leaves the function that this stands in, whose result it becomes. A statement, or all of what a
/// variable is set to, never a part of an expression: what that computed before would be left half done.
#define ULPSCOPE_TRY(...)                                                                 \
  __extension__({                                                                         \
    auto ulpscope_tried = (__VA_ARGS__);                                                  \
    if (!ulpscope_tried) return ::tl::make_unexpected(std::move(ulpscope_tried).error()); \
    ::ulpscope::ValueOf(std::move(ulpscope_tried));                                       \
  })
