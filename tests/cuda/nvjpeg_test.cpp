// The installed nvJPEG provides all functions; the error without it.
#include "dtrain/core/gpu_info.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

TEST(Nvjpeg, HasTheFunctionsThatAreUsed) {
  for (const GpuLibrary& library : gpu_versions().libraries) {
    if (library.name != "nvJPEG") continue;
    if (library.problem.find("cannot be loaded") != std::string::npos) {
      EXPECT_NE(library.problem.find("install nvJPEG"), std::string::npos) << library.problem;
      GTEST_SKIP() << "SKIPPED: " << library.problem;
    }
    EXPECT_EQ(library.problem, "");
    EXPECT_GE(library.loaded, 120000) << library.file;
    return;
  }
  GTEST_SKIP() << "SKIPPED: an emulated GPU has no libraries to load";
}

}  // namespace
}  // namespace dtrain
