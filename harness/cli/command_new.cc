// ulpscope new case|adapter PATH: a skeleton to start from. It never overwrites a file.
#include <fmt/format.h>

#include <filesystem>

#include "harness/casefile/new_case.h"
#include "harness/casefile/words.h"
#include "harness/cli/commands.h"
#include "harness/cli/run_report_files.h"
#include "harness/cli/terminal.h"
#include "harness/judge/judge.h"
#include "harness/record/file_bytes.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

// backends/python/example_numpy.py with names to be filled in. It stands twice: what an installed ulpscope writes needs no source
// tree, and the example is read and run as it is.
constexpr const char* kAdapter =
    R"("""NAME: an adapter of ulpscope. It states facts; ulpscope judges. Run it: ulpscope run CASE --adapter FILE"""

import os
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # the knob threads=1, set before the library is loaded

import numpy
from ulpscope_adapter import Adapter, Result, numpy_dtype, serve  # noqa: E402

# What can be run. Whatever a case asks beyond this table is answered "unsupported" before run() is called.
OPS = {
    "matmul": numpy.matmul,
    "add": numpy.add,
    "cast": lambda a, dtype: a.astype(numpy_dtype(dtype)),
}


class MyAdapter(Adapter):
    def capabilities(self):
        return {"name": "NAME", "backends": ["NAME"], "versions": {"numpy": numpy.__version__},
                "knobs": {"threads": ["1"]},
                "dtypes": ["float64", "float32", "float16", "bfloat16"],
                "ops": {"matmul": [], "add": [], "cast": ["dtype"]}}  # op: the attributes that it takes

    def run(self, request):
        values = {tensor.name: tensor.numpy() for tensor in request.tensors}
        for step in request.steps:
            values[step.name] = OPS[step.op](*step.operands(values), **step.attrs)
        return Result({name: values[name] for name in request.observe})


if __name__ == "__main__":
    serve(MyAdapter())
)";

struct NewArguments {
  std::string path;
};

/// Writes `text` to a file that does not exist yet, making its folders.
Result<void> WriteNew(const fs::path& file, const std::string& text) {
  std::error_code code;
  if (fs::exists(fs::symlink_status(file, code))) return Fail(file.string() + " exists already");
  if (!file.parent_path().empty()) {
    ULPSCOPE_TRY(MakeFolders(file.parent_path()));
  }
  return WriteFile(file, text);
}

fs::path WithExtension(fs::path path, const char* extension) {
  if (path.extension() != extension) path += extension;
  return path;
}

/// The stem as the name of a case or backend.
Result<std::string> NameOf(const fs::path& file) {
  const std::string name = file.stem().string();
  if (!CaseNamePattern().matches(name)) {
    return Fail(Problem("the file's name is no name", "'" + name + "'", std::string(CaseNamePattern().what)));
  }
  return name;
}

Result<int> NewCase(const NewArguments& arguments) {
  const fs::path file = WithExtension(arguments.path, ".yaml");
  const auto name = ULPSCOPE_TRY(NameOf(file));
  ULPSCOPE_TRY(WriteNew(file, NewCaseTemplate(name)));
  Print(fmt::format("{}: edit it, then\n  ulpscope lint {}\n  ulpscope run {}\n", file.string(),
                    ShellQuote(file.string()), ShellQuote(file.string())));
  return 0;
}

Result<int> NewAdapter(const NewArguments& arguments) {
  const fs::path file = WithExtension(arguments.path, ".py");
  const auto name = ULPSCOPE_TRY(NameOf(file));
  std::string text = kAdapter;
  for (size_t at = 0; (at = text.find("NAME", at)) != std::string::npos; at += name.size())
    text.replace(at, 4, name);
  ULPSCOPE_TRY(WriteNew(file, text));
  Print(fmt::format(
      "{}: edit it, then\n  ulpscope doctor --adapter {}\n  ulpscope run CASE -b {} --adapter {}\n",
      file.string(), ShellQuote(file.string()), name, ShellQuote(file.string())));
  return 0;
}

}  // namespace

void AddNewCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("new", "write the skeleton of a case or an adapter");
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* about, Result<int> (*run)(const NewArguments&)) {
    CLI::App* kind = command->add_subcommand(name, about);
    kind->add_option("path", OptionsOf(kind, exit_code, run)->path, "the file to write")->required();
  };
  add("case", "a case file that loads as it stands", NewCase);
  add("adapter", "a complete adapter in Python", NewAdapter);
}

}  // namespace ulpscope
