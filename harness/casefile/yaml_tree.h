// The strict YAML subset as a small tree: every node knows its position and its spelling.
//
// yaml-cpp's document API is too lenient for a file that decides verdicts: it accepts duplicate keys (and reads the
// first), cyclic aliases and invalid UTF-8, and converts text to numbers by the locale. So only its event stream is
// used. The tree holds text and positions; nothing is a number, a boolean or a name until the field table determines
// the types.
//
// Refused here: files above 1 MiB, invalid UTF-8, tabs and other control characters, lines above 64 KiB, nesting deeper
// than 32, more than 250,000 entries, anchors, aliases, merge keys, tags, a second document, keys that are no plain
// text, and duplicate keys.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/result.h"

namespace ulpscope {

inline constexpr size_t kMaxFileBytes = 1 << 20;
inline constexpr size_t kMaxLineBytes = 1 << 16;
inline constexpr int kMaxDepth = 32;
inline constexpr size_t kMaxNodes = 250'000;

/// A place in the file being read; both count from 1.
struct Mark {
  int line = 0;
  int column = 0;
  bool operator==(const Mark&) const = default;
};

struct Node {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  bool quoted = false;  ///< a scalar in quotes, or a block of text: text, whatever it looks like
  Mark mark;
  std::string text = {};            ///< of a scalar, in its original spelling
  std::vector<Node> children = {};  ///< of a list: its items; of a map: key, value, key, value ...

  size_t entry_count() const { return children.size() / 2; }
  const Node& key(size_t entry) const { return children[2 * entry]; }
  const Node& value(size_t entry) const { return children[2 * entry + 1]; }
  /// The value at `key`, or null when this is no map or has no such key.
  const Node* Find(std::string_view key) const;
  /// "'text'", "a list", "a map" or "nothing", for messages. Long text is truncated, control characters are left out.
  std::string Describe() const;
};

/// `node` and all below it.
size_t CountNodes(const Node& node);

/// `file` is only used for the places of errors. A file without content gives a kNull node.
Result<Node> ParseYaml(std::string_view text, const std::string& file);

/// Refuses files above kMaxFileBytes before reading them, and everything that is no regular file.
Result<std::string> ReadSmallFile(const std::filesystem::path& path, const std::string& shown_as);

}  // namespace ulpscope
