// Texts of the machine without secrets: a run folder is passed on, and it holds texts of adapters,
// environments and paths.
//
// Two ways, of which each finds what the other cannot. Secrets in the environment of this process, under the
// name of a secret or as the password of a URL, are known by their values, and are taken out wherever they
// stand. The others are known by their form: the user part of a URL, the text after `password=`, tokens with
// an issuer's prefix, private keys.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ulpscope {

/// Text in the place of a secret.
inline constexpr std::string_view kNotRecorded = "(not recorded)";

/// True of the name of a variable or an option whose value is probably a secret: HF_TOKEN, JAX_PW, api-key.
bool NamesSecret(std::string_view name);

/// Secrets that `environment` ("NAME=value") holds, longest first.
std::vector<std::string> SecretsOf(std::span<const std::string_view> environment);

/// `text` without `known`, and without what has the form of a secret.
std::string WithoutSecrets(std::string_view text, std::span<const std::string> known);
/// The same with what the environment of this process holds.
std::string WithoutSecrets(std::string_view text);

}  // namespace ulpscope
