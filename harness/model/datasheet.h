// Datasheet: what the matrix product of one backend does with numbers, line by line, each with the probes
// that it was read by.
//
// In the manner of the published tables of tensor cores (Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior
// of NVIDIA tensor cores", PeerJ CS 2021; Khattak, Mikaitis, "Accurate models of NVIDIA tensor cores", 2025).
// Every word is one of the report's vocabulary where it has one; what could not be read says so.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ulpscope {

struct DatasheetLine {
  enum class State { kRead, kPartly, kNotRead };
  std::string key;    ///< "accumulator"; never renamed
  std::string title;  ///< "accumulator"
  State state = State::kNotRead;
  std::vector<std::string> words =
      {};            ///< what remains possible, from the vocabulary; several: cannot be told apart
  std::string text;  ///< one phrase for a person
  std::vector<std::string> probes = {};  ///< families it was read by
  int64_t dots = 0;                      ///< dot products that were looked at
};

struct Datasheet {
  enum class Outcome {
    kRead,              ///< lines hold what was found
    kUnmodelled,        ///< no precision model gives these outputs
    kNondeterministic,  ///< repeated launches differ: nothing that rests on single bits is read
    kRefused,           ///< the backend takes no such product; `reason` says what it said
    kBroken,            ///< the worker broke
  };
  Outcome outcome = Outcome::kRead;
  std::string reason;
  std::string backend, dtype, out_dtype;
  std::string form;     ///< matmul, bmm or dot
  std::string program;  ///< how the out dtype was asked for, and the shapes
  int64_t k = 0;
  std::map<std::string, std::string> versions, knobs, machine;
  std::string ulpscope;
  int64_t dots = 0, launches = 0;  ///< dot products asked, matrix products run
  int64_t models_tried = 0;
  std::vector<std::string> models;              ///< those that survive, by name
  std::map<std::string, std::string> excluded;  ///< model -> the probe that it fell to and what was observed
  std::string label;                            ///< their join in one phrase
  std::vector<DatasheetLine> lines;
  std::string tree;  ///< the summation tree over the window; empty where it was not read
};

/// read unmodelled nondeterministic refused broken
inline std::string Name(Datasheet::Outcome outcome) {
  static constexpr const char* kNames[] = {"read", "unmodelled", "nondeterministic", "refused", "broken"};
  return kNames[static_cast<size_t>(outcome)];
}

/// read partly not_read
inline std::string Name(DatasheetLine::State state) {
  return state == DatasheetLine::State::kRead     ? "read"
         : state == DatasheetLine::State::kPartly ? "partly"
                                                  : "not_read";
}

}  // namespace ulpscope
