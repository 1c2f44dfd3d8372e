// tf.Example: a reader of the wire format that copies nothing, and a writer.
//   Example { 1: Features }  Features { 1: map<string, Feature> }  Feature { oneof 1: BytesList 2: FloatList 3:
//   Int64List } each list { 1: repeated value }     (TensorFlow, core/example/{example,feature}.proto; protobuf's
//   encoding guide)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::data {

enum class FeatureKind : uint8_t { unset, bytes, float32, int64 };

// "bytes", "float", "int64", "unset"
const char* name_of(FeatureKind kind);

// A list of values that lies in a record, checked to be well-formed.
struct Feature {
  FeatureKind kind = FeatureKind::unset;
  uint64_t count = 0;     // values in it
  std::string_view list;  // body of its BytesList, FloatList or Int64List

  // All values; throws Error(Fault::data) where the feature holds another kind.
  void read(std::vector<std::string_view>& values) const;
  void read(std::vector<float>& values) const;
  void read(std::vector<int64_t>& values) const;
};

// The features of one record; everything it hands out points into that record. No recursion, no allocation beyond a
// table that is kept from record to record.
//
// Accepts what protobuf accepts, packed and unpacked values and unknown fields among it, except what no writer of
// Examples produces: groups, over-long or overflowing numbers, two value lists in one map entry.
class Example {
 public:
  struct Entry {
    std::string_view key;
    Feature feature;
  };

  // Replaces the contents. Throws Error(Fault::data) on malformed bytes, and on a SequenceExample, by name.
  void parse(std::span<const std::byte> record);

  // The feature of that name, the last one where there are several; null where there is none.
  const Feature* find(std::string_view key) const;
  // The single value of a feature. Throws Error(Fault::data) where it is missing, of another kind, empty or not single.
  std::string_view bytes(std::string_view key) const;
  int64_t int64(std::string_view key) const;
  // All values of a feature of floats; none where it is missing or unset. Throws where it is of another kind.
  void floats(std::string_view key, std::vector<float>& values) const;

  // In the order of the record. A key may come twice: the later entry counts.
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  const Feature& single(std::string_view key, FeatureKind kind) const;
  std::vector<Entry> entries_;
};

// Builds the bytes of one Example, packed and in the order of the calls. Equal calls give equal bytes.
class ExampleWriter {
 public:
  void bytes(std::string_view key, std::span<const std::string_view> values);
  void bytes(std::string_view key, std::string_view value) { bytes(key, std::span(&value, 1)); }
  void floats(std::string_view key, std::span<const float> values);
  void int64s(std::string_view key, std::span<const int64_t> values);
  void int64(std::string_view key, int64_t value) { int64s(key, std::span(&value, 1)); }

  // The record; the writer is empty again.
  std::string take();

 private:
  void begin_feature(std::string_view key, FeatureKind kind, size_t list_bytes);
  std::string features_;
};

}  // namespace dtrain::data
