// One pixel of RGB bytes as a vector.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace dtrain::data {

// Its three bytes and the one after them, which ImageView lets readers read, as 32-bit integers.
inline __m128i load_pixel(const uint8_t* pixel) {
  int32_t bytes;
  std::memcpy(&bytes, pixel, sizeof bytes);
  return _mm_cvtepu8_epi32(_mm_cvtsi32_si128(bytes));
}

}  // namespace dtrain::data
