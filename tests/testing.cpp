#include "tests/testing.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "apps/cli/environment.h"
#include "tests/cpu/instruction_sets.h"

// AddressSanitizer's entry point, present only in programs linked with it.
extern "C" __attribute__((weak)) void __asan_init();

namespace dtrain {
namespace {

// Skips every test of a GPU test program if there is no GPU.
class NeedsDevices : public testing::Environment {
 public:
  void SetUp() override {
    std::string reason;
    if (tested_devices() == "gpu" && cuda_device_count(&reason) == 0) GTEST_SKIP() << "SKIPPED: no GPU: " << reason;
  }
  static std::string tested_devices() {
    const char* kind = std::getenv("DTRAIN_TEST_DEVICES");
    return kind ? kind : "all";
  }
};
const testing::Environment* const kNeedsDevices = testing::AddGlobalTestEnvironment(new NeedsDevices);

std::filesystem::path from_environment(const char* name, const std::filesystem::path& otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? std::filesystem::path(value) : otherwise;
}

}  // namespace

std::vector<std::unique_ptr<Context>> devices() {
  std::vector<std::unique_ptr<Context>> result;
  const std::string kind = NeedsDevices::tested_devices();
  if (kind != "gpu") result.push_back(make_cpu_context());
  if (kind != "cpu" && cuda_device_count() > 0)
    result.push_back(make_gpu_context({.deterministic = true, .autotune = false}));
  return result;
}

std::unique_ptr<Context> make_gpu_context(const CudaOptions& options) {
  return make_cuda_context(cli::with_environment(options));
}

void expect_equal(const std::vector<Array>& actual, const std::vector<Array>& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(actual[i].values, expected[i].values) << what << ", tensor " << i;
}

void expect_close(const Array& actual, const Array& expected, double bound, const std::string& what) {
  try {
    require_close(actual, expected, bound, what);
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
}

void check_op(const OpCase& test) {
  const auto check = [&](Context& context) {
    try {
      check_op(context, test);
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  };
  CpuIsa best = CpuIsa::avx2;
  for (const auto& context : devices()) {
    check(*context);
    if (context->is_cpu()) best = context->isa();
  }
  for (const CpuIsa isa : instruction_sets())
    if (isa < best) check(*context_of(isa));
}

void check_op(const std::vector<OpCase>& tests) {
  for (const OpCase& test : tests) check_op(test);
}

void expect_error(const std::function<void()>& action, Fault fault, const std::string& part) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), fault) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
        << "\"" << part << "\" is not in: " << error.what();
    return;
  }
  ADD_FAILURE() << "no Error was thrown; expected one with \"" << part << "\"";
}

bool sanitized() { return __asan_init != nullptr; }

std::filesystem::path source_dir() { return from_environment("DTRAIN_SOURCE_DIR", std::filesystem::current_path()); }
std::filesystem::path bin_dir() { return from_environment("DTRAIN_BIN_DIR", source_dir() / "build" / "bin"); }
std::filesystem::path test_data(const std::string& name) {
  return from_environment("DTRAIN_TEST_DATA", source_dir() / ".." / "shared" / "data") / name;
}

std::filesystem::path memory_directory() {
  const std::filesystem::path memory = "/dev/shm";
  std::error_code error;
  const auto space = std::filesystem::space(memory, error);
  const bool usable = !error && space.available >= uint64_t{1} << 30 && access(memory.c_str(), W_OK) == 0;
  return usable ? memory : std::filesystem::temp_directory_path();
}

TempDirectory::TempDirectory(const std::filesystem::path& parent) {
  std::string name = (parent / "dtrain-test-XXXXXX").string();
  DT_CHECK(mkdtemp(name.data()), "cannot create a directory like ", name, ": ", std::strerror(errno));
  path_ = name;
}

TempDirectory::~TempDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace dtrain
