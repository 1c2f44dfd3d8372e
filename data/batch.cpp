#include "dtrain/data/batch.h"

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

const Tensor& Batch::operator[](std::string_view name) const {
  const size_t number = layout.index(name);
  DT_CHECK(number < fields.size(), "a batch without the tensor of its field '", name, "'");
  return fields[number];
}

Tensor Batch::find(std::string_view name) const {
  return std::ranges::find(layout.fields, name, &Field::name) == layout.fields.end() ? Tensor() : (*this)[name];
}

Row::Row(const Batch& batch, int64_t row) : batch_(batch), row_(row) {
  DT_CHECK(row >= 0 && row < batch.rows(), "row ", row, " of a batch of ", batch.rows());
}

const Field& Row::field(size_t number) const {
  DT_CHECK(number < batch_.fields.size(), "field ", number, " of a batch of ", batch_.fields.size(), " fields");
  return batch_.layout.fields[number];
}

void* Row::raw(size_t number) const {
  const size_t bytes = static_cast<size_t>(field(number).shape.count()) * size_of(field(number).dtype);
  return static_cast<char*>(batch_.fields[number].raw()) + static_cast<size_t>(row_) * bytes;
}

void Row::pad() const {
  for (size_t number = 0; number < batch_.fields.size(); ++number) pad(number, 0);
}

void Row::pad(size_t number, size_t begin) const {
  const auto fill = [&]<class T>(T value) { std::ranges::fill(span<T>(number).subspan(begin), value); };
  const int32_t value = field(number).padding;
  switch (field(number).dtype) {
    case DType::f32:
      return fill(static_cast<float>(value));
    case DType::i32:
      return fill(value);
    case DType::i64:
      return fill(int64_t{value});
    case DType::u8:
      return fill(static_cast<uint8_t>(value));
    case DType::bf16:
    case DType::f16:
      throw Error(concat("field '", field(number).name, "' is ", field(number).dtype, ": it cannot be padded"));
  }
}

size_t Row::room_for(size_t number, size_t values) const {
  const Field& ragged = field(number);
  DT_CHECK(!ragged.count.empty(), "field '", ragged.name, "' is not ragged");
  const auto most = static_cast<size_t>(ragged.shape.count()), entry = most / static_cast<size_t>(ragged.shape[0]);
  DT_CHECK(values % entry == 0, "field '", ragged.name, "': ", values, " values, expected a multiple of ", entry);
  if (values > most)
    throw Error(Fault::data, concat(values / entry, " ", ragged.name, ", expected at most ", ragged.shape[0]));
  span<int32_t>(batch_.layout.index(ragged.count))[0] = static_cast<int32_t>(values / entry);
  return values;
}

}  // namespace dtrain::data
