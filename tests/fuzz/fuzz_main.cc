// One target as libFuzzer calls it; ULPSCOPE_FUZZ_TARGET names it. Half of the mutations are libFuzzer's own, of bytes; the other
// half are of tokens, for a text with a byte changed is nearly always refused at the door.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace ulpscope::fuzz {
namespace {

using Random = std::minstd_rand;

enum class TokenKind { kWord, kNumber, kSpace, kMark };

TokenKind KindOf(char c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_') return TokenKind::kWord;
  if ((c >= '0' && c <= '9') || c == '.') return TokenKind::kNumber;
  return c == ' ' || c == '\n' ? TokenKind::kSpace : TokenKind::kMark;
}

/// Words, numbers and spaces as long as they last; every other byte alone.
std::vector<std::string> Tokens(std::string_view text) {
  std::vector<std::string> tokens;
  for (const char c : text) {
    const bool joins =
        !tokens.empty() && KindOf(c) != TokenKind::kMark && KindOf(tokens.back()[0]) == KindOf(c);
    if (!joins) tokens.emplace_back();
    tokens.back() += c;
  }
  return tokens;
}

const char* const kNumbers[] = {"0",
                                "1",
                                "2",
                                "7",
                                "64",
                                "65",
                                "255",
                                "4096",
                                "65536",
                                "2147483648",
                                "9223372036854775807",
                                "18446744073709551616",
                                "0.5",
                                "1e400",
                                "0001"};

/// One change that leaves what is no token of its own kind as it stands.
std::string MutateTokens(std::string_view text, Random& random) {
  std::vector<std::string> tokens = Tokens(text);
  if (tokens.empty()) return std::string(text);
  const auto any = [&](size_t below) { return static_cast<size_t>(random()) % below; };
  const size_t at = any(tokens.size());
  std::string& token = tokens[at];
  std::vector<size_t> alike;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (KindOf(tokens[i][0]) == KindOf(token[0])) alike.push_back(i);
  }
  const size_t other = alike[any(alike.size())];
  const auto stretch_begin = tokens.begin() + static_cast<std::ptrdiff_t>(std::min(at, other));
  const auto stretch_end = tokens.begin() + static_cast<std::ptrdiff_t>(std::max(at, other));
  const std::vector<std::string> stretch(stretch_begin, stretch_end);
  switch (any(6)) {
    case 0:  // another one of its kind
      token = KindOf(token[0]) == TokenKind::kNumber && any(2) == 0 ? kNumbers[any(std::size(kNumbers))]
                                                                    : tokens[other];
      break;
    case 1:
      std::swap(token, tokens[other]);
      break;
    case 2:  // longer or shorter
      if (any(2) == 0 && token.size() > 1)
        token.pop_back();
      else
        token += token.back();
      break;
    case 3:
      token.clear();
      break;
    case 4:  // a stretch between two alike, again: an entry of a list, a line
      tokens.insert(stretch_end, stretch.begin(), stretch.end());
      break;
    default:  // such a stretch away
      tokens.erase(stretch_begin, stretch_end);
  }
  std::string mutated;
  for (const std::string& part : tokens) mutated += part;
  return mutated;
}

/// The text of a safetensors file is its header, whose length stands before it.
std::string MutateHeader(std::string_view file, Random& random) {
  uint64_t size = 0;
  if (file.size() < sizeof size) return std::string(file);
  std::memcpy(&size, file.data(), sizeof size);
  if (size > file.size() - sizeof size) return std::string(file);
  std::string header = MutateTokens(file.substr(sizeof size, size), random);
  const std::string rest(file.substr(sizeof size + size));
  size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + header + rest;
}

}  // namespace
}  // namespace ulpscope::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ulpscope::fuzz::ULPSCOPE_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  using namespace ulpscope::fuzz;
  Random random(seed);
  if (random() % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool framed = &ULPSCOPE_FUZZ_TARGET == &Safetensors;
  const std::string mutated = framed ? MutateHeader(text, random) : MutateTokens(text, random);
  const size_t kept = std::min(mutated.size(), max_size);
  std::memcpy(data, mutated.data(), kept);
  return kept;
}
