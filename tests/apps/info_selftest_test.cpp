// dtrain-info --selftest, and what it reads by NVML from a library that this test makes.
#include <cstdlib>
#include <limits>
#include <memory>

#include "apps/info/convolution_case.h"
#include "apps/info/nvml.h"
#include "tests/apps/program.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::info {
namespace {

// A library with NVML's functions, whose GPU is at 0000:17:00.
class InfoSelftest : public testing::Test {
 protected:
  std::string library_of(const std::string& functions) const {
    const std::string source = (root / "nvml.c").string(), library = (root / "libnvidia-ml.so.1").string();
    write_file(source, R"(
#include <string.h>
int nvmlInit_v2(void) { return INIT; }
int nvmlShutdown(void) { return 0; }
const char* nvmlErrorString(int status) { return status == 6 ? "Not Found" : "Driver Not Loaded"; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) { strncpy(text, "580.65.06", size); return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  *device = (void*)1;
  return strcmp(id, "0000:17:00.0") == 0 ? 0 : 6;
}
)" + functions);
    const std::string init = functions.find("NO_DRIVER") == std::string::npos ? "0" : "9";
    const std::string command = "cc -shared -fPIC -DINIT=" + init + " -o " + library + " " + source;
    EXPECT_EQ(std::system(command.c_str()), 0);
    return library;
  }
  TempDirectory root;
};

constexpr char kSick[] = R"(
int nvmlDeviceGetTemperature(void* d, int sensor, unsigned* t) { *t = 88; return 0; }
int nvmlDeviceGetTotalEccErrors(void* d, int kind, int since, unsigned long long* n) {
  *n = since == 0 ? (kind == 1 ? 3 : 17) : 1000;
  return 0;
}
int nvmlDeviceGetRemappedRows(void* d, unsigned* c, unsigned* u, unsigned* pending, unsigned* failed) {
  *c = 1, *u = 2, *pending = 1, *failed = 1;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* d, unsigned long long* bits) { *bits = 0x4 | 0x40; return 0; }
)";

TEST_F(InfoSelftest, FindsWhatIsWrongWithAGpu) {
  const GpuHealth health = gpu_health("0000:17:00", library_of(kSick));
  EXPECT_EQ(health.driver, "580.65.06");
  EXPECT_EQ(health.temperature, 88);
  EXPECT_EQ(health.corrected, 17u);
  EXPECT_EQ(health.uncorrected, 3u);
  EXPECT_EQ(names_of_clocks_event(*health.clocks_event, false),
            (std::vector<std::string>{"the power limit", "the temperature, by the hardware"}));
  EXPECT_EQ(faults_of(health),
            (std::vector<std::string>{"3 errors of its memory were not corrected: reset the GPU",
                                      "rows of its memory are to be replaced: reset the GPU",
                                      "its memory has no spare rows left: replace the GPU",
                                      "its clocks are held back by the temperature, by the hardware"}));
}

TEST_F(InfoSelftest, LeavesOutWhatAGpuOrALibraryDoesNotHave) {
  const GpuHealth health = gpu_health("0000:17:00", library_of(R"(
int nvmlDeviceGetTotalEccErrors(void* d, int kind, int since, unsigned long long* n) { return 3; }
int nvmlDeviceGetCurrentClocksEventReasons(void* d, unsigned long long* bits) { *bits = 0x1; return 0; }
)"));
  EXPECT_FALSE(health.temperature || health.corrected || health.uncorrected);
  EXPECT_EQ(health.clocks_event, 1u);
  EXPECT_EQ(faults_of(health), std::vector<std::string>{});
}

TEST_F(InfoSelftest, SaysWhyNothingIsKnown) {
  expect_error([&] { gpu_health("0000:99:00", library_of("")); }, Fault::resource,
               "nvmlDeviceGetHandleByPciBusId_v2: Not Found");
  expect_error([&] { gpu_health("0000:17:00", library_of("// NO_DRIVER")); }, Fault::resource,
               "NVML does not start: Driver Not Loaded");
  expect_error([&] { gpu_health("0000:17:00", (root / "none.so").string()); }, Fault::resource, "none.so");
}

TEST(InfoConvolution, IsRightOnEachDeviceAndAWrongOneIsSeen) {
  const ConvolutionCase convolution;
  for (const std::unique_ptr<Context>& context : devices()) {
    std::vector<float> y = convolution_on(*context, convolution, DType::f32);
    EXPECT_LT(convolution.error_of(y), 1e-5);
    if (!context->is_cpu()) {
      EXPECT_LT(convolution.error_of(convolution_on(*context, convolution, DType::f16)), 2e-3);
    }
    y[1000] += 3;
    EXPECT_GT(convolution.error_of(y), 1e-4);
    y[1000] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(convolution.error_of(y), std::numeric_limits<double>::infinity());
  }
}

TEST(InfoSelftestProgram, ChecksTheProcessorWhereThereIsNoGpu) {
  const ProgramResult result = run_program("dtrain-info", {"--selftest"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("GPU:          none: "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("convolution:  a convolution in f32 differs by "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("self-test:    passed"), std::string::npos) << result.out;
}

TEST(InfoSelftestProgram, HasACodeForAGpuThatIsNotThere) {
  Program program("dtrain-info", {"--selftest", "--device=gpu"}, {.variables = {{"CUDA_VISIBLE_DEVICES", ""}}});
  const ProgramResult result = program.finish();
  if (result.code == 0) GTEST_SKIP() << "SKIPPED: there is a GPU that cannot be hidden";
  EXPECT_EQ(result.code, 6);
  EXPECT_NE(result.err.find("error: --device=gpu: no GPU: "), std::string::npos) << result.err;
}

}  // namespace
}  // namespace dtrain::info
