// fmt for the portable program: Debian has no static libfmt, and a machine of another distribution no
// libfmt.so.9.
//
// Everything else was compiled against the shared library and calls one function of it, vformat. Its
// header-only form is compiled here, under the same name, so that the linker finds it and needs no library.
#define FMT_HEADER_ONLY 1
#include <fmt/format.h>

/// Never called: an inline function is compiled where something uses it.
std::string UlpscopeUsesFmt(fmt::string_view format, fmt::format_args arguments) {
  return fmt::vformat(format, arguments);
}
