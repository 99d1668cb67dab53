// ulpscope: what precision did this tensor program really compute in, on each backend, and where do the
// backends part?
#include "harness/cli/cli.h"

int main(int argc, char** argv) { return ulpscope::RunCommandLine(argc, argv); }
