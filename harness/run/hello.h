// Hello: a started adapter's description of itself, and whether that serves the request.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "harness/run/protocol.h"
#include "harness/run/registry.h"
#include "harness/run/worker.h"

namespace ulpscope {

/// How long loading a framework may take.
inline constexpr double kStartupSeconds = 120;

/// The adapter's description of itself, a failure, or an interruption.
using Greeting = std::variant<BackendInfo, Outcome, RunInterrupted>;
Greeting Greet(Worker& worker, const BackendSpec& backend, const KnobSet& knobs, const WorkerLimits& limits);

/// Why that description does not serve `backend`; nothing if it does.
std::optional<Outcome> WhyUnserved(const BackendInfo& info, const BackendSpec& backend);

/// Starts the backend's adapter, sends hello and bye (`list`, `doctor`). A refusal is in `error` of the
/// result.
Result<BackendInfo> DescribeBackend(const BackendSpec& backend, const Registry& registry,
                                    double timeout_s = kStartupSeconds);

/// Starts the executable (or Python file) `adapter`, queries which backends it serves and adds a row for each
/// (`--adapter PATH`). Fails when it does not start or breaks the protocol. `arguments` follow it on its
/// command line.
Result<std::vector<std::string>> AddAdapter(Registry& registry, const std::filesystem::path& adapter,
                                            const std::vector<std::string>& arguments = {});

}  // namespace ulpscope
