// Finding secrets.
#include "harness/base/secrets.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "harness/base/letters.h"

extern char** environ;

namespace ulpscope {
namespace {

/// Shorter values stand everywhere.
constexpr size_t kShortestKnown = 6;
constexpr size_t kShortestPassword = 4;
constexpr size_t kShortestToken = 8;

constexpr std::string_view kBlanks = " \t\r\n";

bool IsFigure(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool IsWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

/// The words of a name: JAX_PW, api-key, accessKey.
std::vector<std::string> WordsOf(std::string_view name) {
  std::vector<std::string> words(1);
  for (size_t i = 0; i < name.size(); ++i) {
    const bool is_hump = i > 0 && std::isupper(static_cast<unsigned char>(name[i])) != 0 &&
                         std::islower(static_cast<unsigned char>(name[i - 1])) != 0;
    if (name[i] == '_' || name[i] == '-' || name[i] == '.') {
      words.emplace_back();
    } else {
      if (is_hump) words.emplace_back();
      words.back() += name[i];
    }
  }
  for (auto& word : words) word = Lower(word);
  return words;
}

/// Names of which any value is a secret; they may be a part of a word.
bool NamesPassword(const std::string& word) {
  constexpr std::array<std::string_view, 6> kParts{"passw",      "passphrase", "secret",
                                                   "credential", "apikey",     "bearer"};
  return word == "pwd" || word == "pw" || word == "pass" ||
         std::ranges::any_of(kParts, [&](std::string_view part) { return word.find(part) != word.npos; });
}

/// Words that stand for secrets, and for much else.
bool MayNameSecret(const std::string& word) {
  constexpr std::array<std::string_view, 14> kWords{"key",    "keys",      "auth",  "authorization", "sig",
                                                    "cookie", "signature", "sas",   "jwt",           "pat",
                                                    "dsn",    "cred",      "creds", "private"};
  return word.find("token") != word.npos || std::ranges::find(kWords, word) != kWords.end();
}

/// A part of a text whose form shows that it is a secret: [begin, end).
struct Found {
  size_t begin = 0, end = 0;
};

std::string Replaced(std::string_view text, const std::vector<Found>& found) {
  std::string clean;
  size_t at = 0;
  for (const Found& one : found) {
    if (one.begin < at) continue;
    clean += text.substr(at, one.begin - at);
    clean += kNotRecorded;
    at = one.end;
  }
  return clean += text.substr(at);
}

/// The user part of the URL whose "://" ends at `begin`. A password may hold a slash that should have been escaped: then what looks
/// like a port is none.
std::optional<Found> UserOfUrl(std::string_view text, size_t begin) {
  const size_t end = std::min(text.find_first_of(" \t\r\n\"'`<>", begin), text.size());
  const size_t authority = std::min(text.find_first_of("/?#", begin), end);
  size_t at = text.substr(0, authority).rfind('@');
  if (at == text.npos || at < begin) {
    const size_t colon = text.find(':', begin);
    const bool is_port =
        colon >= authority || std::ranges::all_of(text.substr(colon + 1, authority - colon - 1), IsFigure);
    at = is_port ? text.npos : text.substr(0, end).rfind('@');
  }
  if (at == text.npos || at <= begin) return std::nullopt;
  return Found{.begin = begin, .end = at};
}

std::vector<Found> UsersOfUrls(std::string_view text) {
  std::vector<Found> found;
  for (size_t at = text.find("://"); at != text.npos; at = text.find("://", at + 3)) {
    if (const auto user = UserOfUrl(text, at + 3)) found.push_back(*user);
  }
  return found;
}

/// From `begin` on, up to its quote or to what ends a bare value.
Found ValueAt(std::string_view text, size_t begin) {
  if (begin < text.size() && (text[begin] == '"' || text[begin] == '\'')) {
    const size_t end = text.find(text[begin], begin + 1);
    return {.begin = begin + 1, .end = std::min(end, text.size())};
  }
  return {.begin = begin, .end = std::min(text.find_first_of(" \t\r\n\"'`&;,<>()[]{}", begin), text.size())};
}

bool LooksRandom(std::string_view value) {
  return value.size() >= kShortestToken && std::ranges::any_of(value, IsLetter) &&
         std::ranges::any_of(value, IsFigure);
}

bool IsPlainWord(std::string_view value) {
  constexpr std::array<std::string_view, 5> kWords{"none", "null", "true", "false", "nullptr"};
  return std::ranges::find(kWords, Lower(value)) != kWords.end() ||
         std::ranges::all_of(value, [](char c) { return IsFigure(c) || c == '.' || c == '%'; });
}

/// The value behind the name that ends at `end`: `=value`, `: value`, and for an option (--name) also `
/// value`.
std::optional<Found> ValueBehind(std::string_view text, size_t end, bool is_option) {
  size_t at = end;
  if (at < text.size() && (text[at] == '"' || text[at] == '\'')) ++at;
  const size_t after = text.find_first_not_of(kBlanks, at);
  if (after == text.npos) return std::nullopt;
  if (text[after] == '=' || text[after] == ':') {
    if (after + 1 < text.size() && text[after + 1] == text[after]) return std::nullopt;  // a::b, a == b
    at = text.find_first_not_of(kBlanks, after + 1);
  } else if (is_option && after > end) {
    at = after;
  } else {
    return std::nullopt;
  }
  if (at == text.npos) return std::nullopt;
  Found value = ValueAt(text, at);
  const std::string scheme = Lower(text.substr(value.begin, value.end - value.begin));
  if (scheme == "bearer" || scheme == "basic" || scheme == "token" || scheme == "digest") {
    const size_t next = text.find_first_not_of(kBlanks, value.end);
    if (next != text.npos) value = ValueAt(text, next);
  }
  return value;
}

/// `password=...`, `Authorization: Bearer ...`, `--api-key ...`.
std::vector<Found> NamedSecrets(std::string_view text) {
  std::vector<Found> found;
  for (size_t begin = 0; begin < text.size();) {
    if (!IsWordCharacter(text[begin])) {
      ++begin;
      continue;
    }
    size_t end = begin;
    while (end < text.size() && IsWordCharacter(text[end])) ++end;
    const auto words = WordsOf(text.substr(begin, end - begin));
    const bool password = std::ranges::any_of(words, NamesPassword);
    if (password || MayNameSecret(words.back())) {
      const auto value = ValueBehind(text, end, text.substr(begin).starts_with("--"));
      const auto said = value ? text.substr(value->begin, value->end - value->begin) : std::string_view();
      if (value && (password ? said.size() >= kShortestPassword && !IsPlainWord(said) : LooksRandom(said))) {
        found.push_back(*value);
        end = std::max(end, value->end);
      }
    }
    begin = end;
  }
  return found;
}

struct Issued {
  std::string_view prefix;
  size_t shortest;  ///< of what follows
};

/// As their issuers document them: AWS, GitHub, GitLab, Hugging Face, OpenAI, Slack, npm, PyPI, NVIDIA, Google; a JSON Web Token is
/// base64 of `{"`.
constexpr std::array<Issued, 20> kIssued{{{"AKIA", 16},   {"ASIA", 16},  {"ghp_", 20},  {"gho_", 20},
                                          {"ghu_", 20},   {"ghs_", 20},  {"ghr_", 20},  {"github_pat_", 20},
                                          {"glpat-", 16}, {"hf_", 20},   {"sk-", 20},   {"xoxb-", 10},
                                          {"xoxp-", 10},  {"xoxa-", 10}, {"xoxr-", 10}, {"npm_", 30},
                                          {"pypi-", 30},  {"AIza", 30},  {"eyJ", 30},   {"nvapi-", 30}}};

std::vector<Found> IssuedTokens(std::string_view text) {
  std::vector<Found> found;
  for (size_t begin = 0; begin < text.size(); ++begin) {
    if (begin > 0 && IsWordCharacter(text[begin - 1])) continue;
    for (const Issued& issued : kIssued) {
      if (!text.substr(begin).starts_with(issued.prefix)) continue;
      size_t end = begin + issued.prefix.size();
      while (end < text.size() && (IsWordCharacter(text[end]) || text[end] == '.')) ++end;
      const size_t after = begin + issued.prefix.size();
      const auto token = text.substr(after, end - after);
      if (token.size() >= issued.shortest && LooksRandom(token))
        found.push_back({.begin = begin, .end = end});
    }
  }
  return found;
}

std::vector<Found> PrivateKeys(std::string_view text) {
  std::vector<Found> found;
  constexpr std::string_view kBegin = "-----BEGIN ", kEnd = "-----END ";
  for (size_t at = text.find(kBegin); at != text.npos; at = text.find(kBegin, at + 1)) {
    const size_t line = text.find("-----", at + kBegin.size());
    if (line == text.npos || text.substr(at, line - at).find("PRIVATE KEY") == text.npos) continue;
    found.push_back({.begin = line + 5, .end = std::min(text.find(kEnd, line), text.size())});
  }
  return found;
}

std::string WithoutKnown(std::string_view text, std::span<const std::string> known) {
  std::string clean(text);
  for (const std::string& secret : known) {
    for (size_t at = clean.find(secret); at != clean.npos; at = clean.find(secret, at + kNotRecorded.size()))
      clean.replace(at, secret.size(), kNotRecorded);
  }
  return clean;
}

}  // namespace

bool NamesSecret(std::string_view name) {
  const auto words = WordsOf(name);
  return std::ranges::any_of(words, NamesPassword) || std::ranges::any_of(words, MayNameSecret);
}

std::vector<std::string> SecretsOf(std::span<const std::string_view> environment) {
  std::vector<std::string> secrets;
  for (const std::string_view entry : environment) {
    const size_t equals = entry.find('=');
    if (equals == entry.npos) continue;
    const std::string_view name = entry.substr(0, equals), value = entry.substr(equals + 1);
    // The shell's own, and files that hold a secret: their names are none.
    const bool is_place = name == "PWD" || name == "OLDPWD" || value.starts_with('/');
    if (NamesSecret(name) && !is_place && !IsPlainWord(value)) secrets.emplace_back(value);
    for (const Found& user : UsersOfUrls(value)) {
      const std::string_view said = value.substr(user.begin, user.end - user.begin);
      secrets.emplace_back(said.substr(said.find(':') + 1));
    }
  }
  std::erase_if(secrets, [](const std::string& secret) { return secret.size() < kShortestKnown; });
  std::ranges::stable_sort(secrets, [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return secrets;
}

std::string WithoutSecrets(std::string_view text, std::span<const std::string> known) {
  std::string clean(text);
  // Forms first: what stands in the place of a known secret would break them.
  for (const auto find : {UsersOfUrls, PrivateKeys, IssuedTokens, NamedSecrets})
    clean = Replaced(clean, find(clean));
  return WithoutKnown(clean, known);
}

std::string WithoutSecrets(std::string_view text) {
  static const std::vector<std::string> kKnown = [] {
    std::vector<std::string_view> entries;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) entries.emplace_back(*entry);
    return SecretsOf(entries);
  }();
  return WithoutSecrets(text, kKnown);
}

}  // namespace ulpscope
