// Array: host arrays in double precision for reference implementations.
#pragma once

#include <string>
#include <vector>

#include "dtrain/core/context.h"

namespace dtrain {

// Host array in double precision: input and output of reference implementations.
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
  // Element of an [n, h, w, c] array.
  double& at(int64_t n, int64_t h, int64_t w, int64_t c) { return (*this)[index(n, h, w, c)]; }
  double at(int64_t n, int64_t h, int64_t w, int64_t c) const { return (*this)[index(n, h, w, c)]; }

 private:
  int64_t index(int64_t n, int64_t h, int64_t w, int64_t c) const {
    return ((n * shape[1] + h) * shape[2] + w) * shape[3] + c;
  }
};

// U[low, high), values exact in f32; depends on (shape, seed) only.
Array random_array(Shape shape, uint64_t seed, float low = -1, float high = 1);

// Copies between host arrays and f32, bf16 or f16 tensors.
Tensor to_device(Context& context, const Array& array, DType dtype = DType::f32);
Array to_host(Context& context, const Tensor& tensor);
// Values rounded to `dtype`, nearest even.
Array rounded(const Array& array, DType dtype);
// Bitwise copies of any type.
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

// Largest absolute value.
double largest(const Array& array);
// Throws Error(Fault::numeric) unless |actual - expected| <= bound * (|expected| + the largest |expected|) everywhere;
// the message has `what`, the worst element's index and both values.
void require_close(const Array& actual, const Array& expected, double bound, const std::string& what);

}  // namespace dtrain
