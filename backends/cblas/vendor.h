// Differences between two libraries that both implement CBLAS: names, versions, threads, knobs of their own.
//
// One executable is built per library from the same main.cc and gemm.cc, with one file that defines these
// functions (openblas.cc, blis.cc). Knobs are read back from the library, never echoed.
#pragma once

#include <map>
#include <string>

namespace ulpscope::cblas {

/// Called first in main(): for what the library reads from the environment when it is loaded.
void VendorStart();

/// "openblas"
std::string VendorName();
/// Package -> version, and whatever else distinguishes two builds.
std::map<std::string, std::string> VendorVersions();
/// The library's own knob beside `threads`.
std::string VendorKnob();

/// Called once, before the library's first use, with the worker's knobs: for what must be set by then.
/// Returns "" or what is wrong.
std::string VendorSetUp(const std::map<std::string, std::string>& knobs);
/// "" when the library runs as its knob requires with `value`, else what is wrong.
std::string VendorCheck(const std::string& value);
/// The knob's value as the library states it.
std::string VendorReadBack();

int VendorThreads();
void VendorSetThreads(int count);

}  // namespace ulpscope::cblas
