// junit.xml, for CI servers. One document that is valid both for the strict schema of Ant's JUnit task and for the
// looser one of Jenkins: a <testsuites> without attributes, and one <testsuite> per backend with every attribute that
// Ant's requires. Test cases of captured programs also have `file` and `line` of the source, which neither schema
// contains and CI servers read.
#pragma once

#include <string>

#include "harness/model/run_report.h"

namespace ulpscope {

/// FAIL XPASS NONDET UNMODELLED INCONCLUSIVE are <failure>; CRASH TIMEOUT OOM PROTOCOL TAINTED HARNESS
/// NOT_RUN are <error>; SKIP and XFAIL are <skipped>. The text of each failure and error ends with the repro
/// line.
std::string WriteJunit(const RunReport& report);

}  // namespace ulpscope
