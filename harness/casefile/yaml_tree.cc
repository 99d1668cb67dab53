// Event stream of yaml-cpp to tree, with everything refused that two readers could read differently.
#include "harness/casefile/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <unordered_set>

namespace ulpscope {
namespace {

/// Thrown through yaml-cpp's parser to stop it at the first thing that is refused.
struct Refused {
  Error error;
};

/// The length of the UTF-8 sequence at `text[i]`, or 0 when it is not valid (Unicode 15, table 3-7).
size_t SequenceLength(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) {
    return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0u;
  };
  const auto continuation = [&](size_t k) { return (byte(k) & 0xC0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continuation(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = first == 0xED ? 0x9F : 0xBF;
    return byte(1) >= low && byte(1) <= high && continuation(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = first == 0xF4 ? 0x8F : 0xBF;
    return byte(1) >= low && byte(1) <= high && continuation(2) && continuation(3) ? 4 : 0;
  }
  return 0;
}

std::string HexByte(unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  return {'0', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

/// The error that the bytes alone show, if any.
std::optional<Error> CheckBytes(std::string_view text, const std::string& file) {
  SourcePos pos{.file = file, .line = 1, .column = 1};
  const auto refuse = [&](std::string message, std::string found, std::string expected, std::string hint) {
    return Error{.message = std::move(message),
                 .pos = pos,
                 .found = std::move(found),
                 .expected = std::move(expected),
                 .hint = std::move(hint)};
  };
  if (text.size() > kMaxFileBytes) {
    pos.line = 0;
    return refuse("file is too large", std::to_string(text.size()) + " bytes", "at most 1 MiB", "");
  }
  if (text.starts_with("\xEF\xBB\xBF"))
    return refuse("byte order mark", "", "UTF-8 without a byte order mark", "");
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t length = SequenceLength(text, i);
    if (length == 0) return refuse("invalid UTF-8", "byte " + HexByte(byte), "", "save the file as UTF-8");
    if (byte == '\n') {
      ++pos.line;
      pos.column = 1;
      ++i;
      continue;
    }
    if (byte == '\t') return refuse("tab character", "a tab", "spaces", "replace the tab by spaces");
    const bool line_end = byte == '\r' && i + 1 < text.size() && text[i + 1] == '\n';
    if ((byte < 0x20 && !line_end) || byte == 0x7F)
      return refuse("control character", "byte " + HexByte(byte), "printable text", "");
    // U+0080..U+009F, U+2028 and U+2029: some readers end a line there.
    const std::string_view sequence = text.substr(i, length);
    if ((byte == 0xC2 && static_cast<unsigned char>(text[i + 1]) < 0xA0) || sequence == "\xE2\x80\xA8" ||
        sequence == "\xE2\x80\xA9") {
      return refuse("control character", "a Unicode line break or control", "printable text", "");
    }
    pos.column += static_cast<int>(length);
    if (static_cast<size_t>(pos.column) > kMaxLineBytes)
      return refuse("line is too long", "more than 64 KiB", "at most 64 KiB", "break the line");
    i += length;
  }
  return std::nullopt;
}

/// Leading spaces of a line; 0 for lines past the end.
size_t Indentation(std::string_view text, int line) {
  for (; line > 1; --line) {
    const size_t end = text.find('\n');
    if (end == text.npos) return 0;
    text.remove_prefix(end + 1);
  }
  const size_t spaces = text.find_first_not_of(' ');
  return spaces == text.npos ? 0 : spaces;
}

/// The position of the last quote that begins a scalar: the one that runs to the end of the file. `otherwise` if there
/// is none.
SourcePos LastQuote(std::string_view text, SourcePos otherwise) {
  for (size_t i = text.size(); i-- > 0;) {
    if (text[i] != '"' && text[i] != '\'') continue;
    if (i > 0 && std::string_view(" \n[{,").find(text[i - 1]) == std::string_view::npos) continue;
    const std::string_view before = text.substr(0, i);
    otherwise.line = 1 + static_cast<int>(std::ranges::count(before, '\n'));
    const size_t line_start = before.rfind('\n');
    otherwise.column = static_cast<int>(line_start == before.npos ? i : i - line_start - 1) + 1;
    return otherwise;
  }
  return otherwise;
}

/// Builds the tree; throws Refused at the first event that is not allowed.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  bool empty() const { return root_.kind == Node::Kind::kNull; }
  Node Take() { return std::move(root_); }
  /// The start of the innermost open list or map, if it is one in brackets; else null.
  const Mark* open_bracket() const {
    return open_.empty() || !in_brackets_.back() ? nullptr : &open_.back().mark;
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0)
      Refuse(mark, "second document", "a second YAML document", "one document per file", "remove the '---'");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    Add(Node{
        .kind = Node::Kind::kNull,
        .mark = Convert(mark),
    });
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Refuse(mark, "alias", "an alias (*name)", "the value itself",
           "a case file has no aliases: write the value out");
  }
  void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
    Refuse(mark, "anchor", "'&" + name + "'", "the value itself",
           "a case file has no anchors: use file-level defaults or a sweep");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    CheckTag(mark, tag);
    if (tag == "!" && !IsClosed(static_cast<size_t>(mark.pos))) {
      Refuse(mark, "quote is never closed", "the end of the file", "a closing quote", "");
    }
    Add(Node{.kind = Node::Kind::kScalar, .quoted = tag == "!", .mark = Convert(mark), .text = value});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value style) override {
    Open(mark, tag, Node::Kind::kList, style);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value style) override {
    Open(mark, tag, Node::Kind::kMap, style);
  }
  void OnMapEnd() override {
    CheckKeys(open_.back());
    Close();
  }

 private:
  static Mark Convert(const YAML::Mark& mark) { return {.line = mark.line + 1, .column = mark.column + 1}; }

  [[noreturn]] void Refuse(const Mark& mark, std::string message, std::string found, std::string expected,
                           std::string hint) {
    throw Refused{Error{.message = std::move(message),
                        .pos = {.file = file_, .line = mark.line, .column = mark.column},
                        .found = std::move(found),
                        .expected = std::move(expected),
                        .hint = std::move(hint)}};
  }
  [[noreturn]] void Refuse(const YAML::Mark& mark, std::string message, std::string found,
                           std::string expected, std::string hint) {
    Refuse(Convert(mark), std::move(message), std::move(found), std::move(expected), std::move(hint));
  }

  /// False for a quoted scalar that runs into the end of the file: yaml-cpp takes the rest of the file for
  /// its text.
  bool IsClosed(size_t at) const {
    const char quote = at < text_.size() ? text_[at] : '\0';
    if (quote != '"' && quote != '\'') return true;  // a block of text
    for (++at; at < text_.size(); ++at) {
      if (quote == '"' && text_[at] == '\\') {
        ++at;
      } else if (text_[at] == quote) {
        if (quote == '"' || at + 1 == text_.size() || text_[at + 1] != quote) return true;
        ++at;
      }
    }
    return false;
  }

  void CheckTag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!")
      Refuse(mark, "tag", "'" + tag + "'", "a value without a tag", "");
  }

  void Open(const YAML::Mark& mark, const std::string& tag, Node::Kind kind,
            YAML::EmitterStyle::value style) {
    CheckTag(mark, tag);
    if (open_.size() >= kMaxDepth)
      Refuse(mark, "nested too deeply", "more than 32 levels", "at most 32 levels", "");
    open_.push_back(Node{
        .kind = kind,
        .mark = Convert(mark),
    });
    in_brackets_.push_back(style == YAML::EmitterStyle::Flow);
  }

  void Close() {
    Node done = std::move(open_.back());
    open_.pop_back();
    in_brackets_.pop_back();
    Add(std::move(done));
  }

  void Add(Node node) {
    if (++nodes_ > kMaxNodes)
      Refuse(node.mark, "too many entries", "more than 250000", "at most 250000", "split the file");
    if (open_.empty()) {
      root_ = std::move(node);
    } else {
      Node& parent = open_.back();
      // yaml-cpp places a missing value at the next token, often lines below its key.
      const bool is_value = parent.kind == Node::Kind::kMap && parent.children.size() % 2 == 1;
      if (is_value && node.kind == Node::Kind::kNull && node.mark.line != parent.children.back().mark.line) {
        node.mark = parent.children.back().mark;
      }
      parent.children.push_back(std::move(node));
    }
  }

  void CheckKeys(const Node& map) {
    std::unordered_set<std::string_view> seen;
    for (size_t i = 0; i < map.entry_count(); ++i) {
      const Node& key = map.key(i);
      if (key.kind != Node::Kind::kScalar || key.text.empty())
        Refuse(key.mark, "key is no text", key.Describe(), "a name", "");
      if (key.text == "<<" && !key.quoted)
        Refuse(key.mark, "merge key", "'<<'", "the keys themselves", "use file-level defaults");
      if (!seen.insert(key.text).second)
        Refuse(key.mark, "duplicate key " + key.Describe(), key.Describe() + " again", "each key once", "");
    }
  }

  std::string_view text_;
  const std::string& file_;
  int documents_ = 0;
  size_t nodes_ = 0;
  std::vector<Node> open_;
  std::vector<bool> in_brackets_;  ///< of each node in open_
  Node root_;
};

}  // namespace

const Node* Node::Find(std::string_view wanted) const {
  if (kind != Kind::kMap) return nullptr;
  for (size_t i = 0; i < entry_count(); ++i) {
    if (key(i).text == wanted) return &value(i);
  }
  return nullptr;
}

std::string Node::Describe() const {
  switch (kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a map";
    case Kind::kScalar:
      break;
  }
  std::string shown;
  for (const char c : text) {
    if (shown.size() >= 60 && (static_cast<unsigned char>(c) & 0xC0) != 0x80) return "'" + shown + "...'";
    shown += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return "'" + shown + "'";
}

size_t CountNodes(const Node& node) {
  size_t count = 1;
  for (const Node& child : node.children) count += CountNodes(child);
  return count;
}

Result<Node> ParseYaml(std::string_view text, const std::string& file) {
  if (auto error = CheckBytes(text, file)) return Fail(std::move(*error));
  std::istringstream stream{std::string(text)};
  TreeBuilder builder(text, file);
  try {
    YAML::Parser parser(stream);
    // Never loop here: for some inputs (a file that holds one comma) the parser reports empty documents
    // without end. The second call only checks whether there is more, and the builder refuses it.
    if (parser.HandleNextDocument(builder) && !builder.empty()) parser.HandleNextDocument(builder);
  } catch (const Refused& refused) {
    return Fail(refused.error);
  } catch (const YAML::Exception& exception) {
    SourcePos pos{.file = file, .line = exception.mark.line + 1, .column = exception.mark.column + 1};
    const Mark* bracket = builder.open_bracket();
    std::string hint;
    if (exception.msg == "illegal EOF in scalar") {
      pos = LastQuote(text, std::move(pos));
      hint = "is this quote closed?";
    } else if (bracket != nullptr && bracket->line < pos.line &&
               Indentation(text, pos.line) <= Indentation(text, bracket->line)) {
      // A bracket that is never closed is noticed lines below; the error belongs to the bracket.
      pos.line = bracket->line;
      pos.column = bracket->column;
      hint = "is this bracket closed?";
    }
    Error error = Problem("not valid YAML: " + exception.msg, "", "", std::move(hint));
    error.pos = std::move(pos);
    return Fail(std::move(error));
  }
  return builder.Take();
}

Result<std::string> ReadSmallFile(const std::filesystem::path& path, const std::string& shown_as) {
  const SourcePos pos{.file = shown_as, .line = 0, .column = 0};
  std::error_code code;
  const auto refuse = [&](std::string message, std::string found, std::string expected) {
    return Fail(Error{.message = std::move(message),
                      .pos = pos,
                      .found = std::move(found),
                      .expected = std::move(expected)});
  };
  if (!std::filesystem::exists(path, code)) return refuse("file does not exist", "", "");
  if (!std::filesystem::is_regular_file(path, code)) return refuse("not a regular file", "", "a YAML file");
  std::ifstream stream(path, std::ios::binary);
  // One byte above the limit is enough to know, whatever size the file system reports.
  std::string text(kMaxFileBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad() || (stream.fail() && !stream.eof())) return refuse("cannot read the file", "", "");
  text.resize(static_cast<size_t>(stream.gcount()));
  if (text.size() > kMaxFileBytes) return refuse("file is too large", "more than 1 MiB", "at most 1 MiB");
  return text;
}

}  // namespace ulpscope
