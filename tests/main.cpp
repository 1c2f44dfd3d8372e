// The main function of the test programs: `test_ops conv2d pool` runs the tests of ops/conv2d_test.cpp and
// ops/pool_test.cpp, `test_ops` those of all its files. GoogleTest's own flags choose among them.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <set>
#include <string>

namespace {

// "conv2d" for a test that is defined in ops/conv2d_test.cpp.
std::string file_of(const testing::TestInfo& test) {
  const std::string stem = std::filesystem::path(test.file()).stem().string();
  return stem.ends_with("_test") ? stem.substr(0, stem.size() - 5) : stem;
}

// Narrows GoogleTest's filter to the tests of these files; returns those files that have none.
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
