// Shared by the tests: check_op, host arrays for references, comparisons, files and paths.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "libdtrain/autograd/tape.h"
#include "libdtrain/core/context.h"

namespace dtrain {

// A host array in double precision: what references take and give.
struct Array {
  Shape shape;
  std::vector<double> values;

  Array() = default;
  explicit Array(Shape s, double fill = 0) : shape(s), values(static_cast<size_t>(s.count()), fill) {}
  Array(Shape s, std::vector<double> v) : shape(s), values(std::move(v)) {}

  int64_t dim(int i) const { return shape[i]; }
  int64_t count() const { return shape.count(); }
  double& operator[](int64_t i) { return values[static_cast<size_t>(i)]; }
  double operator[](int64_t i) const { return values[static_cast<size_t>(i)]; }
  // The element of an [n, h, w, c] array.
  double& at(int64_t n, int64_t h, int64_t w, int64_t c) { return (*this)[index(n, h, w, c)]; }
  double at(int64_t n, int64_t h, int64_t w, int64_t c) const { return (*this)[index(n, h, w, c)]; }

 private:
  int64_t index(int64_t n, int64_t h, int64_t w, int64_t c) const {
    return ((n * shape[1] + h) * shape[2] + w) * shape[3] + c;
  }
};

// U[low, high), each value exactly a float; a function of (shape, seed) only.
Array random_array(Shape shape, uint64_t seed, float low = -1, float high = 1);

// Tensors from and to host arrays, of f32, bf16 or f16.
Tensor to_device(Context& context, const Array& array, DType dtype = DType::f32);
Array to_host(Context& context, const Tensor& tensor);
// Each value rounded to the nearest that `dtype` holds (ties to even).
Array rounded(const Array& array, DType dtype);
// Any type, any bytes.
template <class T>
Tensor to_device(Context& context, Shape shape, const std::vector<T>& values) {
  DT_CHECK(shape.count() == static_cast<int64_t>(values.size()), values.size(), " values for ", shape);
  Tensor tensor = context.empty(shape, dtype_of<T>());
  context.upload(values.data(), tensor);
  return tensor;
}
template <class T>
std::vector<T> values_of(Context& context, const Tensor& tensor) {
  DT_CHECK(tensor.dtype() == dtype_of<T>(), "values_of: the tensor holds ", tensor.dtype());
  std::vector<T> values(static_cast<size_t>(tensor.count()));
  context.download(tensor, values.data(), "values_of");
  return values;
}

// A context for the CPU and one for the first GPU, where this build and machine have one: a process works with one. Of
// one kind alone where DTRAIN_TEST_DEVICES says `cpu` or `gpu`. A program that is to test GPUs where there are none
// skips all its tests.
std::vector<std::unique_ptr<Context>> devices();
// As make_cuda_context, with what DTRAIN_SYNC and DTRAIN_POOL ask for.
std::unique_ptr<Context> make_gpu_context(const CudaOptions& options = {});
// Makes what the pool hands out next NaN (all bits set), so that an element that an op forgets to write shows.
void poison(Context& context);

// The largest allowed error: |actual - expected| <= bound * (|expected| + the largest |expected|).
struct Bounds {
  double value, gradient;
};
Bounds bounds_of(DType dtype);
// Fails with the worst element's index and both values.
void expect_close(const Array& actual, const Array& expected, double bound, const std::string& what);

// What an input is to a network that computes in 16 bits.
enum class Role {
  activation,  // it and its gradient are of the compute type
  weight,      // it is of the compute type, its gradient f32
  parameter,   // both are f32: biases, batch norm's parameters
};

// One case of one op with one output.
struct OpCase {
  std::string name;
  std::vector<Array> inputs;  // all differentiable; constants are captured by `op`
  std::function<Var(Tape&, const std::vector<Var>&)> op;
  std::function<Array(const std::vector<Array>&)> reference;  // naive, in double precision
  Mode mode = Mode::train;                                    // eval: the value only, and nothing may be recorded
  bool kinks = false;         // the op has kinks (relu, max): do not compare a gradient where the reference has one
  std::vector<Role> roles{};  // of the inputs, in order; activations where it ends
  bool exact = false;         // in f32 a GPU gives the very values that the CPU gives
  bool f32_only = false;      // a chain of ops: what 16 bits round off between them may be more than the bounds allow

  Role role(size_t input) const { return input < roles.size() ? roles[input] : Role::activation; }
};

// For each device and, on a GPU, each of f32, bf16 and f16: the value against the reference; the gradient of a random
// linear functional of the output against central differences of the reference, by every input (sampled elements of a
// large one), stored and added to what another op wrote; two runs bit-equal; memory poisoned beforehand; neither value
// nor gradients all zero; in f32 the values and gradients of a GPU against those of the CPU.
void check_op(const OpCase& test);
void check_op(const std::vector<OpCase>& tests);

// Expects `action` to throw an Error of this kind whose message contains `part`.
void expect_error(const std::function<void()>& action, Fault fault, const std::string& part);

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
