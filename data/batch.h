// Batch: samples side by side, a tensor for each field of their layout; Row: where one of them is written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "data/layout.h"
#include "libdtrain/core/encoded_image.h"
#include "libdtrain/core/tensor.h"

namespace dtrain::data {

struct Batch {
  BatchLayout layout{};
  std::vector<Tensor> fields{};  // [rows, shape of the field...] each, in the order of the layout
  // From a loader that defers decoding, one for each row: where it has a JPEG, the row of the field "images" is yet to
  // be made of it.
  std::span<const EncodedImage> encoded{};
  std::vector<uint8_t> row_valid{};  // by row: 1 where it holds a sample, 0 where all of it is padding
  int64_t valid = 0;                 // number of rows that hold a sample
  std::vector<uint64_t> samples{};   // record numbers in the data set
  uint64_t cursor = 0;               // samples consumed, over all ranks, once this batch is trained on

  int64_t rows() const { return static_cast<int64_t>(row_valid.size()); }
  // The field of that name. Throws Error naming those that there are.
  const Tensor& operator[](std::string_view name) const;
  // The same, or an undefined tensor where there is none.
  Tensor find(std::string_view name) const;
};

// A batch of `rows` rows in host memory, their contents undefined and none of them valid. `allocator` null: plain
// pages. Throws Error where the layout makes no batch.
Batch make_batch(const BatchLayout& layout, int64_t rows, std::shared_ptr<Allocator> allocator = nullptr);

// One row of a batch, which must outlive it. Rows of one batch may be written by different threads. Fields go by their
// numbers in the layout; all functions throw Error where there is no such field.
class Row {
 public:
  // Throws Error where the batch has no such row.
  Row(const Batch& batch, int64_t row);

  // Where the row begins in the field.
  void* raw(size_t number) const;
  // Its elements. Throws Error where T is not their type.
  template <class T>
  std::span<T> span(size_t number) const {
    const auto count = static_cast<size_t>(field(number).shape.count());
    return {batch_.fields[number].data<T>() + static_cast<size_t>(row_) * count, count};
  }
  // Writes a ragged field: `values`, whole entries, padding after them, and their number into the field of the count.
  // Throws Error(Fault::data) where there are more than the field has room for.
  template <class T>
  void write(size_t number, std::span<const T> values) const {
    std::ranges::copy(values, span<T>(number).first(room_for(number, values.size())).begin());
    pad(number, values.size());
  }
  // Makes all fields padding.
  void pad() const;

 private:
  const Field& field(size_t number) const;
  // `values` elements, once it is certain that they fit; sets the count of their entries.
  size_t room_for(size_t number, size_t values) const;
  // From element `begin` on.
  void pad(size_t number, size_t begin) const;

  const Batch& batch_;
  int64_t row_;
};

}  // namespace dtrain::data
