// Tensor: storage, offset, shape, dtype and device. Always contiguous; copies alias the storage.
#pragma once

#include <memory>
#include <span>

#include "dtrain/core/memory.h"
#include "dtrain/core/types.h"

namespace dtrain {

class Tensor {
 public:
  Tensor() = default;  // undefined: accessors throw
  // `offset`: bytes from the start of `storage`. Throws Error if the elements exceed it.
  Tensor(std::shared_ptr<Storage> storage, size_t offset, Shape shape, DType dtype, Device device);

  bool defined() const { return storage_ != nullptr; }
  explicit operator bool() const { return defined(); }

  const Shape& shape() const { return shape_; }
  int64_t dim(int i) const { return shape_[i]; }
  int64_t count() const { return shape_.count(); }
  size_t bytes() const { return static_cast<size_t>(count()) * size_of(dtype_); }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }

  // Address on its device. Constness is shallow: writing through a const Tensor is allowed. All accessors from here on
  // throw Error if the tensor is undefined.
  void* raw() const {
    DT_CHECK(defined(), "access to the memory of an undefined tensor");
    return static_cast<char*>(storage_->data()) + offset_;
  }

  // Elements; throws if T is not the element type.
  template <class T>
  T* data() const {
    void* const address = raw();
    DT_CHECK(dtype_of<T>() == dtype_, "tensor holds ", dtype_, ", accessed as ", dtype_of<T>());
    return static_cast<T*>(address);
  }
  template <class T>
  std::span<T> span() const {
    return {data<T>(), static_cast<size_t>(count())};
  }

  // Same data in another shape of equal count.
  Tensor view(Shape shape) const;
  // Rows [begin, end) of the outermost dimension.
  Tensor slice(int64_t begin, int64_t end) const;
  // Whether no other Tensor refers to the storage, so that it may be reused in place.
  bool unique() const { return storage_.use_count() == 1; }

 private:
  std::shared_ptr<Storage> storage_;  // keeps the allocator alive: a tensor may outlive its context
  size_t offset_ = 0;
  Shape shape_;
  DType dtype_ = DType::f32;
  Device device_;
};

}  // namespace dtrain
