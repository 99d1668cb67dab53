// ulpscope: what precision did this tensor program really compute in, on each backend, and where do the
// backends part?
#include "harness/cli/cli.h"

#ifndef ULPSCOPE_COMMIT
#define ULPSCOPE_COMMIT ""
#endif

int main(int argc, char** argv) { return ulpscope::RunCommandLine(argc, argv, ULPSCOPE_COMMIT); }
