// From probe outputs to a datasheet: sends a session every question, weighs the answers, writes one line for
// each property.
#pragma once

#include "harness/model/datasheet.h"
#include "harness/probe/probe_session.h"

namespace ulpscope {

/// Runs all probes. Whatever the backend does is data: Datasheet::outcome records how it ended.
Datasheet ReadDatasheet(const ProbeQuestion& question, ProbeSession* session);

}  // namespace ulpscope
