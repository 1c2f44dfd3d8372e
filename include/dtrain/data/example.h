// tf.Example (example.proto): a zero-copy reader of the wire format (protobuf's encoding guide), and a writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The generated classes of example.proto.
namespace dtrain::tfexample {
class Example;
class Feature;
}  // namespace dtrain::tfexample

namespace dtrain::data {

enum class FeatureKind : uint8_t { unset, bytes, float32, int64 };

// "bytes", "float", "int64", "unset"
const char* name_of(FeatureKind kind);

// Value list inside a record, validated.
struct Feature {
  FeatureKind kind = FeatureKind::unset;
  uint64_t count = 0;     // number of values
  std::string_view list;  // body of its BytesList, FloatList or Int64List

  // Reads all values. Throws Error(Fault::data) for a feature of another kind.
  void read(std::vector<std::string_view>& values) const;
  void read(std::vector<float>& values) const;
  void read(std::vector<int64_t>& values) const;
};

// Features of one record; all views point into the record. No recursion; the only allocation is a table that is reused.
//
// Accepts what protobuf accepts, including packed and unpacked values and unknown fields, except for input that no
// Example writer produces: groups, over-long or overflowing varints, two value lists in one map entry.
class Example {
 public:
  struct Entry {
    std::string_view key;
    Feature feature;
  };

  // Parses a record, replacing the contents. Throws Error(Fault::data) for malformed bytes and for a SequenceExample.
  void parse(std::span<const std::byte> record);

  // Feature by name, the last one of duplicates; null if absent.
  const Feature* find(std::string_view key) const;
  // Single value of a feature. Throws Error(Fault::data) unless the feature exists, is of this kind and has exactly one
  // value.
  std::string_view bytes(std::string_view key) const;
  int64_t int64(std::string_view key) const;
  // All values of a float feature; empty if absent or unset. Throws Error(Fault::data) for another kind.
  void floats(std::string_view key, std::vector<float>& values) const;

  // In record order. For a duplicate key the last entry counts.
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  const Feature& single(std::string_view key, FeatureKind kind) const;
  std::vector<Entry> entries_;
};

// Serialises one Example: packed values, features in call order. Equal calls give equal bytes.
class ExampleWriter {
 public:
  ExampleWriter();
  ~ExampleWriter();

  void bytes(std::string_view key, std::span<const std::string_view> values);
  void bytes(std::string_view key, std::string_view value) { bytes(key, std::span(&value, 1)); }
  void floats(std::string_view key, std::span<const float> values);
  void int64s(std::string_view key, std::span<const int64_t> values);
  void int64(std::string_view key, int64_t value) { int64s(key, std::span(&value, 1)); }

  // The record; the writer is empty again. Throws Error(Fault::data) at 2 GiB, which is too large for a protobuf.
  std::string take();

 private:
  tfexample::Feature& add(std::string_view key);

  std::unique_ptr<tfexample::Example> example_;
};

}  // namespace dtrain::data
