// The summary that a CI job shows on its page: findings first, ten at most, then the failures, then the rows of the
// matrix in which backends differ.
//
// External text is in code spans or escaped: no link, no image, no mention, no HTML, no table that ends early.
#pragma once

#include <string>
#include <string_view>

#include "harness/model/run_report.h"

namespace ulpscope {

std::string WriteMarkdown(const RunReport& report);

/// Text as GitHub's Markdown shows it, character by character.
std::string MarkdownText(std::string_view text);
/// The same in a code span; in the cell of a table a bar is escaped differently.
enum class MarkdownPlace { kText, kTable };
std::string MarkdownCode(std::string_view text, MarkdownPlace place);
/// A sentence whose names, which stand in backticks, are code spans.
std::string MarkdownSentence(std::string_view sentence, MarkdownPlace place);

}  // namespace ulpscope
