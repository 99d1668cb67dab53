// Base class of a C++ adapter: its author writes a class that states what it can do and runs a program. The
// SDK does the rest.
//
//     class MyAdapter : public ulpscope::sdk::Adapter {
//       Capabilities Hello(const HelloRequest& hello) override { ... }
//       RunReply Run(const RunRequest& request) override { ... }
//     };
//     int main() { MyAdapter adapter; return ulpscope::sdk::ServeAdapter(adapter); }
//
// ServeAdapter speaks the protocol (backends/PROTOCOL.md): it reads messages and input tensors, checks them,
// calls Run, reads the floating-point environment before and after, and writes the observed tensors and the
// answer. Run may throw: std::bad_alloc becomes out_of_memory, any other exception `raised` under its C++
// type.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/sdk/program.h"
#include "backends/sdk/safetensors.h"
#include "harness/num/tensor_data.h"
#include "harness/words/trace.h"

namespace ulpscope::sdk {

inline constexpr int kProtocolVersion = 1;
/// Longest trace that an answer carries.
inline constexpr size_t kMaxTraceNodes = 20000;

struct HelloRequest {
  int64_t protocol = kProtocolVersion;
  std::string backend = {};                       ///< "torch-eager"
  std::string device = {};                        ///< "cpu"
  std::map<std::string, std::string> knobs = {};  ///< of the worker, for all its runs
};

struct Capabilities {
  std::string name;                             ///< of the adapter
  std::vector<std::string> backends;            ///< what it serves
  std::map<std::string, std::string> versions;  ///< package -> version
  std::vector<std::string> devices = {"cpu"};
  std::map<std::string, std::vector<std::string>> knobs;  ///< knob -> values, default first
  std::vector<std::string> ops, dtypes, scopes;
  std::vector<std::string> capabilities;  ///< autograd, out, aten, ...
  std::string error;                      ///< not empty: backend, device or a knob cannot be served
};

/// State of the calling thread's floating-point unit, which a library may change behind everybody's back.
struct FpState {
  uint32_t mxcsr = 0;  ///< 0x1f80 is the default; 0 where there is no such register
  bool subnormals_kept =
      true;             ///< by trying: products of normal numbers that are subnormal, in float32 and float64
  int64_t threads = 1;  ///< what the library says it uses
  bool operator==(const FpState&) const = default;
};

struct RunRequest {
  int64_t id = 0;
  std::string case_id;
  int64_t seed = 0;
  bool trace = false;
  bool timed = false;  ///< durations of the trace are wanted from a run whose kernels are set up already
  std::vector<int64_t> schedule =
      {};               ///< wait, warm-up, active of the runs for durations; empty: as the adapter likes
  bool poison = false;  ///< `empty` is to be filled with FillPoison
  Program program;
  TensorMap inputs;  ///< every tensor of program.tensors, contiguous
  std::map<std::string, std::string> knobs;
};

enum class Outcome { kCompleted, kRaised, kUnsupported, kOutOfMemory };
/// completed raised unsupported out_of_memory
std::string_view Name(Outcome outcome);

struct RunReply {
  Outcome outcome = Outcome::kCompleted;
  std::string error_class;  ///< raised, out of memory: the framework's own class
  std::string text;         ///< raised: its message; unsupported: the reason
  TensorMap tensors;        ///< observed name -> value
  std::map<std::string, std::string>
      observations;  ///< "w.grad_metadata_dtype" -> "bfloat16"; "none": there is no such value
  std::map<std::string, std::string> parts;  ///< value -> part that made it
  std::map<std::string, std::string> knobs;  ///< read back
  std::vector<Cast> casts = {};
  std::vector<TraceNode> nodes;
  std::vector<std::string> notes;
  std::vector<std::string> untraced;           ///< steps that ran outside of what the trace shows, and where
  std::map<std::string, double> durations_ms;  ///< "run" is added where the adapter gives none

  static RunReply Unsupported(std::string reason);
  static RunReply Raised(std::string error_class, std::string text);
};

class Adapter {
 public:
  virtual ~Adapter() = default;
  /// Called once. Knobs that must be set before a library is loaded are set here. A backend, a device or a
  /// knob that the capabilities do not name is refused on the adapter's behalf.
  virtual Capabilities Hello(const HelloRequest& request) = 0;
  virtual RunReply Run(const RunRequest& request) = 0;
  /// The number of threads that the library reports, for the canary.
  virtual int64_t Threads() { return 1; }
};

/// Serves until bye or until the harness is gone. Returns the exit code: 0; 4 without ULPSCOPE_FD (reported
/// on stderr); 3 when the harness broke the protocol (reported on stderr).
int ServeAdapter(Adapter& adapter);

/// The same over a descriptor of the caller's.
int ServeAdapter(Adapter& adapter, int fd);

/// Reads MXCSR and multiplies two normal numbers whose product is subnormal.
FpState ReadFpState(int64_t threads);

/// Fills memory that the program requests uninitialised: each element is, most significant byte first, FF FA
/// A5 A5 ... (8-bit elements: FF), a quiet NaN in every float format.
void FillPoison(std::span<std::byte> bytes, size_t element_size);

/// How many elements still hold the poison, bit for bit.
int64_t CountPoisoned(const TensorData& tensor);

/// Milliseconds since construction.
class Stopwatch {
 public:
  Stopwatch();
  double Milliseconds() const;

 private:
  int64_t start_ns_;
};

}  // namespace ulpscope::sdk
