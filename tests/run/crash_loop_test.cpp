#include "libdtrain/run/crash_loop.h"

#include <fstream>

#include "tests/testing.h"

namespace dtrain {
namespace {

std::string marker(const std::string& starts) {
  return R"({"checkpoint_step": 0, "starts": )" + starts + R"(, "code": 0, "error": ""})";
}

TEST(CrashLoop, ADamagedMarkerCountsNothing) {
  const TempDirectory directory;
  CrashLoop loop(directory.path().string(), /*is_chief=*/true);
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), marker("-3"), marker("1e300"), marker("\"3\""),
        marker("2147483648"), std::string(1 << 15, '['), std::string(1 << 17, ' ')}) {
    std::ofstream(directory / "starts.json") << text;
    EXPECT_NO_THROW(loop.begin(0)) << text.substr(0, 100);
  }
  std::ofstream(directory / "starts.json") << marker("3");
  EXPECT_THROW(loop.begin(0), Error);
  EXPECT_NO_THROW(loop.begin(1)) << "the marker is that of another step";
}

}  // namespace
}  // namespace dtrain
