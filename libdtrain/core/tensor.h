// Tensor: a reference to storage, an offset, a shape, a type and a device. Always contiguous; a copy is an alias.
#pragma once

#include <memory>
#include <span>

#include "libdtrain/core/memory.h"
#include "libdtrain/core/types.h"

namespace dtrain {

class Tensor {
 public:
  Tensor() = default;
  // `offset` is in bytes from the start of `storage`.
  Tensor(std::shared_ptr<Storage> storage, size_t offset, Shape shape, DType dtype, Device device)
      : storage_(std::move(storage)), offset_(offset), shape_(shape), dtype_(dtype), device_(device) {}

  bool defined() const { return storage_ != nullptr; }
  explicit operator bool() const { return defined(); }

  const Shape& shape() const { return shape_; }
  int64_t dim(int i) const { return shape_[i]; }
  int64_t count() const { return shape_.count(); }
  size_t bytes() const { return static_cast<size_t>(count()) * size_of(dtype_); }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }

  // The address on its device. Writing through a const Tensor is allowed: constness is of the reference.
  void* raw() const { return static_cast<char*>(storage_->data()) + offset_; }

  // The elements; throws where T is not the element type.
  template <class T>
  T* data() const {
    DT_CHECK(defined(), "data() of an undefined tensor");
    DT_CHECK(dtype_of<T>() == dtype_, "tensor holds ", dtype_, ", accessed as ", dtype_of<T>());
    return static_cast<T*>(raw());
  }
  template <class T>
  std::span<T> span() const {
    return {data<T>(), static_cast<size_t>(count())};
  }

  // The same bytes under another shape of equal count.
  Tensor view(Shape shape) const;
  // Rows [begin, end) of the outermost dimension.
  Tensor slice(int64_t begin, int64_t end) const;
  // True where no other Tensor refers to this storage: its bytes may be reused in place.
  bool unique() const { return storage_.use_count() == 1; }

 private:
  std::shared_ptr<Storage> storage_;
  size_t offset_ = 0;
  Shape shape_;
  DType dtype_ = DType::f32;
  Device device_;
};

}  // namespace dtrain
