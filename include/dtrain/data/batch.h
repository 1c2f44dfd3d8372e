// Batch: one tensor per field of the layout. Row: write access to one sample of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "dtrain/core/encoded_image.h"
#include "dtrain/core/tensor.h"
#include "dtrain/data/layout.h"

namespace dtrain::data {

struct Batch {
  BatchLayout layout{};
  std::vector<Tensor> fields{};  // [rows, field shape...], in layout order
  // With deferred decoding, one per row: where it holds a JPEG, the row of the field "images" must be decoded from it.
  std::span<const EncodedImage> encoded{};
  std::vector<uint8_t> row_valid{};  // per row: 1 for a sample, 0 for padding
  int64_t valid = 0;                 // number of valid rows
  std::vector<uint64_t> samples{};   // record numbers in the data set
  uint64_t cursor = 0;               // position in the stream after this batch: samples consumed over all ranks

  int64_t rows() const { return static_cast<int64_t>(row_valid.size()); }
  // Field by name. Throws Error listing the known names.
  const Tensor& operator[](std::string_view name) const;
  // The same; undefined tensor for an unknown name.
  Tensor find(std::string_view name) const;
};

// Uninitialised batch of `rows` invalid rows in host memory. Null `allocator`: pageable memory. Throws Error for an
// invalid layout.
Batch make_batch(const BatchLayout& layout, int64_t rows, std::shared_ptr<Allocator> allocator = nullptr);

// One row of a batch, which must outlive it. Threads may write different rows concurrently. Fields are addressed by
// their index in the layout; all methods throw Error for an index out of range.
class Row {
 public:
  // Throws Error for a row out of range.
  Row(const Batch& batch, int64_t row);

  // Address of the row's elements of a field.
  void* raw(size_t number) const;
  // Typed elements. Throws Error unless T is the field's type.
  template <class T>
  std::span<T> span(size_t number) const {
    const auto count = static_cast<size_t>(field(number).shape.count());
    return {batch_.fields[number].data<T>() + static_cast<size_t>(row_) * count, count};
  }
  // Writes a ragged field: `values` (whole entries), padding, and the number of entries into the count field. Throws
  // Error(Fault::data) if the entries exceed the field's capacity.
  template <class T>
  void write(size_t number, std::span<const T> values) const {
    std::ranges::copy(values, span<T>(number).first(room_for(number, values.size())).begin());
    pad(number, values.size());
  }
  // Fills all fields with padding.
  void pad() const;

 private:
  const Field& field(size_t number) const;
  // Checks that `values` elements fit, sets the entry count and returns the capacity.
  size_t room_for(size_t number, size_t values) const;
  // Pads from element `begin` on.
  void pad(size_t number, size_t begin) const;

  const Batch& batch_;
  int64_t row_;
};

}  // namespace dtrain::data
