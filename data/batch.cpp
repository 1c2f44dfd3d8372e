#include "data/batch.h"

#include <algorithm>

namespace dtrain::data {

Batch make_batch(const BatchLayout& layout, int64_t rows, std::shared_ptr<Allocator> allocator) {
  layout.check();
  DT_CHECK(rows > 0, "a batch of ", rows, " rows: expected at least one");
  Batch batch{.layout = layout};
  size_t bytes = 0;
  const auto bytes_of = [rows](const Field& field) {
    return align_up(static_cast<size_t>(rows * field.shape.count()) * size_of(field.dtype));
  };
  for (const Field& field : layout.fields) bytes += bytes_of(field);
  if (!allocator) allocator = std::make_shared<HostAllocator>();
  const auto storage = std::make_shared<Storage>(std::move(allocator), bytes);
  size_t offset = 0;
  for (const Field& field : layout.fields) {
    Shape shape{rows};
    for (int i = 0; i < field.shape.rank(); ++i) shape.append(field.shape[i]);
    batch.fields.emplace_back(storage, offset, shape, field.dtype, Device{});
    offset += bytes_of(field);
  }
  batch.row_valid.resize(static_cast<size_t>(rows));
  batch.samples.resize(static_cast<size_t>(rows));
  return batch;
}

void* Row::raw(size_t number) const {
  const Tensor& field = batch_.fields[number];
  const auto count = static_cast<size_t>(batch_.layout.fields[number].shape.count());
  return static_cast<char*>(field.raw()) + static_cast<size_t>(row_) * count * size_of(field.dtype());
}

void Row::pad() const {
  for (size_t number = 0; number < batch_.fields.size(); ++number) pad(number, 0);
}

void Row::pad(size_t number, int64_t begin) const {
  const Field& field = batch_.layout.fields[number];
  const auto fill = [&]<class T>(T value) {
    std::ranges::fill(span<T>(number).subspan(static_cast<size_t>(begin)), value);
  };
  switch (field.dtype) {
    case DType::f32:
      return fill(static_cast<float>(field.padding));
    case DType::i32:
      return fill(field.padding);
    case DType::i64:
      return fill(int64_t{field.padding});
    case DType::u8:
      return fill(static_cast<uint8_t>(field.padding));
    case DType::bf16:
    case DType::f16:
      break;
  }
  throw Error(concat("field '", field.name, "' is ", field.dtype, ": it cannot be padded"));
}

size_t Row::room_for(size_t number, size_t values) const {
  const Field& field = batch_.layout.fields[number];
  DT_CHECK(!field.count.empty(), "field '", field.name, "' is not ragged");
  const auto most = static_cast<size_t>(field.shape.count()), entry = most / static_cast<size_t>(field.shape[0]);
  DT_CHECK(values % entry == 0, "field '", field.name, "': ", values, " values, expected a multiple of ", entry);
  if (values > most)
    throw Error(Fault::data, concat(values / entry, " ", field.name, ", expected at most ", field.shape[0]));
  span<int32_t>(batch_.layout.index(field.count))[0] = static_cast<int32_t>(values / entry);
  return values;
}

}  // namespace dtrain::data
