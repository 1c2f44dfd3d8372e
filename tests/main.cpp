// main() of the test programs: `test_ops conv2d pool` runs the tests of ops/conv2d_test.cpp and ops/pool_test.cpp,
// `test_ops` all tests. GoogleTest's flags select further.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <set>
#include <string>

namespace {

// "conv2d" for a test in ops/conv2d_test.cpp.
std::string file_of(const testing::TestInfo& test) {
  const std::string stem = std::filesystem::path(test.file()).stem().string();
  return stem.ends_with("_test") ? stem.substr(0, stem.size() - 5) : stem;
}

// Restricts GoogleTest's filter to these files; returns files without tests.
std::set<std::string> keep_tests_of(const std::set<std::string>& files) {
  std::set<std::string> without_tests = files;
  std::string left_out;
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  for (int i = 0; i < tests.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *tests.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      without_tests.erase(file_of(test));
      if (!files.contains(file_of(test))) left_out += std::string(":") + suite.name() + "." + test.name();
    }
  }
  const std::string filter = GTEST_FLAG_GET(filter);
  const bool excludes = filter.find('-') != std::string::npos;
  if (!left_out.empty()) GTEST_FLAG_SET(filter, filter + (excludes ? "" : "-") + left_out);
  return without_tests;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::set<std::string> files(argv + 1, argv + argc);
  if (!files.empty()) {
    for (const std::string& file : keep_tests_of(files)) {
      std::fprintf(stderr, "%s: no test of this program is defined in a file %s_test.cpp\n", argv[0], file.c_str());
      return 1;
    }
  }
  return RUN_ALL_TESTS();
}
