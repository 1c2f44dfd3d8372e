// Entropy-coded JPEG segments and bit reader. Private to data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace dtrain::data {

// Entropy-coded bytes up to the next marker, without byte stuffing.
struct Segment {
  size_t taken = 0;    // bytes consumed, including the marker
  uint8_t marker = 0;  // 0 at the end of the input
  size_t size = 0;     // bytes of unstuffed data
};

// Readable bytes after a segment's data; more than one block can consume.
constexpr size_t kSegmentPadding = 320;

// Writes to `data`, which has room for `encoded` and kSegmentPadding.
Segment read_segment(std::span<const std::byte> encoded, uint8_t* data);

// Bit buffer of a segment, MSB first. Between symbols at least 25 bits are valid, enough for any code word.
struct BitReader {
  const uint8_t* next = nullptr;
  const uint8_t* end = nullptr;  // end of the data
  uint64_t bits = 0;
  int count = 0;

  void start(const uint8_t* data, size_t size) {
    *this = {data, data + size};
    fill();
  }
  // Branch-free refill to at least 56 bits: rereads bytes that are already buffered.
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
  // fill() reads at most 8 bytes ahead.
  bool overrun() const { return next > end + 8; }
  // Remaining bits of data; negative after an overrun.
  int64_t left() const { return (end - next) * 8 + count; }
};

}  // namespace dtrain::data
