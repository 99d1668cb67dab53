// The vocabularies as JSON, for adapters in Python and for documents.
#pragma once

#include <string>

namespace ulpscope {

/// One object, a line for each word, ending in a newline. `ulpscope schema --words` prints it;
/// backends/python/ulpscope_adapter/words.json is its output.
std::string WordsJson();

/// The table of ops in backends/PROTOCOL.md, Markdown.
std::string OpTable();

}  // namespace ulpscope
