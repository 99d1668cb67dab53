// Targets of the fuzzer: one function for each reader of bytes that others wrote. Each takes anything, and
// stops the process (abort, or a sanitizer's report) if the reader breaks a promise of its own. fuzz_main.cc
// gives one of them to libFuzzer, corpus_test.cc gives all of them the recorded corpus.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ulpscope::fuzz {

/// How far into the reader an input came: a target that refuses everything at the door tests nothing.
enum class Reached { kRefused, kAccepted };

Reached Casefile(std::string_view input);
Reached Protocol(std::string_view input);
Reached Journal(std::string_view input);
Reached Safetensors(std::string_view input);

/// Stops the process with a line that names the broken promise.
void Demand(bool kept, const char* promise);

/// The planted fault that shows that a target finds one: where ULPSCOPE_FUZZ_PLANT is set and `reached` holds, a byte behind
/// the end of a buffer is read. Each target calls it for what it accepts and IsPlantedLength.
void Plant(bool reached);

/// A length that nothing accepted in the corpus has: the fault of a reader that takes words at a time. To find it, a fuzzer has to
/// make of the corpus another text that is accepted, which few of its changes leave it.
inline bool IsPlantedLength(size_t size) { return size % 8 == 4 || size % 8 == 6; }

}  // namespace ulpscope::fuzz
