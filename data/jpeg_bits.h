// The entropy-coded bytes of a JPEG: cut at markers, and read bit by bit. Private to data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace dtrain::data {

// Entropy-coded bytes up to the next marker, stuffing removed.
struct Segment {
  size_t taken = 0;    // bytes of the input, with the marker
  uint8_t marker = 0;  // 0 where the input ends without one
  size_t size = 0;     // bytes of data
};

// Bytes that may be read after a segment's data: more than one block can take.
constexpr size_t kSegmentPadding = 320;

// Writes to `data`, which has room for all of `encoded` and kSegmentPadding.
Segment read_segment(std::span<const std::byte> encoded, uint8_t* data);

// The bits of a segment, the next one on top. Between symbols at least 25 of `bits` are valid: a code word and more.
struct BitReader {
  const uint8_t* next = nullptr;
  const uint8_t* end = nullptr;  // where the data ends
  uint64_t bits = 0;
  int count = 0;

  void start(const uint8_t* data, size_t size) {
    *this = {data, data + size};
    fill();
  }
  // Tops `bits` up to 56 or more, without a branch: what is already there is read once more.
  void fill() {
    uint64_t bytes;
    std::memcpy(&bytes, next, sizeof bytes);
    bits |= __builtin_bswap64(bytes) >> count;
    next += (63 - count) >> 3;
    count |= 56;
  }
  void drop(int n) {
    bits <<= n;
    count -= n;
  }
  // What fill() has taken is at most 8 bytes ahead.
  bool overrun() const { return next > end + 8; }
  // Bits that are left of the data; negative where more was read than there is.
  int64_t left() const { return (end - next) * 8 + count; }
};

}  // namespace dtrain::data
