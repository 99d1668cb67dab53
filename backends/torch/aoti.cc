// torch-aoti: the cut, the cache of packages, and the run.
#include "backends/torch/aoti.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

#include "backends/torch/failure.h"
#include "backends/torch/values.h"

namespace ulpscope::torch_backend {
namespace {

namespace fs = std::filesystem;
using sdk::Json;

/// Effects on parameters: never part of a package.
bool Replaces(const std::string& op) { return op == "set_data" || op == "module_to" || op == "detach_"; }

/// True for an op that may stand before an effect in the prologue: it prepares parameters and computes
/// nothing. The rule is that of ulpscope_torch/regions.py: the compiler there receives the inputs' dtypes,
/// which are known once the prologue has run here, in the process that keeps the tensors.
bool Prepares(const std::string& op) {
  const OpRow* row = FindOp(op);
  const bool moves = row != nullptr && (row->kind == OpRow::Kind::kView || row->operands.most == 0);
  return moves || Replaces(op) || op == "cast" || op == "clone";
}

bool AllPrepare(const sdk::Step& step) {
  if (!IsScope(step.op)) return Prepares(step.op);
  return std::ranges::all_of(step.steps, AllPrepare);
}

bool AnyReplaces(const sdk::Step& step) {
  return Replaces(step.op) || std::ranges::any_of(step.steps, AnyReplaces);
}

/// FNV-1a, 64 bits. The key is kept beside what it names and compared, so two keys of one hash cost a
/// compilation, no more.
std::string HashOf(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  std::ostringstream digits;
  digits << std::hex << hash;
  return digits.str();
}

std::string ReadText(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// The lines of /proc/cpuinfo that list the instruction sets that a package may use.
std::string CpuFeatures() {
  std::ifstream file("/proc/cpuinfo");
  std::string features;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    if (line.starts_with("model name") || line.starts_with("flags")) features += line + "\n";
  }
  return features;
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

fs::path CacheFolder() {
  if (const std::string own = Environment("ULPSCOPE_AOTI_CACHE"); !own.empty()) return own;
  if (const std::string inductor = Environment("TORCHINDUCTOR_CACHE_DIR"); !inductor.empty())
    return fs::path(inductor) / "ulpscope-aoti";
  const std::string home = Environment("HOME");
  return fs::path(home.empty() ? "/tmp" : home + "/.cache") / "ulpscope/aoti";
}

/// The entry of the cache that holds exactly `key`; null when there is none.
Json ReadEntry(const fs::path& entry, const std::string& key) {
  const Json kept = Json::parse(ReadText(entry), nullptr, /*allow_exceptions=*/false);
  if (!kept.is_object() || kept.value("key", "") != key || !kept.contains("answer")) return nullptr;
  return kept["answer"];
}

/// Written beside and moved into place: another worker may be doing the same.
void WriteEntry(const fs::path& entry, const std::string& key, const Json& answer) {
  const fs::path partial = entry.string() + "." + std::to_string(getpid());
  std::ofstream(partial, std::ios::binary)
      << Json{{"key", key}, {"answer", answer}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::error_code ignored;  // a cache that cannot be written costs time only
  fs::rename(partial, entry, ignored);
}

Cast CastOf(const Json& cast) {
  return {.from = cast.at("from"),
          .to = cast.at("to"),
          .shape = cast.at("shape"),
          .bytes = cast.at("bytes"),
          .under = cast.at("under"),
          .stage = cast.at("stage"),
          .node = cast.at("node")};
}

std::vector<TraceTensor> TensorsOf(const Json& entries) {
  std::vector<TraceTensor> tensors;
  for (const Json& entry : entries) tensors.push_back({.dtype = entry.at(0), .shape = entry.at(1)});
  return tensors;
}

TraceNode NodeOf(const Json& node) {
  return {.id = node.at("id"),
          .parent = node.at("parent"),
          .stage = node.at("stage"),
          .kind = ParseTraceKind(node.value("kind", "compute")).value(),
          .op = node.at("op"),
          .from = node.at("from"),
          .inputs = TensorsOf(node.at("inputs")),
          .outputs = TensorsOf(node.at("outputs"))};
}

/// Refuses queries of the autograd graph of a value that a package makes: its results carry none.
void RequireObservable(const std::vector<sdk::Step>& steps, const std::vector<std::string>& observe) {
  const StepNames names = NamesOf(steps);
  for (const std::string& name : observe) {
    const sdk::ObservedName split = sdk::SplitObserved(name);
    if (names.made.contains(name) || !names.made.contains(split.value) || split.property == "grad") continue;
    throw Unsupported("observation '" + name + "': what a package gives carries no autograd graph");
  }
}

}  // namespace

/// One package before it exists: the requested results, and the tensors that it will be given.
struct AotiRunner::Package {
  Json message;  ///< for the compiler, less where to put the package
  std::vector<at::Tensor> inputs;
};

AotiSetup MakeAotiSetup(const std::vector<std::string>& compiler, const std::string& torch_version,
                        const std::map<std::string, std::string>& knobs) {
  std::string stamp = "torch " + torch_version + "\n" + CpuFeatures();
  stamp += "ATEN_CPU_CAPABILITY=" + Environment("ATEN_CPU_CAPABILITY") + "\n";
  for (const auto& [knob, value] : knobs) stamp += knob + "=" + value + "\n";
  if (!compiler.empty()) {
    const fs::path own = fs::path(compiler.back()).parent_path();
    std::error_code ignored;
    std::set<fs::path> sources;
    for (const fs::path& folder : {own, own.parent_path() / "python/ulpscope_torch"}) {
      for (const auto& file : fs::directory_iterator(folder, ignored)) {
        if (file.path().extension() == ".py") sources.insert(file.path());
      }
    }
    for (const fs::path& source : sources)
      stamp += source.filename().string() + " " + HashOf(ReadText(source)) + "\n";
  }
  return {.cache = CacheFolder(), .stamp = HashOf(stamp), .knobs = knobs};
}

void AotiRunner::Run(const sdk::Program& program) {
  const std::vector<sdk::Step> steps = RunPrologue(program.steps);
  if (steps.empty()) throw Unsupported("not compiled: the program has no step that a package takes");
  RequireObservable(steps, program.observe);
  const Package package = Describe(steps, program.observe);
  const Json answer = Compiled(package);
  const std::string kind = answer.at("outcome").at("kind");
  if (kind == "unsupported") throw Unsupported(answer["outcome"].at("text"));
  if (kind == "raised") throw Raised(answer["outcome"].at("class"), answer["outcome"].at("text"));
  Execute(package, answer);
}

/// Runs what prepares parameters, and makes the buffers; gives the steps that are left.
std::vector<sdk::Step> AotiRunner::RunPrologue(const std::vector<sdk::Step>& steps) {
  size_t length = 0;
  for (size_t i = 0; i < steps.size() && AllPrepare(steps[i]); ++i) {
    if (AnyReplaces(steps[i])) length = i + 1;
  }
  std::string eager;
  for (size_t i = 0; i < length; ++i) {
    machine_.RunStep(steps[i]);
    eager +=
        (eager.empty() ? "" : ", ") + steps[i].op + (steps[i].of.empty() ? "" : " " + steps[i].of[0].name);
  }
  if (!eager.empty()) {
    reply_.untraced.push_back("before the package: " + eager);
    reply_.notes.push_back("cut: ran eagerly " + reply_.untraced.back());
  }
  const std::function<std::vector<sdk::Step>(const sdk::Step*, const sdk::Step*)> rest =
      [&](const sdk::Step* step, const sdk::Step* end) {
        std::vector<sdk::Step> kept;
        for (; step != end; ++step) {
          if (step->op == "sync") continue;
          if (step->op == "empty") {
            machine_.RunStep(*step);  // passed in, so that it is the program's own buffer, poisoned
            continue;
          }
          kept.push_back(*step);
          kept.back().steps = rest(step->steps.data(), step->steps.data() + step->steps.size());
          if (IsScope(step->op) && kept.back().steps.empty()) kept.pop_back();
        }
        return kept;
      };
  return rest(steps.data() + length, steps.data() + steps.size());
}

AotiRunner::Package AotiRunner::Describe(const std::vector<sdk::Step>& steps,
                                         const std::vector<std::string>& observe) const {
  const StepNames names = NamesOf(steps);
  Package package;
  Json inputs = Json::array();
  std::vector<std::string> own;
  for (const std::string& name : names.read) {
    const auto found = machine_.values().find(name);
    if (found == machine_.values().end()) continue;
    const at::Tensor& tensor = found->second;
    const auto same =
        std::ranges::find_if(package.inputs, [&](const at::Tensor& t) { return t.is_same(tensor); });
    const bool seen = same != package.inputs.end();
    inputs.push_back({{"name", name},
                      {"dtype", DTypeName(tensor.scalar_type())},
                      {"shape", tensor.sizes().vec()},
                      {"strides", tensor.strides().vec()},
                      {"requires_grad", tensor.requires_grad()},
                      {"same_as", seen ? own[static_cast<size_t>(same - package.inputs.begin())] : ""}});
    if (seen) continue;
    package.inputs.push_back(tensor);
    own.push_back(name);
  }
  Json program = Json::array();
  for (const sdk::Step& step : steps) program.push_back(sdk::ToJson(step));
  std::set<std::string> wanted;
  for (const std::string& name : observe) {
    wanted.insert(machine_.values().contains(name) || names.made.contains(name)
                      ? name
                      : sdk::SplitObserved(name).value);
  }
  package.message = {{"steps", program}, {"inputs", inputs}, {"wanted", wanted}, {"knobs", setup_.knobs}};
  return package;
}

/// The compiler's answer for a package, from the cache or from the compiler.
Json AotiRunner::Compiled(const Package& package) {
  const std::string key = setup_.stamp + " " + package.message.dump();
  const fs::path entry = setup_.cache / (HashOf(key) + ".json");
  const fs::path file = fs::path(entry).replace_extension(".pt2");
  Json answer = ReadEntry(entry, key);
  std::error_code ignored;
  if (answer.is_null() || (answer["outcome"]["kind"] == "completed" && !fs::exists(file, ignored))) {
    fs::create_directories(setup_.cache, ignored);
    Json message = package.message;
    message["package"] = file.string();
    Result<Json> asked = compiler_.Ask(message);
    if (!asked) throw Unsupported("torch-aoti: " + asked.error().message);
    answer = std::move(*asked);
    reply_.notes.push_back("package: compiled now");
    if (answer.at("outcome").at("kind") != "unsupported") WriteEntry(entry, key, answer);
    const Json durations = answer.value("durations_ms", Json::object());
    for (const auto& [part, ms] : durations.items()) reply_.durations_ms[part] = ms;
  } else {
    reply_.notes.push_back("package: from the cache");
  }
  answer["file"] = file.string();
  const Json knobs = answer.value("knobs", Json::object());
  for (const auto& [knob, value] : knobs.items()) reply_.knobs[knob] = value;
  for (const Json& note : answer.value("notes", Json::array())) reply_.notes.push_back(note);
  for (const Json& node : answer.value("nodes", Json::array())) reply_.nodes.push_back(NodeOf(node));
  for (const Json& cast : answer.value("casts", Json::array())) reply_.casts.push_back(CastOf(cast));
  return answer;
}

void AotiRunner::Execute(const Package& package, const Json& answer) {
  std::vector<at::Tensor> results;
  {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> inputs;
    for (const at::Tensor& input : package.inputs) inputs.push_back(input.detach());
    torch::inductor::AOTIModelPackageLoader loader(answer.at("file"));
    const sdk::Stopwatch stopwatch;
    results = loader.run(inputs);
    reply_.durations_ms["package"] = stopwatch.Milliseconds();
    // A result may be memory that ends with the package.
    for (at::Tensor& result : results) result = result.clone();
  }
  const std::vector<std::string> outputs = answer.at("outputs"), gradients = answer.at("gradients");
  if (results.size() != outputs.size() + gradients.size())
    throw Unsupported("torch-aoti: the package gives another number of results than it was compiled for");
  const std::map<std::string, at::Tensor> before = machine_.values();
  for (size_t i = 0; i < outputs.size(); ++i) {
    machine_.values()[outputs[i]] = results[i];
    compiled_.insert(outputs[i]);
  }
  // Autograd itself differentiates the steps above an input, and accumulates in its leaf.
  for (size_t i = 0; i < gradients.size(); ++i) {
    before.at(gradients[i]).backward(results[outputs.size() + i], /*retain_graph=*/true);
  }
  if (!gradients.empty())
    reply_.notes.push_back("backward: torch.autograd.grad inside the package, with respect to its inputs");
}

void AotiRunner::FillParts(const std::vector<std::string>& observe) {
  for (const std::string& name : observe) {
    if (!reply_.tensors.contains(name)) continue;
    const bool gradient = !machine_.values().contains(name);
    reply_.parts[name] = gradient ? "backward" : compiled_.contains(name) ? "compiled" : "eager";
  }
}

}  // namespace ulpscope::torch_backend
