// Tensor: a reference to storage, an offset, a shape, a type and a device. Always contiguous; a copy is an alias.
#pragma once

#include <memory>
#include <span>

#include "libdtrain/core/memory.h"
#include "libdtrain/core/types.h"

namespace dtrain {

class Tensor {
 public:
  Tensor() = default;  // undefined: it has no elements that could be asked for
  // `offset` is in bytes from the start of `storage`. Throws Error where the elements are not all within it.
  Tensor(std::shared_ptr<Storage> storage, size_t offset, Shape shape, DType dtype, Device device);

  bool defined() const { return storage_ != nullptr; }
  explicit operator bool() const { return defined(); }

  const Shape& shape() const { return shape_; }
  int64_t dim(int i) const { return shape_[i]; }
  int64_t count() const { return shape_.count(); }
  size_t bytes() const { return static_cast<size_t>(count()) * size_of(dtype_); }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }

  // The address on its device. Writing through a const Tensor is allowed: constness is of the reference. Throws Error
  // where the tensor is undefined, as all do that follow.
  void* raw() const {
    DT_CHECK(defined(), "the memory of an undefined tensor asked for");
    return static_cast<char*>(storage_->data()) + offset_;
  }

  // The elements; throws where T is not the element type.
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

  // The same bytes under another shape of equal count.
  Tensor view(Shape shape) const;
  // Rows [begin, end) of the outermost dimension.
  Tensor slice(int64_t begin, int64_t end) const;
  // True where no other Tensor refers to this storage: its bytes may be reused in place.
  bool unique() const { return storage_.use_count() == 1; }

 private:
  std::shared_ptr<Storage> storage_;  // with the memory's allocator: a tensor may outlive its context
  size_t offset_ = 0;
  Shape shape_;
  DType dtype_ = DType::f32;
  Device device_;
};

}  // namespace dtrain
