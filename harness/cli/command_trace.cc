// ulpscope trace FILE: the dtype conversions of a chrome trace that torch.profiler exported.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "harness/cli/commands.h"
#include "harness/cli/run_report_files.h"
#include "harness/cli/terminal.h"
#include "reports/user_trace.h"

namespace ulpscope {
namespace {

struct TraceArguments {
  std::string file, json;
  bool verbose = false;
};

Result<std::string> ReadTraceFile(const std::string& file) {
  const UserTraceLimits limits;
  std::error_code code;
  if (!std::filesystem::is_regular_file(file, code)) return Fail(file + ": no such file");
  const auto size = std::filesystem::file_size(file, code);
  if (code) return Fail(file + ": " + code.message());
  if (size > limits.max_bytes)
    return Fail(file + ": " + std::to_string(size) + " bytes, more than " + std::to_string(limits.max_bytes));
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (!stream.good() && !stream.eof()) return Fail(file + ": cannot be read");
  return text;
}

Result<int> RunTrace(const TraceArguments& arguments) {
  const std::string text = ULPSCOPE_TRY(ReadTraceFile(arguments.file));
  const auto trace = ReadUserTrace(text);
  if (!trace) return Fail(arguments.file + ": " + trace.error().message);
  if (arguments.json == "-") {
    ULPSCOPE_TRY(PrintReport(UserTraceJson(*trace)));
    return 0;
  }
  if (!arguments.json.empty()) {
    ULPSCOPE_TRY(WriteFile(arguments.json, UserTraceJson(*trace)));
  }
  Print(WriteUserTrace(*trace, arguments.verbose ? UserTraceDetail::kAll : UserTraceDetail::kKinds));
  return 0;
}

}  // namespace

void AddTraceCommand(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("trace", "list the dtype conversions of a chrome trace of torch.profiler");
  TraceArguments* arguments = OptionsOf(command, exit_code, RunTrace);
  command
      ->add_option("file", arguments->file,
                   "what export_chrome_trace wrote, recorded with record_shapes=True; or a --trace-out")
      ->required();
  command->add_option("--json", arguments->json, "write every conversion as JSON; - is stdout");
  command->add_flag("-v,--verbose", arguments->verbose, "every conversion by itself");
}

}  // namespace ulpscope
