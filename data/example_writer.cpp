#include <limits>

#include "data/example.pb.h"
#include "dtrain/core/error.h"
#include "dtrain/data/example.h"

namespace dtrain::data {

ExampleWriter::ExampleWriter() : example_(std::make_unique<tfexample::Example>()) {}
ExampleWriter::~ExampleWriter() = default;

tfexample::Feature& ExampleWriter::add(std::string_view key) {
  tfexample::Features::Entry& entry = *example_->mutable_features()->add_feature();
  entry.set_key(key.data(), key.size());
  return *entry.mutable_value();
}

void ExampleWriter::bytes(std::string_view key, std::span<const std::string_view> values) {
  tfexample::BytesList& list = *add(key).mutable_bytes_list();
  for (const std::string_view value : values) list.add_value(value.data(), value.size());
}

void ExampleWriter::floats(std::string_view key, std::span<const float> values) {
  add(key).mutable_float_list()->mutable_value()->Add(values.begin(), values.end());
}

void ExampleWriter::int64s(std::string_view key, std::span<const int64_t> values) {
  add(key).mutable_int64_list()->mutable_value()->Add(values.begin(), values.end());
}

std::string ExampleWriter::take() {
  example_->mutable_features();  // written even where there are none
  const size_t size = example_->ByteSizeLong();
  if (size > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    throw Error(Fault::data, concat("a tf.Example of ", size, " bytes, expected less than 2 GiB"));
  std::string record = example_->SerializeAsString();
  example_->Clear();
  return record;
}

}  // namespace dtrain::data
