// Writing datasheets.
#include "reports/datasheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/base/text.h"
#include "reports/text_safe.h"

namespace ulpscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string ReadBy(const DatasheetLine& line) {
  const std::string dots = Counted(line.dots, "dot product");
  return line.probes.empty() ? dots : Join(line.probes, " ") + ", " + dots;
}

OrderedJson MapOf(const std::map<std::string, std::string>& map) {
  OrderedJson object = OrderedJson::object();
  for (const auto& [key, value] : map) object[Utf8Safe(key)] = Utf8Safe(value);
  return object;
}

}  // namespace

std::string WriteDatasheetText(const Datasheet& sheet) {
  std::string text = fmt::format("{}  {} -> {}  {}\n", TerminalSafe(sheet.backend), sheet.dtype,
                                 sheet.out_dtype, TerminalSafe(sheet.program));
  std::string about;
  for (const auto& [package, version] : sheet.versions)
    about += (about.empty() ? "" : ", ") + package + " " + version;
  if (const auto cpu = sheet.machine.find("cpu"); cpu != sheet.machine.end())
    about += (about.empty() ? "" : "; ") + cpu->second;
  if (!about.empty()) text += TerminalSafe(about) + "\n";
  text += "\n";
  if (sheet.outcome != Datasheet::Outcome::kRead)
    text += fmt::format("{}: {}\n\n", Name(sheet.outcome), TerminalSafe(sheet.reason));
  size_t width = 0, found = 0;
  for (const auto& line : sheet.lines) {
    width = std::max(width, line.title.size());
    found = std::max(found, std::min<size_t>(line.text.size(), 60));
  }
  for (const auto& line : sheet.lines) {
    const std::string value =
        line.state == DatasheetLine::State::kNotRead ? "not read: " + line.text : line.text;
    text +=
        fmt::format("  {:<{}}  {:<{}}  [{}]\n", line.title, width, TerminalSafe(value), found, ReadBy(line));
  }
  if (!sheet.lines.empty()) text += "\n";
  text += fmt::format("{} dot products in {} launches; {} of {} precision models survive\n", sheet.dots,
                      sheet.launches, sheet.models.size(), sheet.models_tried);
  return text;
}

std::string WriteDatasheetJson(const Datasheet& sheet) {
  OrderedJson json;
  json["schema"] = "ulpscope.datasheet/1";
  json["ulpscope"] = sheet.ulpscope;
  json["outcome"] = Name(sheet.outcome);
  json["reason"] = Utf8Safe(sheet.reason);
  json["backend"] = Utf8Safe(sheet.backend);
  json["dtype"] = sheet.dtype;
  json["out_dtype"] = sheet.out_dtype;
  json["k"] = sheet.k;
  json["form"] = sheet.form;
  json["program"] = Utf8Safe(sheet.program);
  json["versions"] = MapOf(sheet.versions);
  json["knobs"] = MapOf(sheet.knobs);
  json["machine"] = MapOf(sheet.machine);
  json["dots"] = sheet.dots;
  json["launches"] = sheet.launches;
  json["models_tried"] = sheet.models_tried;
  json["models"] = sheet.models;
  json["lines"] = OrderedJson::array();
  for (const auto& line : sheet.lines) {
    json["lines"].push_back({{"key", line.key},
                             {"state", Name(line.state)},
                             {"words", line.words},
                             {"text", Utf8Safe(line.text)},
                             {"probes", line.probes},
                             {"dots", line.dots}});
  }
  json["tree"] = sheet.tree;
  return json.dump(1) + "\n";
}

}  // namespace ulpscope
