// Failures of a step: what the framework raised, under the name that Python would give it, or what this
// adapter lacks.
#pragma once

#include <exception>
#include <string>

#include "backends/sdk/adapter.h"

namespace ulpscope::torch_backend {

/// Thrown inside the adapter when a program requests something that the adapter does not have; becomes
/// `unsupported`.
class Unsupported : public std::exception {
 public:
  explicit Unsupported(std::string reason) : reason_(std::move(reason)) {}
  const char* what() const noexcept override { return reason_.c_str(); }

 private:
  std::string reason_;
};

/// An error that PyTorch raised elsewhere (in a compiler's process), under the class and text that it had
/// there.
class Raised : public std::exception {
 public:
  Raised(std::string error_class, std::string text)
      : error_class_(std::move(error_class)), text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }
  const std::string& error_class() const { return error_class_; }

 private:
  std::string error_class_, text_;
};

/// Unwraps a Result or throws Unsupported with its error.
template <class T>
T Need(Result<T> result) {
  if (!result) throw Unsupported(result.error().message);
  return std::move(*result);
}

/// The exception that is being handled, as a reply: c10 errors under their Python class with the text Python
/// shows. Call only inside a catch block.
sdk::RunReply ReplyForCurrentException();

}  // namespace ulpscope::torch_backend
