// Compiled without FMA contraction: results are truncated to bytes, and the reference programs do not contract either.
#include "data/crop_and_resize.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>

#include "dtrain/core/error.h"

namespace dtrain::data {
namespace {

__m128 pixel(const uint8_t* rgb) { return _mm_cvtepi32_ps(_mm_setr_epi32(rgb[0], rgb[1], rgb[2], 0)); }

__m128 between(__m128 a, __m128 b, __m128 fraction) { return _mm_fmadd_ps(_mm_sub_ps(b, a), fraction, a); }

// Stores three of the four lanes.
void store(__m128 values, float* out) {
  _mm_storel_pi(reinterpret_cast<__m64*>(out), values);
  _mm_store_ss(out + 2, _mm_movehl_ps(values, values));
}

}  // namespace

int Interpolation::begin() const { return *std::ranges::min_element(low); }

int Interpolation::end(int in) const { return std::min(*std::ranges::max_element(low) + 2, in); }

void Interpolation::shift(int offset) {
  for (int& index : low) index -= offset;
}

void interpolate_corners(const CornerAxis& axis, Interpolation& samples) {
  DT_CHECK(axis.in > 0 && axis.count > 0 && 0 <= axis.from && axis.from <= axis.to && axis.to <= 1,
           "crop_and_resize: ", axis.count, " samples from ", axis.from, " to ", axis.to, " of ", axis.in);
  const auto last = static_cast<float>(axis.in - 1);
  const float step = axis.count > 1 ? (axis.to - axis.from) * last / static_cast<float>(axis.count - 1) : 0;
  const float first = axis.count > 1 ? axis.from * last : 0.5f * (axis.from + axis.to) * last;
  samples.low.clear();
  samples.fraction.clear();
  for (int i = 0; i < axis.count; ++i) {
    const int place = axis.flip ? axis.count - 1 - i : i;
    const float position = std::min(first + static_cast<float>(place) * step, last), floor = std::floor(position);
    samples.low.push_back(static_cast<int>(floor));
    samples.fraction.push_back(position - floor);
  }
}

void interpolate(const ImageView& source, const Interpolation& x, const Interpolation& y, float* out) {
  DT_CHECK(x.begin() >= 0 && x.end(source.width) > x.begin() && y.begin() >= 0 && y.end(source.height) > y.begin(),
           "crop_and_resize: samples outside an image of ", source.width, "x", source.height);
  for (size_t j = 0; j < y.low.size(); ++j) {
    const uint8_t* const upper = source.row(y.low[j]);
    const uint8_t* const lower = source.row(std::min(y.low[j] + 1, source.height - 1));
    const __m128 down = _mm_set1_ps(y.fraction[j]);
    for (size_t i = 0; i < x.low.size(); ++i, out += 3) {
      const int left = 3 * x.low[i], right = 3 * std::min(x.low[i] + 1, source.width - 1);
      const __m128 along = _mm_set1_ps(x.fraction[i]);
      const __m128 top = between(pixel(upper + left), pixel(upper + right), along);
      const __m128 bottom = between(pixel(lower + left), pixel(lower + right), along);
      store(between(top, bottom, down), out);
    }
  }
}

}  // namespace dtrain::data
