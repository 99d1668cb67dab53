// The JSON Schema of case files, for editors: written from the same field table that the loader checks by.
//
// It states what a table can state (keys, kinds of values, words). Names that are defined, counts that agree
// and budgets are the loader's. cases/case.schema.json is its output; a test compares them and holds loader
// and schema to the same answers.
#pragma once

#include <string>

namespace ulpscope {

/// Draft-07, pretty-printed, ending in a newline.
std::string JsonSchema();

}  // namespace ulpscope
