// AVX2, 16 samples at a time; the last vector of a row may reach into its slack.
#include "data/jpeg_rows.h"

#include <immintrin.h>

#include <algorithm>

namespace dtrain::data {
namespace {

__m256i load_words(const uint8_t* samples) {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(samples)));
}

// 3 * own + other
__m256i blend(__m256i own, __m256i other) {
  return _mm256_add_epi16(_mm256_add_epi16(own, other), _mm256_add_epi16(own, own));
}

// Packs 16 words below 256 to bytes.
void store_bytes(__m256i words, uint8_t* out) {
  const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), bytes);
}

void replicate(const uint8_t* samples, int count, uint8_t* out) {
  for (int i = 0; i < count; i += 16) {
    const __m256i words = load_words(samples + i);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 2 * i), _mm256_or_si256(words, _mm256_slli_epi16(words, 8)));
  }
}

// Vertical blending only.
void blend_rows(const uint8_t* own, const uint8_t* other, int bias, int count, uint8_t* out) {
  for (int i = 0; i < count; i += 16) {
    const __m256i sum = blend(load_words(own + i), load_words(other + i));
    store_bytes(_mm256_srli_epi16(_mm256_add_epi16(sum, _mm256_set1_epi16(static_cast<int16_t>(bias))), 2), out + i);
  }
}

// Horizontal upsampling: two pixels per sum, blended with the previous and the next sum. kShift removes the weights of
// both blends; the biases alternate the rounding of halves.
template <int kShift>
void blend_columns(const int16_t* sums, int count, uint8_t* out) {
  constexpr int16_t kLeft = kShift == 4 ? 8 : 1, kRight = kShift == 4 ? 7 : 2;
  const auto load = [&](int i) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums + i)); };
  for (int i = 0; i < count; i += 16) {
    const __m256i own = load(i);
    const __m256i left = _mm256_add_epi16(blend(own, load(i - 1)), _mm256_set1_epi16(kLeft));
    const __m256i right = _mm256_add_epi16(blend(own, load(i + 1)), _mm256_set1_epi16(kRight));
    const __m256i bytes =
        _mm256_or_si256(_mm256_srli_epi16(left, kShift), _mm256_slli_epi16(_mm256_srli_epi16(right, kShift), 8));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 2 * i), bytes);
  }
}

}  // namespace

void Upsampler::start(int across, int down, bool fancy, int width) {
  across_ = across;
  down_ = down;
  width_ = width;
  fancy_ = fancy && (across == 1 || width > 2);  // rows too short for the filter are replicated
}

const uint8_t* Upsampler::row(const uint8_t* own, const uint8_t* other, bool other_below, int first, int begin,
                              int end) {
  const bool blend_down = fancy_ && down_ == 2;
  if (across_ == 1 && !blend_down) return own + (begin - first);
  // Sample range [low, high) of the pixels.
  const int low = begin / across_, high = (end - 1) / across_ + 1, count = high - low;
  pixels_.resize(std::max(pixels_.size(), static_cast<size_t>(count * across_ + kRowSlack)));
  uint8_t* const out = pixels_.data();
  if (!fancy_) {
    replicate(own + (low - first), count, out);
  } else if (across_ == 1) {
    blend_rows(own + (low - first), other + (low - first), other_below ? 2 : 1, count, out);
  } else {
    sums_.resize(std::max(sums_.size(), static_cast<size_t>(count + 2 + kRowSlack)));
    int16_t* const sums = sums_.data() + 1;  // starts with the sum of sample `low`
    const int left = std::max(low - 1, 0), right = std::min(high + 1, width_);
    for (int i = left; i < right; i += 16) {
      __m256i sum = load_words(own + (i - first));
      if (blend_down) sum = blend(sum, load_words(other + (i - first)));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + (i - low)), sum);
    }
    if (low == 0) sums[-1] = sums[0];
    if (high == width_) sums[count] = sums[count - 1];
    blend_down ? blend_columns<4>(sums, count, out) : blend_columns<2>(sums, count, out);
  }
  return out + (begin - low * across_);
}

namespace {

// Stores 16 pixels, 48 bytes.
void store_rgb(__m256i r, __m256i g, __m256i b, uint8_t* rgb) {
  const __m256i rg = _mm256_packus_epi16(r, g), bb = _mm256_packus_epi16(b, b);
  const auto place = [](__m128i order) { return _mm256_broadcastsi128_si256(order); };
  const __m256i head = _mm256_or_si256(
      _mm256_shuffle_epi8(rg, place(_mm_setr_epi8(0, 8, -1, 1, 9, -1, 2, 10, -1, 3, 11, -1, 4, 12, -1, 5))),
      _mm256_shuffle_epi8(bb, place(_mm_setr_epi8(-1, -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1))));
  const __m256i tail = _mm256_or_si256(
      _mm256_shuffle_epi8(rg, place(_mm_setr_epi8(13, -1, 6, 14, -1, 7, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1))),
      _mm256_shuffle_epi8(bb, place(_mm_setr_epi8(-1, 5, -1, -1, 6, -1, -1, 7, -1, -1, -1, -1, -1, -1, -1, -1))));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rgb), _mm256_castsi256_si128(head));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(rgb + 16), _mm256_castsi256_si128(tail));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rgb + 24), _mm256_extracti128_si256(head, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(rgb + 40), _mm256_extracti128_si256(tail, 1));
}

// x * factor / 2^16, rounded.
__m256i scale(__m256i x, int16_t factor) {
  const __m256i twice = _mm256_mulhi_epi16(_mm256_add_epi16(x, x), _mm256_set1_epi16(factor));
  return _mm256_srai_epi16(_mm256_add_epi16(twice, _mm256_set1_epi16(1)), 1);
}

}  // namespace

// R = Y + 1.402 Cr, B = Y + 1.772 Cb, G = Y - 0.34414 Cb - 0.71414 Cr, with products in 1/65536, rounded. Integer parts
// are split off the factors, so that the rest fits into 16 bits.
void ycc_to_rgb(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, int width, uint8_t* rgb) {
  const auto fix = [](double value) { return static_cast<int>(value * 65536 + (value < 0 ? -0.5 : 0.5)); };
  const auto r_cr = static_cast<int16_t>(fix(1.40200) - 65536), b_cb = static_cast<int16_t>(fix(1.77200) - 2 * 65536);
  const int g_cb = -fix(0.34414), g_cr = 65536 - fix(0.71414);
  const __m256i g_factors = _mm256_set1_epi32(g_cr * 65536 + (g_cb & 0xFFFF));
  const __m256i center = _mm256_set1_epi16(128), half = _mm256_set1_epi32(32768);
  const auto green = [&](__m256i pairs) {
    return _mm256_srai_epi32(_mm256_add_epi32(_mm256_madd_epi16(pairs, g_factors), half), 16);
  };
  for (int x = 0; x < width; x += 16) {
    const __m256i luma = load_words(y + x);
    const __m256i blue = _mm256_sub_epi16(load_words(cb + x), center);
    const __m256i red = _mm256_sub_epi16(load_words(cr + x), center);
    const __m256i r = _mm256_add_epi16(_mm256_add_epi16(luma, red), scale(red, r_cr));
    const __m256i b = _mm256_add_epi16(_mm256_add_epi16(luma, _mm256_add_epi16(blue, blue)), scale(blue, b_cb));
    const __m256i mixed =
        _mm256_packs_epi32(green(_mm256_unpacklo_epi16(blue, red)), green(_mm256_unpackhi_epi16(blue, red)));
    store_rgb(r, _mm256_add_epi16(_mm256_sub_epi16(luma, red), mixed), b, rgb + 3 * x);
  }
}

void grey_to_rgb(const uint8_t* grey, int width, uint8_t* rgb) {
  for (int x = 0; x < width; x += 16) {
    const __m256i luma = load_words(grey + x);
    store_rgb(luma, luma, luma, rgb + 3 * x);
  }
}

}  // namespace dtrain::data
