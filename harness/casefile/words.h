// The closed sets of words of the case language, and the shapes of its texts (names, tags, backends, dates
// ...).
//
// Each shape is given twice, side by side: as an ECMAScript pattern for the JSON Schema and as a function for
// the loader (std::regex recurses once per character and is no tool for untrusted text). A test holds both to
// the same answers.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/result.h"

namespace ulpscope {

struct Pattern {
  std::string_view what;   ///< "a name (letters, digits, _)": for "expected ..."
  std::string_view regex;  ///< anchored
  bool (*matches)(std::string_view text);
};

const Pattern& NamePattern();      ///< of a tensor or value: x, main_grad
const Pattern& CaseNamePattern();  ///< as_posted, k_4096-odd
const Pattern& TagPattern();
const Pattern& ValueKeyPattern();  ///< a name, or name.grad
const Pattern&
ObservedPattern();  ///< a name, name.grad, name.grad_dtype, name.grad_metadata_dtype, trace, peak_bytes
const Pattern& BackendPattern();     ///< NAME[@DEVICE][:knob=value,...]
const Pattern& VersionsPattern();    ///< torch>=2.9,<2.16
const Pattern& DatePattern();        ///< 2026-12-31
const Pattern& TensorFilePattern();  ///< NAME.safetensors, without a folder
const Pattern& DigestPattern();      ///< 64 hexadecimal digits
const Pattern& OpPattern();          ///< aten::NAME, torch.NAME (vocabulary words come from the op table)
const Pattern& NumberPattern();
const Pattern& LinePattern();  ///< any non-empty text

/// The words of one facet (harness/words/facets.h): in, prod, acc, mid, out.
const Pattern& FacetPattern(std::string_view facet);

/// Names that no tensor or value may have, since they have another meaning.
bool IsReservedName(std::string_view name);

/// The suffixes of an observed name that are answered as text, not as a tensor.
bool IsTextObservation(std::string_view observed);

}  // namespace ulpscope
