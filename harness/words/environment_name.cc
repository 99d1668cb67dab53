// Taking the environment out of a backend string.
#include "harness/words/environment_name.h"

#include "harness/words/backend_name.h"
#include "harness/words/knobs.h"

namespace ulpscope {

EnvironmentName SplitEnvironment(std::string_view backend) {
  auto spec = BackendSpec::Parse(backend);
  if (!spec) return {.environment = std::string(kNoEnvironment), .backend = std::string(backend)};
  const auto env = spec->knobs.find(std::string(kEnvKnob));
  if (env == spec->knobs.end()) return {.environment = std::string(kNoEnvironment), .backend = spec->Text()};
  EnvironmentName name{.environment = env->second};
  spec->knobs.erase(env);
  name.backend = spec->Text();
  return name;
}

}  // namespace ulpscope
