// Test utilities: check_op on all devices, comparisons as test failures, files and paths.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dtrain/testing/check_op.h"

namespace dtrain {

// Contexts for the CPU and for the first GPU, if this build and machine have one. Only one kind with
// DTRAIN_TEST_DEVICES=`cpu` or `gpu`; with `gpu` and no GPU, all tests are skipped.
std::vector<std::unique_ptr<Context>> devices();
// make_cuda_context with the options of DTRAIN_SYNC and DTRAIN_POOL.
std::unique_ptr<Context> make_gpu_context(const CudaOptions& options = {});

// require_close as a test failure.
void expect_close(const Array& actual, const Array& expected, double bound, const std::string& what);
// Requires exactly equal arrays.
void expect_equal(const std::vector<Array>& actual, const std::vector<Array>& expected, const std::string& what);
// check_op on each of devices() and with each instruction set of this CPU; an exception is a failure.
void check_op(const OpCase& test);
void check_op(const std::vector<OpCase>& tests);

// Whether the programs under test have sanitizers: slow tests without additional memory coverage are then left to the
// optimised build.
bool sanitized();

// Expects `action` to throw an Error of this kind with `part` in its message.
void expect_error(const std::function<void()>& action, Fault fault, const std::string& part);
inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Paths of the checkout, the built programs and the sample data: DTRAIN_SOURCE_DIR, DTRAIN_BIN_DIR and
// DTRAIN_TEST_DATA; default: the current directory, build/bin and ../shared/data.
std::filesystem::path source_dir();
std::filesystem::path bin_dir();
// If the path does not exist, the test is skipped with "SKIPPED: " and the path.
std::filesystem::path test_data(const std::string& name);

// For tests whose results depend on how long a save takes: a directory in memory where there is one with 1 GiB free,
// otherwise the system's directory for temporary files.
std::filesystem::path memory_directory();

// A temporary directory, removed recursively.
class TempDirectory {
 public:
  explicit TempDirectory(const std::filesystem::path& parent = std::filesystem::temp_directory_path());
  ~TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace dtrain
