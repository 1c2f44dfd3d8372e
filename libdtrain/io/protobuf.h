// Protobuf's wire format, as far as the few messages that are written and read here need it: a field is a tag, which is
// its number and its type, and a value. (Protobuf's encoding guide)
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dtrain {

enum class WireType : uint32_t { varint = 0, fixed64 = 1, length = 2, fixed32 = 5 };

constexpr uint32_t field_tag(uint32_t field, WireType type) { return field << 3 | static_cast<uint32_t>(type); }

constexpr size_t varint_bytes(uint64_t value) { return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7; }

// Bytes of a field of `size` bytes whose number is at most 15, so that its tag takes one byte.
constexpr size_t field_bytes(size_t size) { return 1 + varint_bytes(size) + size; }

// Little-endian groups of seven bits.
inline void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

// The start of a field of `size` bytes, which follow.
inline void put_length(std::string& out, uint32_t field, size_t size) {
  put_varint(out, field_tag(field, WireType::length));
  put_varint(out, size);
}

// A whole field: a text or the bytes of a message; a whole number, negative ones as 64 bits; a double; a float.
inline void put_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  put_length(out, field, bytes.size());
  out += bytes;
}
inline void put_integer(std::string& out, uint32_t field, uint64_t value) {
  put_varint(out, field_tag(field, WireType::varint));
  put_varint(out, value);
}

template <class Bits>
void put_fixed(std::string& out, Bits bits) {
  for (size_t i = 0; i < sizeof bits; ++i) out.push_back(static_cast<char>(bits >> 8 * i & 0xff));
}
inline void put_double(std::string& out, uint32_t field, double value) {
  put_varint(out, field_tag(field, WireType::fixed64));
  put_fixed(out, std::bit_cast<uint64_t>(value));
}
inline void put_float(std::string& out, uint32_t field, float value) {
  put_varint(out, field_tag(field, WireType::fixed32));
  put_fixed(out, std::bit_cast<uint32_t>(value));
}

}  // namespace dtrain
