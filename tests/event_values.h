// Independent parser of protobuf messages, and of TensorBoard's histograms and images.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

// Fields of a message by number: integers and floating-point numbers as bits, strings and messages as bytes.
struct ReadField {
  uint64_t bits = 0;
  std::string bytes{};
};
inline std::multimap<uint64_t, ReadField> read_message(std::string_view message) {
  std::multimap<uint64_t, ReadField> fields;
  size_t at = 0;
  const auto byte = [&] { return static_cast<uint8_t>(std::string(message).at(at++)); };
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const uint64_t group = byte();
      value |= (group & 127) << shift;
      if (group < 128) return value;
    }
  };
  const auto fixed = [&](int size) {
    uint64_t value = 0;
    for (int i = 0; i < size; ++i) value |= uint64_t{byte()} << 8 * i;
    return value;
  };
  while (at < message.size()) {
    const uint64_t tag = varint();
    ReadField field;
    if (tag % 8 == 0) field.bits = varint();
    if (tag % 8 == 1) field.bits = fixed(8);
    if (tag % 8 == 5) field.bits = fixed(4);
    if (tag % 8 == 2) {
      const uint64_t size = varint();
      if (size > message.size() - at) throw std::runtime_error("a field beyond the end of its message");
      field.bytes = message.substr(at, size);
      at += size;
    }
    fields.emplace(tag / 8, field);
  }
  return fields;
}

struct ReadHistogram {
  double min = 0, max = 0, num = 0, sum = 0, sum_squares = 0;
  std::vector<double> limits{}, counts{};
};

struct ReadImage {
  uint64_t width = 0, height = 0, colours = 0;
  std::string png{};
};

// Packed doubles.
inline std::vector<double> read_doubles(const std::string& bytes) {
  std::vector<double> values(bytes.size() / sizeof(double));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(double));
  return values;
}

inline ReadHistogram read_histogram(std::string_view message) {
  const auto fields = read_message(message);
  const auto number = [&](uint64_t field) { return std::bit_cast<double>(fields.find(field)->second.bits); };
  return {number(1),
          number(2),
          number(3),
          number(4),
          number(5),
          read_doubles(fields.find(6)->second.bytes),
          read_doubles(fields.find(7)->second.bytes)};
}

inline ReadImage read_image(std::string_view message) {
  const auto fields = read_message(message);
  return {fields.find(2)->second.bits, fields.find(1)->second.bits, fields.find(3)->second.bits,
          fields.find(4)->second.bytes};
}

}  // namespace dtrain
