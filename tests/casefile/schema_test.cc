// The JSON Schema: the committed file is current, and loader and schema give the same structural answers on a
// corpus.
#include "harness/casefile/schema.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <sstream>

#include "harness/base/build_info.h"
#include "harness/casefile/new_case.h"
#include "harness/casefile/structure.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// A validator for the part of draft-07 that the schema uses; JSON is YAML, so the case files' own reader
/// reads it. An unknown keyword is an error of the test.
class Validator {
 public:
  explicit Validator(const Node& schema) : root_(schema) {}

  bool Accepts(const Node& instance, const Node& schema) const {
    for (size_t i = 0; i < schema.entry_count(); ++i) {
      if (!AcceptsKeyword(instance, schema, schema.key(i).text, schema.value(i))) return false;
    }
    return true;
  }

 private:
  /// The JSON type of a scalar, as YAML's core schema reads it.
  static std::string TypeOf(const Node& node) {
    if (node.kind == Node::Kind::kMap) return "object";
    if (node.kind == Node::Kind::kList) return "array";
    if (node.kind == Node::Kind::kNull) return "null";
    if (node.quoted) return "string";
    if (node.text == "true" || node.text == "false") return "boolean";
    static const std::regex integer("[-+]?[0-9]+"),
        number("[-+]?([.][0-9]+|[0-9]+([.][0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?[.]inf|[.]nan");
    if (std::regex_match(node.text, integer)) return "integer";
    return std::regex_match(node.text, number) ? "number" : "string";
  }

  static bool HasType(const Node& node, const std::string& type) {
    const std::string is = TypeOf(node);
    return is == type || (type == "number" && is == "integer");
  }

  static bool IsEqual(const Node& instance, const Node& value) {
    return TypeOf(instance) == TypeOf(value) && instance.text == value.text;
  }

  static bool Search(const std::string& text, const std::string& pattern) {
    static std::map<std::string, std::regex> compiled;
    auto place = compiled.find(pattern);
    if (place == compiled.end())
      place = compiled.emplace(pattern, std::regex(pattern, std::regex::ECMAScript)).first;
    return std::regex_search(text, place->second);
  }

  static size_t Count(const Node& node) { return static_cast<size_t>(std::stoul(node.text)); }

  bool AcceptsKeyword(const Node& instance, const Node& schema, const std::string& keyword,
                      const Node& value) const {
    const bool is_object = instance.kind == Node::Kind::kMap, is_array = instance.kind == Node::Kind::kList;
    if (keyword == "$schema" || keyword == "title" || keyword == "description" || keyword == "definitions" ||
        keyword == "then")
      return true;
    if (keyword == "$ref")
      return Accepts(
          instance,
          *root_.Find("definitions")->Find(value.text.substr(std::string("#/definitions/").size())));
    if (keyword == "type") {
      if (value.kind == Node::Kind::kScalar) return HasType(instance, value.text);
      return std::any_of(value.children.begin(), value.children.end(),
                         [&](const Node& type) { return HasType(instance, type.text); });
    }
    if (keyword == "enum")
      return std::any_of(value.children.begin(), value.children.end(),
                         [&](const Node& word) { return IsEqual(instance, word); });
    if (keyword == "const") return IsEqual(instance, value);
    if (keyword == "pattern") return TypeOf(instance) != "string" || Search(instance.text, value.text);
    if (keyword == "minimum")
      return TypeOf(instance) != "integer" || std::stod(instance.text) >= std::stod(value.text);
    if (keyword == "maximum")
      return TypeOf(instance) != "integer" || std::stod(instance.text) <= std::stod(value.text);
    if (keyword == "minItems") return !is_array || instance.children.size() >= Count(value);
    if (keyword == "maxItems") return !is_array || instance.children.size() <= Count(value);
    if (keyword == "minProperties") return !is_object || instance.entry_count() >= Count(value);
    if (keyword == "maxProperties") return !is_object || instance.entry_count() <= Count(value);
    if (keyword == "items")
      return !is_array || std::all_of(instance.children.begin(), instance.children.end(),
                                      [&](const Node& item) { return Accepts(item, value); });
    if (keyword == "required")
      return !is_object || std::all_of(value.children.begin(), value.children.end(),
                                       [&](const Node& key) { return instance.Find(key.text) != nullptr; });
    if (keyword == "anyOf")
      return std::any_of(value.children.begin(), value.children.end(),
                         [&](const Node& one) { return Accepts(instance, one); });
    if (keyword == "allOf")
      return std::all_of(value.children.begin(), value.children.end(),
                         [&](const Node& one) { return Accepts(instance, one); });
    if (keyword == "if") return !Accepts(instance, value) || Accepts(instance, *schema.Find("then"));
    if (keyword == "properties" || keyword == "patternProperties" || keyword == "additionalProperties") {
      return !is_object || AcceptsKeys(instance, schema, keyword, value);
    }
    ADD_FAILURE() << "the schema uses a keyword that this test does not know: " << keyword;
    return false;
  }

  bool AcceptsKeys(const Node& instance, const Node& schema, const std::string& keyword,
                   const Node& value) const {
    for (size_t i = 0; i < instance.entry_count(); ++i) {
      const std::string& key = instance.key(i).text;
      const Node* properties = schema.Find("properties");
      const Node* fixed = properties == nullptr ? nullptr : properties->Find(key);
      const Node* patterns = schema.Find("patternProperties");
      const bool fits = patterns != nullptr && Search(key, patterns->key(0).text);
      if (keyword == "properties" && fixed != nullptr && !Accepts(instance.value(i), *fixed)) return false;
      if (keyword == "patternProperties" && fits && !Accepts(instance.value(i), patterns->value(0)))
        return false;
      if (keyword == "additionalProperties" && fixed == nullptr && !fits && value.text == "false")
        return false;
    }
    return true;
  }

  const Node& root_;
};

std::vector<fs::path> YamlFiles(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml" && entry.path().filename() != "deviations.yaml")
      files.push_back(entry.path());
  }
  return files;
}

const fs::path kSource = SourceDir();

TEST(Schema, TheCommittedFileIsCurrent) {
  EXPECT_EQ(ReadFile(kSource / "cases/case.schema.json"), JsonSchema())
      << "write it again: ulpscope schema > cases/case.schema.json";
}

TEST(Schema, NamesEveryKeyAndOp) {
  const std::string schema = JsonSchema();
  EXPECT_NE(schema.find("\"cases\""), schema.npos);
  EXPECT_NE(schema.find("{\"const\": \"baddbmm\"}"), schema.npos);
  EXPECT_NE(schema.find("\"wide_exponent\""), schema.npos);
}

class Corpus : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(schema_.has_value()) << schema_.error().Text(); }

  bool SchemaAccepts(const Node& root) { return Validator(*schema_).Accepts(root, *schema_); }
  static bool LoaderAccepts(const Node& root) {
    ErrorSink errors("f");
    CheckStructure(root, FileType(), "the case file", errors);
    return errors.reported() == 0;
  }

  Result<Node> schema_ = ParseYaml(JsonSchema(), "schema");
};

TEST_F(Corpus, TheSchemaAcceptsTheShippedCases) {
  size_t accepted = 0;
  for (const fs::path& file : YamlFiles(kSource / "cases")) {
    const auto root = ParseYaml(ReadFile(file), file.string());
    ASSERT_TRUE(root.has_value()) << root.error().Text();
    EXPECT_TRUE(SchemaAccepts(*root)) << file;
    ++accepted;
  }
  EXPECT_GE(accepted, 7u);
  EXPECT_TRUE(SchemaAccepts(*ParseYaml(NewCaseTemplate("example"), "new")));
}

TEST_F(Corpus, LoaderAndSchemaRefuseTheSameStructures) {
  size_t refused = 0, accepted = 0;
  for (const fs::path& file : YamlFiles(kSource / "tests/casefile/malformed")) {
    const std::string name = file.stem().string();
    // JSON Schema cannot see how a scalar is written (2.0 is an integer to it, 010 and .inf are numbers, off
    // is text), and takes $k everywhere.
    const bool is_spelling =
        name == "fractional_extent" || name == "yaml_infinity" || name == "ambiguous_attribute";
    if (is_spelling || name.find("octal") != name.npos || name.find("sweep") != name.npos) continue;
    const auto root = ParseYaml(ReadFile(file), file.string());
    if (!root) continue;  // not the subset of YAML: no schema is asked
    const bool loader = LoaderAccepts(*root);
    EXPECT_EQ(SchemaAccepts(*root), loader) << name;
    ++(loader ? accepted : refused);
  }
  EXPECT_GE(refused, 40u);   // wrong structure
  EXPECT_GE(accepted, 20u);  // right structure, wrong meaning
}

/// Every way to take one node out of a good file or to put another kind in its place.
TEST_F(Corpus, LoaderAndSchemaAgreeOnEveryMutationOfAGoodFile) {
  size_t mutations = 0, refused = 0;
  for (const char* path :
       {"cases/seeds/matmul_out.yaml", "cases/seeds/data_cast.yaml", "cases/live/fused_chain.yaml"}) {
    auto root = ParseYaml(ReadFile(kSource / path), path);
    ASSERT_TRUE(root.has_value());
    std::vector<std::vector<size_t>> places;
    const std::function<void(const Node&, std::vector<size_t>)> walk = [&](const Node& node,
                                                                           const std::vector<size_t>& place) {
      places.push_back(place);
      for (size_t i = 0; i < node.children.size(); ++i) {
        auto below = place;
        below.push_back(i);
        if (node.kind != Node::Kind::kMap || i % 2 == 1) walk(node.children[i], below);
      }
    };
    walk(*root, {});
    for (size_t p = 1; p < places.size(); p += 1 + places.size() / 150) {
      for (int kind = 0; kind < 5; ++kind) {
        Node mutant = *root;
        Node* parent = nullptr;
        Node* node = &mutant;
        for (const size_t step : places[p]) parent = node, node = &node->children[step];
        const Mark mark = node->mark;
        if (kind == 0) *node = Node{.kind = Node::Kind::kNull, .mark = mark, .text = {}, .children = {}};
        if (kind == 1)
          *node = Node{.kind = Node::Kind::kScalar, .mark = mark, .text = "bogus word", .children = {}};
        if (kind == 2) *node = Node{.kind = Node::Kind::kList, .mark = mark, .text = {}, .children = {}};
        if (kind == 3) *node = Node{.kind = Node::Kind::kMap, .mark = mark, .text = {}, .children = {}};
        if (kind == 4 && parent->kind == Node::Kind::kMap) {  // the entry goes
          const auto at = parent->children.begin() + static_cast<std::ptrdiff_t>(places[p].back());
          parent->children.erase(at - 1, at + 1);
        }
        const bool loader = LoaderAccepts(mutant);
        EXPECT_EQ(SchemaAccepts(mutant), loader)
            << path << ":" << mark.line << ":" << mark.column << " mutation " << kind;
        ++mutations;
        refused += loader ? 0 : 1;
      }
    }
  }
  EXPECT_GE(mutations, 1000u);
  EXPECT_GE(refused, mutations / 2);
  std::printf("%zu mutations, %zu refused by both\n", mutations, refused);
}

}  // namespace
}  // namespace ulpscope
