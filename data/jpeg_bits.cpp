// AVX2: 0xFF bytes are hundreds of bytes apart on average.
#include "data/jpeg_bits.h"

#include <immintrin.h>

#include <bit>

namespace dtrain::data {

Segment read_segment(std::span<const std::byte> encoded, uint8_t* data) {
  const auto* in = reinterpret_cast<const uint8_t*>(encoded.data());
  const uint8_t* const end = in + encoded.size();
  uint8_t* out = data;
  Segment segment;
  while (in < end) {
    if (end - in >= 32) {
      const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), bytes);
      const auto found = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(-1))));
      const int plain = std::countr_zero(found);
      in += plain;
      out += plain;
      if (plain == 32) continue;
    } else if (*in != 0xFF) {
      *out++ = *in++;
      continue;
    }
    // 0xFF 0x00 is a data byte. Fill bytes 0xFF may precede a marker, but not a zero.
    const uint8_t* const run = in;
    while (in < end && *in == 0xFF) ++in;
    if (in == end) break;
    segment.marker = *in == 0 && in - run > 1 ? 0xFF : *in;
    ++in;
    if (segment.marker != 0) break;
    *out++ = 0xFF;
  }
  segment.taken = static_cast<size_t>(in - reinterpret_cast<const uint8_t*>(encoded.data()));
  segment.size = static_cast<size_t>(out - data);
  std::memset(out, 0, kSegmentPadding);
  return segment;
}

}  // namespace dtrain::data
