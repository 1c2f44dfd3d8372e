// Shared by the tests: check_op on all devices, comparisons as failures of a test, files and paths.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "libdtrain/testing/check_op.h"

namespace dtrain {

// A context for the CPU and one for the first GPU, where this build and machine have one: a process works with one. Of
// one kind alone where DTRAIN_TEST_DEVICES says `cpu` or `gpu`. A program that is to test GPUs where there are none
// skips all its tests.
std::vector<std::unique_ptr<Context>> devices();
// As make_cuda_context, with what DTRAIN_SYNC and DTRAIN_POOL ask for.
std::unique_ptr<Context> make_gpu_context(const CudaOptions& options = {});

// require_close, whose Error is a failure.
void expect_close(const Array& actual, const Array& expected, double bound, const std::string& what);
// The same numbers in all of them.
void expect_equal(const std::vector<Array>& actual, const std::vector<Array>& expected, const std::string& what);
// check_op on each of devices(), and with each instruction set of this CPU; what it throws is a failure.
void check_op(const OpCase& test);
void check_op(const std::vector<OpCase>& tests);

// True where sanitizers watch the programs and libraries under test: what takes long and shows no more of their use of
// memory than other tests is left to the optimised build then.
bool sanitized();

// Expects `action` to throw an Error of this kind whose message contains `part`.
void expect_error(const std::function<void()>& action, Fault fault, const std::string& part);
inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The checkout, the built programs and the sample data: DTRAIN_SOURCE_DIR, DTRAIN_BIN_DIR and DTRAIN_TEST_DATA, by
// default the current directory, its build/bin and ../shared/data next to the checkout.
std::filesystem::path source_dir();
std::filesystem::path bin_dir();
// May not exist: then the test is skipped with "SKIPPED: " and this path.
std::filesystem::path test_data(const std::string& name);

// A fresh directory, removed with all that it holds.
class TempDirectory {
 public:
  TempDirectory();
  ~TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace dtrain
