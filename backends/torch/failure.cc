// Failures: c10's exception classes map one to one to Python's.
#include "backends/torch/failure.h"

#include <c10/util/Exception.h>

#include <new>

namespace ulpscope::torch_backend {
namespace {

/// Most derived first: a plain c10::Error is Python's RuntimeError.
std::string PythonClass(const c10::Error& error) {
  const auto is = [&]<class T>(const T*) { return dynamic_cast<const T*>(&error) != nullptr; };
  if (is(static_cast<const c10::IndexError*>(nullptr))) return "IndexError";
  if (is(static_cast<const c10::ValueError*>(nullptr))) return "ValueError";
  if (is(static_cast<const c10::TypeError*>(nullptr))) return "TypeError";
  if (is(static_cast<const c10::NotImplementedError*>(nullptr))) return "NotImplementedError";
  if (is(static_cast<const c10::BufferError*>(nullptr))) return "BufferError";
  if (is(static_cast<const c10::SyntaxError*>(nullptr))) return "SyntaxError";
  if (is(static_cast<const c10::LinAlgError*>(nullptr))) return "LinAlgError";
  if (is(static_cast<const c10::OutOfMemoryError*>(nullptr))) return "OutOfMemoryError";
  return "RuntimeError";
}

sdk::RunReply OutOfMemory(std::string text) {
  sdk::RunReply reply;
  reply.outcome = sdk::Outcome::kOutOfMemory;
  reply.text = std::move(text);
  return reply;
}

}  // namespace

sdk::RunReply ReplyForCurrentException() {
  try {
    throw;
  } catch (const Unsupported& lack) {
    return sdk::RunReply::Unsupported(lack.what());
  } catch (const Raised& error) {
    return sdk::RunReply::Raised(error.error_class(), error.what());
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    const std::string name = PythonClass(error);
    // On a CPU an allocation that fails is a plain Error; only its text shows it.
    if (name == "OutOfMemoryError" || text.find("can't allocate memory") != std::string::npos)
      return OutOfMemory(text);
    return sdk::RunReply::Raised(name, text);
  } catch (const std::bad_alloc& error) {
    return OutOfMemory(error.what());
  } catch (const std::exception& error) {
    // The TorchScript interpreter rethrows some errors as std::runtime_error; Python shows them as
    // RuntimeError.
    return sdk::RunReply::Raised("RuntimeError", error.what());
  }
}

}  // namespace ulpscope::torch_backend
