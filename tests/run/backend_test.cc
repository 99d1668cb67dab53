// Backend strings, lists of them, the registry, and the environment that workers get.
#include "harness/run/backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "harness/run/environment.h"
#include "harness/run/preset.h"
#include "tests/run/run_fixture.h"

namespace ulpscope {
namespace {

BackendSpec Parsed(const std::string& text) {
  const auto spec = ParseBackend(text, TestRegistry());
  EXPECT_TRUE(spec) << text << ": " << (spec ? "" : spec.error().Text());
  return spec.value_or(BackendSpec{});
}

std::string Refused(const std::string& text) {
  const auto spec = ParseBackend(text, TestRegistry());
  EXPECT_FALSE(spec) << text;
  return spec ? "" : spec.error().Text();
}

TEST(BackendTest, NameDeviceAndKnobs) {
  EXPECT_EQ(Parsed("torch-eager"), (BackendSpec{.name = "torch-eager", .device = "cpu", .knobs = {}}));
  EXPECT_EQ(Parsed("torch-eager@cuda").device, "cuda");
  EXPECT_EQ(Parsed("torch-eager@cuda:1:threads=2"),
            (BackendSpec{.name = "torch-eager", .device = "cuda:1", .knobs = {{"threads", "2"}}}));
  EXPECT_EQ(Parsed("faulty:fault=hang,case=f(a,b)").knobs,
            (std::map<std::string, std::string>{{"fault", "hang"}, {"case", "f(a,b)"}}));
}

TEST(BackendTest, TheValueOfModelRunsToTheEnd) {
  const std::string model =
      "in=x:bfloat16_rne,y:bfloat16_rne;prod=exact;acc=blockfma(8,24,rz);mid=none;out=float32_rne";
  EXPECT_EQ(Parsed("emulated:threads=1,model=" + model).knobs.at("model"), model);
  EXPECT_EQ(Parsed("emulated:model=" + model).Text(), "emulated:model=" + model);
}

TEST(BackendTest, TextReadsBack) {
  for (const char* text :
       {"torch-eager", "torch-eager@cuda", "faulty:case=a,fault=hang",
        "openblas:openblas_coretype=Haswell,threads=2", "emulated:threads=2,model=in=x:a,y:b;prod=exact"}) {
    EXPECT_EQ(Parsed(text).Text(), text);
  }
}

TEST(BackendTest, ARowMayNameTheDeviceThatItRunsOn) {
  EXPECT_EQ(Parsed("cublas").device, "cuda");
  EXPECT_EQ(Parsed("cublas").Text(), "cublas@cuda");
  EXPECT_EQ(Parsed("cublas@cuda"), Parsed("cublas"));
  EXPECT_EQ(Parsed("cublaslt:cublaslt_split_k=2").Text(), "cublaslt@cuda:cublaslt_split_k=2");
  EXPECT_EQ(Parsed("cublas@cuda:1").device, "cuda:1");
  for (const auto& spec : AllBackends(TestRegistry()))
    EXPECT_EQ(spec.device, spec.name.starts_with("cublas") ? "cuda" : "cpu") << spec.name;
}

TEST(BackendTest, RefusalsNameTheNearest) {
  EXPECT_NE(Refused("torch-eagr").find("did you mean 'torch-eager'?"), std::string::npos);
  EXPECT_NE(
      Refused("torch-inductor:emulate_precision_cast=true").find("did you mean 'emulate_precision_casts'?"),
      std::string::npos);
  EXPECT_NE(Refused("openblas:threads").find("expected knob=value"), std::string::npos);
  EXPECT_NE(Refused("openblas:threads=1,threads=2").find("set twice"), std::string::npos);
  Refused("");
  Refused("torch-eager@");
  Refused("torch-eager:");
  Refused("torch-eager:threads=1,");
}

TEST(BackendTest, ListsSplitAtBackendsNotAtKnobs) {
  const Registry registry = TestRegistry();
  const auto texts = [&](const std::string& list) {
    std::vector<std::string> found;
    const auto specs = ParseBackendList(list, registry);
    EXPECT_TRUE(specs) << (specs ? "" : specs.error().Text());
    for (const auto& spec : specs.value_or(std::vector<BackendSpec>{})) found.push_back(spec.Text());
    return found;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts("torch-eager,openblas"), (Texts{"torch-eager", "openblas"}));
  EXPECT_EQ(texts("faulty:fault=hang,case=x,openblas:threads=2"),
            (Texts{"faulty:case=x,fault=hang", "openblas:threads=2"}));
  EXPECT_EQ(texts("emulated:model=in=x:a,y:b;prod=exact,openblas"),
            (Texts{"emulated:model=in=x:a,y:b;prod=exact", "openblas"}));
  EXPECT_EQ(texts("openblas,openblas"), (Texts{"openblas"}));
  EXPECT_FALSE(ParseBackendList("openblas,nonsense", registry));
}

TEST(RegistryTest, NamesEveryBackendAndWhatIsMissing) {
  const Registry registry = TestRegistry();
  const auto names = registry.Names();
  for (const char* name : {"torch-eager", "torch-traced", "torch-aot-eager", "torch-inductor", "jax",
                           "jax-eager", "openblas", "emulated", "faulty", "torch-xla", "onednn"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
  EXPECT_TRUE(registry.Check(*registry.Find("faulty")).installed);
  const Availability absent = registry.Check({.backend = "x",
                                              .title = "",
                                              .adapter = {},
                                              .requires_file = "",
                                              .python_packages = {},
                                              .knobs = {},
                                              .install = "",
                                              .absent = "not part of this version"});
  EXPECT_FALSE(absent.installed);
  EXPECT_EQ(absent.reason, "not part of this version");
  for (const auto& spec : AllBackends(registry)) EXPECT_NE(spec.name, "faulty");
  for (const auto& spec : DefaultBackends(registry))
    EXPECT_TRUE(registry.Check(*registry.Find(spec.name)).installed);
}

TEST(RegistryTest, AMissingInterpreterOrFileIsSaidWithTheLineThatInstalls) {
  Places places = Places::Detect();
  places.bin = "/nonexistent";
  places.python = "/nonexistent/python";
  const auto registry = Registry::Load(places.root / "backends/registry.jsonl", places);
  ASSERT_TRUE(registry);
  const Availability faulty = registry->Check(*registry->Find("faulty"));
  EXPECT_FALSE(faulty.installed);
  EXPECT_NE(faulty.reason.find("/nonexistent/ulpscope-faulty"), std::string::npos);
  EXPECT_EQ(faulty.install, "ci/setup");
  EXPECT_NE(registry->Check(*registry->Find("jax")).reason.find("/nonexistent/python"), std::string::npos);
}

TEST(RegistryTest, AnEnvironmentReplacesThePythonOfARowThatHasNoneOfItsOwn) {
  const Registry registry = TestRegistry();
  const std::map<std::string, std::string> asked{{"env", "torch-9.9.9"}};
  const RegistryRow& inductor = *registry.Find("torch-inductor");
  const auto command = [&](const RegistryRow& row) { return registry.Command(row).front(); };
  EXPECT_EQ(command(InEnvironment(inductor, {})), registry.places().python.string());
  const RegistryRow moved = InEnvironment(inductor, asked);
  EXPECT_EQ(command(moved), (registry.places().root / ".venv-torch-9.9.9/bin/python").string());
  EXPECT_EQ(moved.install, "ci/setup --with torch==9.9.9");
  EXPECT_EQ(InEnvironment(inductor, {{"env", "mine"}}).install, "ci/setup --with mine");
  const Availability missing = registry.Check(moved);
  EXPECT_FALSE(missing.installed);
  EXPECT_NE(missing.reason.find(".venv-torch-9.9.9/bin/python"), std::string::npos) << missing.reason;
  const RegistryRow& xla = *registry.Find("torch-xla");
  EXPECT_EQ(command(InEnvironment(xla, asked)), command(xla)) << "its own stays";
}

TEST(RegistryTest, ARowMayRunInAnEnvironmentOfItsOwn) {
  const fs::path root = fs::temp_directory_path() / ("ulpscope-venv-" + std::to_string(::getpid()));
  Places places = Places::Detect();
  places.root = root;
  places.python = "/nonexistent/python";
  EXPECT_EQ(places.Expand("{venv:a-b} {root}"),
            (root / ".venv-a-b/bin/python").string() + " " + root.string());
  EXPECT_EQ(places.Expand("{venv:open"), "{venv:open");
  fs::create_directories(root / ".venv-own/bin");
  std::ofstream(root / "registry.jsonl")
      << R"({"backend":"own","adapter":["{venv:own}","x.py"],"requires":"{venv:own}","python_packages":["json"],"install":"ci/setup --with own"})"
      << "\n"
      << R"({"backend":"common","adapter":["{python}","x.py"],"python_packages":["json"],"install":"ci/setup"})"
      << "\n";
  const auto check = [&](std::string_view backend) {
    const auto registry =
        Registry::Load(root / "registry.jsonl", places);  // nothing is remembered between two
    EXPECT_TRUE(registry);
    return registry->Check(*registry->Find(backend));
  };
  const Availability missing = check("own");
  EXPECT_FALSE(missing.installed);
  EXPECT_NE(missing.reason.find(".venv-own/bin/python"), std::string::npos);
  EXPECT_EQ(missing.install, "ci/setup --with own");
  // Its own interpreter is queried for its modules, and that of the other rows is not.
  fs::create_symlink("/usr/bin/python3", root / ".venv-own/bin/python");
  EXPECT_TRUE(check("own").installed) << check("own").reason;
  EXPECT_FALSE(check("common").installed);
  fs::remove_all(root);
}

TEST(RegistryTest, AKnobMayBelongToOneDevice) {
  const Registry registry = TestRegistry();
  const RegistryRow& eager = *registry.Find("torch-eager");
  EXPECT_EQ(eager.knob_devices,
            (std::map<std::string, std::string>{{"reduced_precision_reduction", "cuda"}}));
  EXPECT_TRUE(ParseBackend("torch-eager@cuda:reduced_precision_reduction=off", registry))
      << "the name has no @";
  EXPECT_TRUE(registry.Find("cublas")->knob_devices.empty());
}

TEST(RegistryTest, WrongRowsHaveTheirLine) {
  const fs::path file = fs::temp_directory_path() / ("ulpscope-registry-" + std::to_string(::getpid()));
  const auto error = [&](const std::string& text) {
    std::ofstream(file) << text;
    const auto registry = Registry::Load(file, Places::Detect());
    EXPECT_FALSE(registry) << text;
    return registry ? "" : registry.error().Text();
  };
  EXPECT_NE(error("{\"backend\":\"a\",\"absent\":\"x\"}\n\n{\"backend\":\"b\",\"adaptor\":[]}\n")
                .find(":3:1: unknown key 'adaptor'"),
            std::string::npos);
  EXPECT_NE(
      error("{\"backend\":\"a\",\"absent\":\"x\"}\n{\"backend\":\"a\",\"absent\":\"x\"}\n").find("twice"),
      std::string::npos);
  EXPECT_NE(error("{\"backend\":\"a\"}\n").find("neither"), std::string::npos);
  EXPECT_NE(error("").find("no backend"), std::string::npos);
  fs::remove(file);
}

TEST(EnvironmentTest, NothingThatChangesNumbersPasses) {
  const std::vector<std::pair<const char*, const char*>> presets{{"OPENBLAS_CORETYPE", "Haswell"},
                                                                 {"OPENBLAS_L2_SIZE", "1"},
                                                                 {"OMP_NUM_THREADS", "7"},
                                                                 {"MKL_CBWR", "COMPATIBLE"},
                                                                 {"KMP_AFFINITY", "none"},
                                                                 {"ONEDNN_MAX_CPU_ISA", "AVX2"},
                                                                 {"DNNL_VERBOSE", "1"},
                                                                 {"BLIS_ARCH_TYPE", "3"},
                                                                 {"ATEN_CPU_CAPABILITY", "default"},
                                                                 {"XLA_USE_BF16", "1"},
                                                                 {"XLA_FLAGS", "--x"},
                                                                 {"JAX_ENABLE_X64", "1"},
                                                                 {"TORCH_LOGS", "all"},
                                                                 {"TORCHINDUCTOR_FREEZING", "1"},
                                                                 {"CUBLAS_WORKSPACE_CONFIG", ":0:0"},
                                                                 {"NVIDIA_TF32_OVERRIDE", "1"},
                                                                 {"GOTO_NUM_THREADS", "7"},
                                                                 {"PYTHONSTARTUP", "/x"},
                                                                 {"LD_PRELOAD", ""}};
  for (const auto& [name, value] : presets) ::setenv(name, value, 1);
  const auto entries = WorkerEnvironment({}, Places::Detect(), "/scratch", "token");
  const auto preset = PresetEnvironment(TestRegistry());
  for (const auto& [name, value] : presets) {
    const std::string leaked = std::string(name) + "=" + value;
    EXPECT_EQ(std::find(entries.begin(), entries.end(), leaked), entries.end()) << leaked;
    if (std::string_view(name) != "PYTHONSTARTUP" && std::string_view(name) != "LD_PRELOAD") {
      ASSERT_TRUE(preset.contains(name)) << name;
      // Values are recorded where they change numbers: the others are recorded as set.
      const bool changes_none = std::string_view(name) == "KMP_AFFINITY" ||
                                std::string_view(name) == "DNNL_VERBOSE" ||
                                std::string_view(name) == "TORCH_LOGS";
      EXPECT_EQ(preset.at(name), changes_none ? "(set, not recorded)" : value) << name;
    }
    ::unsetenv(name);
  }
  EXPECT_EQ(PresetEnvironment(TestRegistry()).at("OPENBLAS_CORETYPE"), std::nullopt);
  const auto with = WorkerEnvironment({{"threads", "3"}}, Places::Detect(), "/s", "t");
  for (const char* entry : {"OMP_NUM_THREADS=3", "OPENBLAS_NUM_THREADS=3", "MKL_NUM_THREADS=3"}) {
    EXPECT_NE(std::find(with.begin(), with.end(), entry), with.end()) << entry;
  }
}

}  // namespace
}  // namespace ulpscope
