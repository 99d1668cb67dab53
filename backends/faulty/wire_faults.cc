// Faults on the wire and at start-up: every way to answer wrongly.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string>

#include "backends/faulty/faults.h"
#include "backends/sdk/wire.h"

namespace ulpscope::faulty {
namespace {

using sdk::Json;
using sdk::TensorMap;

void Send(int fd, std::string_view text) { (void)sdk::WriteLine(fd, text); }

/// The answer with one field changed.
template <class Change>
void SendChanged(int fd, const std::string& answer, Change change) {
  Json message = Json::parse(answer);
  change(message);
  Send(fd, message.dump() + "\n");
}

/// The written tensors, changed as tensors.
template <class Change>
void ChangeTensors(const std::string& outputs, Change change) {
  auto tensors = sdk::ReadSafetensors(outputs);
  if (!tensors) return;
  change(*tensors);
  (void)sdk::WriteSafetensors(outputs, *tensors);
}

/// The written file, changed as bytes.
template <class Change>
void ChangeBytes(const std::string& outputs, Change change) {
  const auto tensors = sdk::ReadSafetensors(outputs);
  if (!tensors) return;
  const auto formatted = sdk::FormatSafetensors(*tensors);
  std::string bytes(reinterpret_cast<const char*>(formatted.data()), formatted.size());
  change(bytes);
  const int fd = ::open(outputs.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  [[maybe_unused]] const ssize_t written = ::write(fd, bytes.data(), bytes.size());
  ::close(fd);
}

void Garbage(int fd, std::string, const std::string&) { Send(fd, "Segmentation fault (just kidding)\n"); }
void NotUtf8(int fd, std::string, const std::string&) {
  Send(fd, "{\"id\": 1, \"outcome\": {\"kind\": \"\xff\xfe\"}}\n");
}
void NoObject(int fd, std::string, const std::string&) { Send(fd, "[1, 2, 3]\n"); }
void TwoLines(int fd, std::string answer, const std::string&) { Send(fd, answer + answer); }
/// The beginning of something else behind the answer's newline.
void BytesAfter(int fd, std::string answer, const std::string&) { Send(fd, answer + "}"); }
void WrongId(int fd, std::string answer, const std::string&) {
  SendChanged(fd, answer, [](Json& message) { message["id"] = message["id"].get<int64_t>() + 1; });
}
void UnknownOutcome(int fd, std::string answer, const std::string&) {
  SendChanged(fd, answer, [](Json& message) { message["outcome"]["kind"] = "splendid"; });
}
void WrongType(int fd, std::string answer, const std::string&) {
  SendChanged(fd, answer, [](Json& message) { message["notes"] = 7; });
}
/// Half a pair, as json writes a surrogate without a code point: no parser of UTF-8 can decode it.
void Surrogate(int fd, std::string answer, const std::string&) {
  Json message = Json::parse(answer);
  message["notes"] = {"HALF"};
  std::string line = message.dump() + "\n";
  line.replace(line.find("HALF"), 4, "\\ud800");
  Send(fd, line);
}
void UnaskedObservation(int fd, std::string answer, const std::string&) {
  SendChanged(fd, answer, [](Json& message) { message["observations"]["nobody.asked"] = "float32"; });
}
void ShortFrame(int fd, std::string answer, const std::string&) {
  Send(fd, std::string_view(answer).substr(0, answer.size() / 2));
  ::close(fd);
  Hang();
}
void OversizeFrame(int fd, std::string, const std::string&) {
  const std::string part(1 << 20, 'x');
  for (int i = 0; i < 20; ++i) Send(fd, part);
  Hang();
}
void DeepJson(int fd, std::string, const std::string&) {
  Send(fd, std::string(100000, '[') + std::string(100000, ']') + "\n");
}
void ClosedSocket(int fd, std::string, const std::string&) {
  ::close(fd);
  Hang();
}
void SlowDrip(int fd, std::string answer, const std::string&) {
  for (const char byte : answer) {
    Send(fd, std::string_view(&byte, 1));
    ::usleep(100000);
  }
}

void WrongSize(int fd, std::string answer, const std::string& outputs) {
  ChangeBytes(outputs, [](std::string& bytes) { bytes.resize(bytes.size() - 1); });
  Send(fd, answer);
}
void WrongDType(int fd, std::string answer, const std::string& outputs) {
  ChangeBytes(outputs, [](std::string& bytes) {
    const size_t at = bytes.find("\"F32\"");
    if (at != std::string::npos) bytes.replace(at, 5, "\"Q32\"");
  });
  Send(fd, answer);
}
/// The same elements, of one axis more.
void WrongShape(int fd, std::string answer, const std::string& outputs) {
  ChangeTensors(outputs, [](TensorMap& tensors) { tensors.begin()->second.shape.push_back(1); });
  Send(fd, answer);
}
void MissingTensor(int fd, std::string answer, const std::string& outputs) {
  ChangeTensors(outputs, [](TensorMap& tensors) { tensors.erase(tensors.begin()); });
  Send(fd, answer);
}
void ExtraTensor(int fd, std::string answer, const std::string& outputs) {
  ChangeTensors(outputs, [](TensorMap& tensors) { tensors["extra"] = tensors.begin()->second; });
  Send(fd, answer);
}
void NoOutputs(int fd, std::string answer, const std::string& outputs) {
  ::unlink(outputs.c_str());
  Send(fd, answer);
}
void FifoOutputs(int fd, std::string answer, const std::string& outputs) {
  ::unlink(outputs.c_str());
  ::mkfifo(outputs.c_str(), 0600);
  Send(fd, answer);
}
void LinkedOutputs(int fd, std::string answer, const std::string& outputs) {
  ::unlink(outputs.c_str());
  [[maybe_unused]] const int ignored = ::symlink("/etc/passwd", outputs.c_str());
  Send(fd, answer);
}
/// Answers, and is gone before the next message.
void DieAfter(int fd, std::string answer, const std::string&) {
  Send(fd, answer);
  ::_exit(0);
}
/// Answers, and once more without a request.
void LateLine(int fd, std::string answer, const std::string&) {
  Send(fd, answer);
  ::usleep(20000);
  Send(fd, answer);
}
/// Another folder full of files beside the outputs.
void ShmLitter(int fd, std::string answer, const std::string& outputs) {
  const std::string dir = outputs + ".litter";
  ::mkdir(dir.c_str(), 0700);
  ::close(::open((dir + "/file").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  Send(fd, answer);
}

constexpr std::array kWireFaults{
    WireFault{"garbage", Garbage},          WireFault{"not_utf8", NotUtf8},
    WireFault{"no_object", NoObject},       WireFault{"two_lines", TwoLines},
    WireFault{"wrong_id", WrongId},         WireFault{"unknown_outcome", UnknownOutcome},
    WireFault{"wrong_type", WrongType},     WireFault{"unasked_observation", UnaskedObservation},
    WireFault{"short_frame", ShortFrame},   WireFault{"oversize_frame", OversizeFrame},
    WireFault{"deep_json", DeepJson},       WireFault{"closed_socket", ClosedSocket},
    WireFault{"slow_drip", SlowDrip},       WireFault{"wrong_size", WrongSize},
    WireFault{"wrong_dtype", WrongDType},   WireFault{"missing_tensor", MissingTensor},
    WireFault{"extra_tensor", ExtraTensor}, WireFault{"no_outputs", NoOutputs},
    WireFault{"fifo_outputs", FifoOutputs}, WireFault{"linked_outputs", LinkedOutputs},
    WireFault{"shm_litter", ShmLitter},     WireFault{"die_after", DieAfter},
    WireFault{"late_line", LateLine},       WireFault{"bytes_after", BytesAfter},
    WireFault{"surrogate", Surrogate},      WireFault{"wrong_shape", WrongShape},
};

void StartCrash(int) {
  ::signal(SIGSEGV, SIG_DFL);
  ::raise(SIGSEGV);
}
void StartExit(int) { ::_exit(127); }
void StartHang(int) { Hang(); }
/// Late, and then as it should be.
void StartSlow(int) { ::usleep(1000000); }
void SendLineAndHang(int fd, const std::string& line) {
  Send(fd, line + "\n");
  Hang();
}
void StartGarbage(int fd) { SendLineAndHang(fd, "Traceback (most recent call last):"); }
void StartOtherProtocol(int fd) {
  SendLineAndHang(fd, R"({"protocol": 99, "name": "faulty", "backends": ["faulty"], "error": ""})");
}
void StartOtherBackend(int fd) {
  SendLineAndHang(fd, R"({"protocol": 1, "name": "faulty", "backends": ["someone-else"], "error": ""})");
}
void StartRefused(int fd) {
  SendLineAndHang(
      fd, R"({"protocol": 1, "name": "faulty", "backends": ["faulty"], "error": "no accelerator found"})");
}

constexpr std::array kStartFaults{
    StartFault{"start_crash", StartCrash},
    StartFault{"start_exit", StartExit},
    StartFault{"start_hang", StartHang},
    StartFault{"start_slow", StartSlow},
    StartFault{"start_garbage", StartGarbage},
    StartFault{"start_protocol", StartOtherProtocol},
    StartFault{"start_backend", StartOtherBackend},
    StartFault{"start_refused", StartRefused},
};

}  // namespace

const WireFault* FindWireFault(std::string_view name) {
  for (const auto& fault : kWireFaults) {
    if (fault.name == name) return &fault;
  }
  return nullptr;
}

const StartFault* FindStartFault(std::string_view name) {
  for (const auto& fault : kStartFaults) {
    if (fault.name == name) return &fault;
  }
  return nullptr;
}

std::vector<std::string> FaultNames() {
  std::vector<std::string> names{"none"};
  for (auto& name : RunFaultNames()) names.push_back(std::move(name));
  for (const auto& fault : kWireFaults) names.emplace_back(fault.name);
  for (const auto& fault : kStartFaults) names.emplace_back(fault.name);
  return names;
}

}  // namespace ulpscope::faulty
