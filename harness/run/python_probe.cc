// Queries an interpreter for its modules over the same socket that adapters use.
#include "harness/run/python_probe.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "harness/record/json_fields.h"
#include "harness/record/observation_json.h"
#include "harness/run/environment.h"
#include "harness/run/worker.h"

namespace ulpscope {
namespace {

// find_spec does not run the package: importing torch would take two seconds.
constexpr const char* kProbe = R"(
import importlib.metadata, importlib.util, json, os, socket
line = socket.socket(fileno=int(os.environ["ULPSCOPE_FD"])).makefile("rw")
found = {}
for name in json.loads(line.readline()):
    if importlib.util.find_spec(name) is not None:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = ""
line.write(json.dumps({"found": found}) + "\n")
line.flush()
)";

}  // namespace

Result<std::map<std::string, std::string>> FindPythonModules(const std::filesystem::path& python,
                                                             const std::set<std::string>& modules) {
  if (::access(python.c_str(), X_OK) != 0) return Fail("no Python interpreter at " + python.string());
  auto worker = ULPSCOPE_TRY(Worker::Start({.argv = {python.string(), "-c", kProbe},
                                            .environment = WorkerEnvironment({}, Places{}, "/tmp", ""),
                                            .cwd = "/",
                                            .token = ""}));
  const Answer answer = worker->Exchange(nlohmann::json(modules).dump(), {.seconds = 60});
  const auto* line = std::get_if<std::string>(&answer);
  if (line == nullptr) return Fail(python.string() + " does not work: " + worker->Log());
  const auto object = ULPSCOPE_TRY(sdk::ParseMessage(*line));
  std::string error;
  JsonFields fields(object, error);
  auto found = fields.TextMap("found", 256);
  if (!error.empty()) return Fail(python.string() + " answered nonsense: " + error);
  return found;
}

}  // namespace ulpscope
