// Scripts for PyTorch and JAX.
#include "harness/repro/repro_script.h"

#include <fmt/format.h>

#include <string_view>

#include "harness/repro/python_text.h"

namespace ulpscope {
namespace {

constexpr std::string_view kReader = R"py(

def read(name):
    """The tensors of a safetensors file beside this script."""
    data = (HERE / name).read_bytes()
    length, = struct.unpack("<Q", data[:8])
    found = {}
    for key, entry in json.loads(data[8:8 + length]).items():
        if key != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            found[key] = tensor(data[begin:end], DTYPES[entry["dtype"]], entry["shape"])
    return found
)py";

constexpr std::string_view kVerdict = R"py(

def main():
    try:
        values = compute(read("inputs.safetensors"))
    except Exception as error:
        here = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        print(f"raises {here}; recorded: {RAISED or 'values'}")
        return 0 if RAISED and type(error).__name__ == RAISED.partition(":")[0] else 1
    if RAISED:
        print(f"raises nothing; recorded: {RAISED}")
        return 1
    recorded = read("observed.safetensors")
    failed = 0
    for name, value in values.items():
        if name not in recorded or value is None:
            print(f"{name}: not recorded" if value is not None else f"{name}: none")
            continue
        (here, numbers, dtype), (there, wanted, recorded_dtype) = bits(value), bits(recorded[name])
        if dtype != recorded_dtype or len(here) != len(there):
            failed += 1
            print(f"{name}: NOT reproduced: {dtype} of {len(here)} elements, recorded {recorded_dtype} of {len(there)}")
            continue
        other = [index for index in range(len(here)) if here[index] != there[index]]
        if other:
            failed += 1
            first = other[0]
            print(f"{name}: NOT reproduced: {len(other)} of {len(here)} elements differ, first {first}: "
                  f"{numbers[first]!r} here, {wanted[first]!r} recorded")
        else:
            print(f"{name}: reproduced, all {len(here)} elements bit by bit")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
)py";

std::string Head(const Case& test_case, const ReproSubject& subject, const ScriptSide& side) {
  return fmt::format(
             "#!/usr/bin/env python3\n\"\"\"{} on {}: computes it anew and says whether the recorded bits "
             "come "
             "back.\n\n"
             "Needs {} and nothing of ulpscope. Recorded with {}.\n\"\"\"\n"
             "import json\nimport os\nimport pathlib\nimport struct\nimport sys\n\n",
             test_case.id, subject.backend, side.Framework(), side.Versions()) +
         side.Imports() + "HERE = pathlib.Path(__file__).resolve().parent\n";
}

}  // namespace

Result<std::string> WriteReproScript(const Case& test_case, const ReproSubject& subject) {
  const ScriptSide side(test_case, subject);
  const auto computes = ULPSCOPE_TRY(side.Compute());
  const Outcome& outcome = subject.outcome;
  const std::string raised =
      outcome.kind == OutcomeKind::kRaised
          ? PythonString(outcome.error_class + ": " +
                         outcome.text.substr(0, outcome.text.find('\n')).substr(0, 200))
          : "None";
  return Head(test_case, subject, side) + fmt::format("RAISED = {}  # recorded\n", raised) +
         std::string(side.Tensors()) + std::string(kReader) + computes + std::string(kVerdict);
}

}  // namespace ulpscope
