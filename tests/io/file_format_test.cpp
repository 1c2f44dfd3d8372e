#include "libdtrain/io/file_format.h"

#include <gtest/gtest.h>

#include "dtrain/version.h"

namespace dtrain {
namespace {

constexpr FileFormat kSeveral{"plan", Fault::data, 2, 4, "write it again"};

std::string refusal(const FileFormat& format, uint64_t number, const std::string& writer = "") {
  try {
    require_readable(format, number, "a/b", writer);
    return "";
  } catch (const FormatError& error) {
    EXPECT_EQ(error.fault(), format.fault);
    return error.what();
  }
}

TEST(FileFormat, NumbersInTheRangeAreReadable) {
  for (const uint64_t number : {2, 3, 4}) EXPECT_EQ(refusal(kSeveral, number), "");
}

TEST(FileFormat, ARefusalNamesNumbersVersionsAndTheWayOut) {
  const std::string here = "; dtrain " DTRAIN_VERSION " reads 2 to 4: write it again";
  EXPECT_EQ(refusal(kSeveral, 5), "a/b: plan format 5" + here);
  EXPECT_EQ(refusal(kSeveral, 1, "0.1.0"), "a/b: plan format 1, written by dtrain 0.1.0" + here);
  EXPECT_NE(refusal(kSeveral, UINT64_MAX), "");
  EXPECT_NE(refusal({"plan", Fault::data, 1, 1, ""}, 2).find(" reads 1: "), std::string::npos);
}

// Each version reads all formats since 0.1, whose files are in tests/upgrade.
TEST(FileFormat, FormatsOfTheFirstVersionAreReadable) {
  for (const FileFormat& format : {kCheckpointFormat, kCalibrationFormat, kShardManifestFormat})
    EXPECT_EQ(refusal(format, 1), "") << format.what;
}

TEST(FileFormat, FindsTheNumberOfALine) {
  EXPECT_EQ(format_number("some file 12", "some file"), 12);
  for (const char* line : {"", "some file", "some file ", "some file12", "some file 1x", "some file -1", "other 1"})
    EXPECT_EQ(format_number(line, "some file"), std::nullopt) << line;
}

}  // namespace
}  // namespace dtrain
