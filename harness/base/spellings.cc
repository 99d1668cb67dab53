// The table of other spellings.
#include "harness/base/spellings.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "harness/base/letters.h"

namespace ulpscope {
namespace {

struct Spelling {
  std::string_view theirs, ours;
};

/// In lower case: as PyTorch, NumPy, JAX, C, CUDA, MLIR and HLO have them.
constexpr std::array kSpellings{
    Spelling{"fp32", "float32"},
    Spelling{"f32", "float32"},
    Spelling{"float", "float32"},
    Spelling{"single", "float32"},
    Spelling{"binary32", "float32"},
    Spelling{"float32_t", "float32"},
    Spelling{"fp64", "float64"},
    Spelling{"f64", "float64"},
    Spelling{"double", "float64"},
    Spelling{"binary64", "float64"},
    Spelling{"float64_t", "float64"},
    Spelling{"fp16", "float16"},
    Spelling{"f16", "float16"},
    Spelling{"half", "float16"},
    Spelling{"binary16", "float16"},
    Spelling{"float16_t", "float16"},
    Spelling{"ieee_half", "float16"},
    Spelling{"bf16", "bfloat16"},
    Spelling{"bfloat", "bfloat16"},
    Spelling{"brain", "bfloat16"},
    Spelling{"brainfloat16", "bfloat16"},
    Spelling{"bfloat16_t", "bfloat16"},
    Spelling{"nv_bfloat16", "bfloat16"},
    Spelling{"tensorfloat32", "tf32"},
    Spelling{"tensorfloat-32", "tf32"},
    Spelling{"tensor_float_32", "tf32"},
    Spelling{"tensor-float-32", "tf32"},
    Spelling{"fp19", "tf32"},
    Spelling{"tf32x1", "tf32"},
    Spelling{"e4m3", "float8_e4m3fn"},
    Spelling{"e4m3fn", "float8_e4m3fn"},
    Spelling{"f8e4m3fn", "float8_e4m3fn"},
    Spelling{"f8e4m3", "float8_e4m3fn"},
    Spelling{"fp8_e4m3", "float8_e4m3fn"},
    Spelling{"fp8_e4m3fn", "float8_e4m3fn"},
    Spelling{"float8_e4m3", "float8_e4m3fn"},
    Spelling{"e5m2", "float8_e5m2"},
    Spelling{"f8e5m2", "float8_e5m2"},
    Spelling{"fp8_e5m2", "float8_e5m2"},
    Spelling{"e4m3fnuz", "float8_e4m3fnuz"},
    Spelling{"f8e4m3fnuz", "float8_e4m3fnuz"},
    Spelling{"fp8_e4m3fnuz", "float8_e4m3fnuz"},
    Spelling{"e5m2fnuz", "float8_e5m2fnuz"},
    Spelling{"f8e5m2fnuz", "float8_e5m2fnuz"},
    Spelling{"fp8_e5m2fnuz", "float8_e5m2fnuz"},
    Spelling{"i8", "int8"},
    Spelling{"s8", "int8"},
    Spelling{"si8", "int8"},
    Spelling{"char", "int8"},
    Spelling{"int8_t", "int8"},
    Spelling{"i16", "int16"},
    Spelling{"s16", "int16"},
    Spelling{"si16", "int16"},
    Spelling{"short", "int16"},
    Spelling{"int16_t", "int16"},
    Spelling{"i32", "int32"},
    Spelling{"s32", "int32"},
    Spelling{"si32", "int32"},
    Spelling{"int", "int32"},
    Spelling{"int32_t", "int32"},
    Spelling{"i64", "int64"},
    Spelling{"s64", "int64"},
    Spelling{"si64", "int64"},
    Spelling{"long", "int64"},
    Spelling{"int64_t", "int64"},
    Spelling{"u8", "uint8"},
    Spelling{"ui8", "uint8"},
    Spelling{"byte", "uint8"},
    Spelling{"uint8_t", "uint8"},
    Spelling{"pred", "bool"},
    Spelling{"i1", "bool"},
    Spelling{"boolean", "bool"},
    Spelling{"bool_", "bool"},
    Spelling{"bool8", "bool"},
    Spelling{"axis", "dim"},
    Spelling{"axes", "dim"},
    Spelling{"keepdims", "keepdim"},
    Spelling{"randn", "normal"},
    Spelling{"no", "none"},
    Spelling{"nothing", "none"},
    Spelling{"null", "none"},
    Spelling{"as-is", "as_is"},
    Spelling{"asis", "as_is"},
    Spelling{"unchanged", "as_is"},
};

std::string_view Ours(std::string_view theirs) {
  const auto* found = std::ranges::find(kSpellings, theirs, &Spelling::theirs);
  return found == kSpellings.end() ? std::string_view() : found->ours;
}

/// Each word of letters and digits replaced by ours: bf16_rne, split_k(fp32,bf16).
std::string PartByPart(std::string_view text) {
  const auto in_a_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  std::string made;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && in_a_word(text[end])) ++end;
    if (end == at) {
      made += text[at++];
      continue;
    }
    const std::string_view word = text.substr(at, end - at), ours = Ours(word);
    made += ours.empty() ? word : ours;
    at = end;
  }
  return made;
}

}  // namespace

std::string OurSpelling(std::string_view theirs, const std::function<bool(std::string_view)>& is_known) {
  constexpr size_t kLongest = 100;
  if (theirs.size() > kLongest) return "";
  const std::string lower = Lower(theirs), last = lower.substr(lower.rfind('.') + 1);
  // `torch.`, `jnp.` and the like stand before a name.
  for (const std::string& each : {lower, last}) {
    for (const std::string& ours : {each, std::string(Ours(each)), PartByPart(each)}) {
      if (!ours.empty() && ours != theirs && is_known(ours)) return ours;
    }
  }
  return "";
}

}  // namespace ulpscope
