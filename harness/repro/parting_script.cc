// Scripts of two sides.
#include "harness/repro/parting_script.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "harness/base/text.h"
#include "harness/num/dtype.h"
#include "harness/repro/python_text.h"

namespace ulpscope {
namespace {

constexpr std::string_view kPartingHead = R"py(import base64
import json
import os
import subprocess
import sys
)py";

constexpr std::string_view kPartingMain = R"py(

def told(compute, tensor, dtypes, bits):
    """name -> [bits, numbers, dtype] of what `compute` gives for INPUTS, or what it raises."""
    given = {name: tensor(base64.b64decode(data), dtypes[dtype], shape) for name, (dtype, shape, data) in INPUTS.items()}
    try:
        values = compute(given)
    except Exception as error:
        return {"raised": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
    return {name: bits(value) for name, value in values.items() if value is not None}


def main():
    if len(sys.argv) > 1:
        print("TOLD" + json.dumps(SIDES[sys.argv[1]]()))
        return 0
    found = {}
    for name in SIDES:
        said = subprocess.run([sys.executable, __file__, name], stdout=subprocess.PIPE, text=True, check=True).stdout
        found[name] = json.loads(said.partition("TOLD")[2])
    (first, one), (second, other) = found.items()
    if "raised" in one or "raised" in other:
        for name, side in found.items():
            print(f"{name}: {'raises ' + side['raised'] if 'raised' in side else 'completes'}")
        return 0 if ("raised" in one) != ("raised" in other) else 1
    parted = False
    for value in one:
        if value not in other:
            continue
        (bits, numbers, dtype), (bits_2, numbers_2, dtype_2) = one[value], other[value]
        dtype, dtype_2 = dtype.removeprefix("torch."), dtype_2.removeprefix("torch.")
        differ = [i for i in range(len(bits)) if bits[i] != bits_2[i]] if len(bits) == len(bits_2) else []
        if dtype != dtype_2 or len(bits) != len(bits_2):
            print(f"{value}: {dtype} of {len(bits)} elements from {first}, {dtype_2} of {len(bits_2)} from {second}")
            parted = True
        elif differ:
            i = differ[0]
            print(f"{value}: {len(differ)} of {len(bits)} elements differ, the first at {i}: "
                  f"{numbers[i]!r} from {first}, {numbers_2[i]!r} from {second}")
            parted = True
        else:
            print(f"{value}: the same {len(bits)} elements")
    return 0 if parted else 1


if __name__ == "__main__":
    sys.exit(main())
)py";

/// A side as a function of Python without arguments: what the backend gives for the script's INPUTS, as {name: bits}.
Result<std::string> ComputedSide(const std::string& function, const ReproSubject& subject,
                                 const ScriptSide& side) {
  const auto computes = ULPSCOPE_TRY(side.Compute());
  return fmt::format(
      "\n\ndef {}():\n    \"\"\"{}, as recorded with {}.\"\"\"\n{}\n\n    return told(compute, tensor, "
      "DTYPES, bits)\n",
      function, subject.backend, side.Versions(),
      PythonIndented(side.Imports() + std::string(side.Tensors()) + computes));
}

/// A side that cannot be computed here: what it gave.
std::string RecordedSide(const std::string& function, const PartingSide& side) {
  std::string text = fmt::format("\n\ndef {}():\n    \"\"\"{}: the values that were recorded.\"\"\"\n",
                                 function, side.subject.backend);
  if (side.subject.outcome.kind != OutcomeKind::kCompleted)
    return text +
           fmt::format("    return {{\"raised\": {}}}\n",
                       PythonString(side.subject.outcome.error_class + ": " + side.subject.outcome.text));
  text += "    return {\n";
  for (const auto& [name, value] : side.values) {
    std::vector<std::string> bits, numbers;
    const size_t width = SizeOf(value.dtype);
    for (int64_t i = 0; i < value.size(); ++i) {
      uint64_t pattern = 0;
      std::memcpy(&pattern, value.bytes.data() + static_cast<size_t>(i) * width, width);
      bits.push_back(std::to_string(pattern));
      numbers.push_back(PythonFloat(value.At(i)));
    }
    text += fmt::format("        {}: [[{}], [{}], {}],\n", PythonString(name), Join(bits, ", "),
                        Join(numbers, ", "), PythonString(Name(value.dtype)));
  }
  return text + "    }\n";
}

}  // namespace

Result<std::string> WritePartingScript(const Case& test_case, const std::map<std::string, TensorData>& inputs,
                                       const PartingSide& first, const PartingSide& second,
                                       const std::string& about) {
  std::string sides, table;
  bool any = false;
  std::string no_script;
  int number = 0;
  for (const PartingSide* side : {&first, &second}) {
    const std::string function = fmt::format("side_{}", ++number);
    const ScriptSide computed(test_case, side->subject);
    const auto text = ComputedSide(function, side->subject, computed);
    any = any || text;
    if (!text && computed.IsPython()) return Fail(text.error());
    if (!text) no_script += (no_script.empty() ? "" : "; ") + text.error().message;
    sides += text ? *text : RecordedSide(function, *side);
    table += fmt::format("{}{}: {}", number == 1 ? "" : ", ", PythonString(side->subject.backend), function);
  }
  if (!any) return Fail(no_script);
  std::string text = "#!/usr/bin/env python3\n\"\"\"" + about +
                     "\n\nExit code 0: they part here too.\n\"\"\"\n" + std::string(kPartingHead) +
                     "\n# name: (dtype, shape, bytes in base64)\nINPUTS = {\n";
  for (const TensorSpec& spec : test_case.tensors) {
    const auto input = inputs.find(spec.name);
    if (input == inputs.end()) return Fail("there are no inputs of that name: " + spec.name);
    text += fmt::format("    {}: (\"{}\", [{}], {}),\n", PythonString(spec.name), SafetensorsName(spec.dtype),
                        Join(spec.shape, ", "), PythonLongString(Base64(input->second.bytes)));
  }
  return text + "}\n" + sides + "\n\nSIDES = {" + table + "}\n" + std::string(kPartingMain);
}

}  // namespace ulpscope
