// Filters of the supported libraries, and the resampling passes, in AVX2 intrinsics: GCC 12 does not vectorise plain
// loops, which are five times slower.
#include "dtrain/data/resize.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "dtrain/core/error.h"

#if defined(__x86_64__) && !defined(__AVX2__)
#error "resize.cpp needs AVX2: leave DTRAIN_CPU_ARCH at x86-64-v3 or set a newer one"
#endif

namespace dtrain::data {
namespace {

template <class Weight>
void start(const Axis& axis, int taps, Filter<Weight>& filter) {
  DT_CHECK(axis.in > 0 && axis.begin >= 0 && axis.count > 0 && axis.begin + axis.count <= axis.out, "resize of ",
           axis.in, " to ", axis.out, " samples: [", axis.begin, ", ", axis.begin + axis.count,
           ") of them cannot be wanted");
  filter.taps = std::min(taps, axis.in);
  filter.first.assign(static_cast<size_t>(axis.count), 0);
  filter.weights.assign(static_cast<size_t>(axis.count) * static_cast<size_t>(filter.taps), Weight{});
}

// Output sample i has `count` weights for source samples from `low` on; indices outside are clamped.
template <class Weight>
void put(const Axis& axis, int i, int low, const Weight* weights, int count, Filter<Weight>& filter) {
  const int taps = filter.taps;
  const int first = std::clamp(low, 0, axis.in - taps);
  Weight* out = filter.weights.data() + static_cast<ptrdiff_t>(i) * taps;
  for (int t = 0; t < count; ++t) out[std::clamp(low + t, 0, axis.in - 1) - first] += weights[t];
  if (axis.flip) std::reverse(out, out + taps);
  filter.first[static_cast<size_t>(i)] = axis.flip ? axis.in - first - taps : first;
}

// Keys' cubic with a = -0.75: at distance x in [0, 1], and at 1 + x.
float cubic_near(float x) { return ((-0.75f + 2) * x - (-0.75f + 3)) * x * x + 1; }
float cubic_far(float x) {
  x += 1;
  return ((-0.75f * x - 5 * -0.75f) * x + 8 * -0.75f) * x - 4 * -0.75f;
}

void put_cubic(const Axis& axis, int i, float position, Filter<float>& filter) {
  constexpr float kSteps = 1024;
  const float floor = std::floor(position);
  const float x = std::nearbyint((position - floor) * kSteps) / kSteps;
  const std::array<float, 4> weights{cubic_far(x), cubic_near(x), cubic_near(1 - x), cubic_far(1 - x)};
  put(axis, i, static_cast<int>(floor) - 1, weights.data(), 4, filter);
}

// Area filter: coverage of each source sample by [position, position + scale).
void put_area(const Axis& axis, int i, float position, float scale, std::vector<float>& weights,
              Filter<float>& filter) {
  const float end = static_cast<float>(axis.begin + i + 1) * scale;
  const int low = static_cast<int>(std::floor(position)), high = static_cast<int>(std::ceil(end));
  weights.clear();
  for (int v = low; v < high; ++v) {
    const auto left = static_cast<float>(v);
    const float share =
        left < position ? (left + 1 > end ? scale : left + 1 - position) : (left + 1 > end ? end - left : 1.0f);
    weights.push_back(share / scale);
  }
  put(axis, i, low, weights.data(), high - low, filter);
}

}  // namespace

void make_filter(const Axis& axis, ResizeMethod method, Filter<float>& filter) {
  const float scale = static_cast<float>(axis.in) / static_cast<float>(axis.out);
  const int area_taps = static_cast<int>(std::ceil(scale)) + 2;
  start(axis,
        method == ResizeMethod::area      ? area_taps
        : method == ResizeMethod::bicubic ? 4
        : method == ResizeMethod::nearest ? 1
                                          : 2,
        filter);
  std::vector<float> scratch;
  for (int i = 0; i < axis.count; ++i) {
    const float position = static_cast<float>(axis.begin + i) * scale;
    const int low = static_cast<int>(std::floor(position));
    const float fraction = position - static_cast<float>(low);
    const std::array<float, 2> linear{1 - fraction, fraction}, nearest{1, 0};
    switch (method) {
      case ResizeMethod::nearest:
        put(axis, i, low, nearest.data(), 1, filter);
        break;
      case ResizeMethod::bilinear:
        put(axis, i, low, linear.data(), 2, filter);
        break;
      case ResizeMethod::bicubic:
        put_cubic(axis, i, position, filter);
        break;
      case ResizeMethod::area:
        put_area(axis, i, position, scale, scratch, filter);
        break;
    }
  }
}

void make_filter(const Axis& axis, Filter<int32_t>& filter) {
  const double scale = static_cast<double>(axis.in) / axis.out, width = std::max(scale, 1.0);
  const auto low_of = [&](double center) { return std::max(0, static_cast<int>(center - width + 0.5)); };
  const auto high_of = [&](double center) { return std::min(axis.in, static_cast<int>(center + width + 0.5)); };
  int taps = 1;
  for (int i = axis.begin; i < axis.begin + axis.count; ++i)
    taps = std::max(taps, high_of((i + 0.5) * scale) - low_of((i + 0.5) * scale));
  start(axis, taps, filter);
  std::vector<double> shares;
  std::vector<int32_t> weights;
  for (int i = 0; i < axis.count; ++i) {
    const double center = (axis.begin + i + 0.5) * scale;
    const int low = low_of(center), high = high_of(center);
    double sum = 0;
    shares.clear();
    for (int v = low; v < high; ++v) {
      const double distance = std::abs((v - center + 0.5) * (1.0 / width));
      shares.push_back(std::max(0.0, 1.0 - distance));
      sum += shares.back();
    }
    weights.clear();
    for (const double share : shares)
      weights.push_back(static_cast<int32_t>(0.5 + share * (1 / sum) * (1 << kFilterBits)));
    put(axis, i, low, weights.data(), high - low, filter);
  }
}

namespace {

void make_single_precision_filter(const Axis& axis, Filter<float>& filter) {
  const float scale = static_cast<float>(axis.in) / static_cast<float>(axis.out);
  for (int i = 0; i < axis.count; ++i) {
    const float position = std::max(scale * (static_cast<float>(axis.begin + i) + 0.5f) - 0.5f, 0.0f);
    const float low = std::floor(position), fraction = position - low;
    const std::array<float, 2> linear{1 - fraction, fraction};
    put(axis, i, static_cast<int>(low), linear.data(), 2, filter);
  }
}

}  // namespace

void make_half_pixel_filter(const Axis& axis, Filter<float>& filter, Coordinates coordinates) {
  const double scale = static_cast<double>(axis.in) / axis.out;
  start(axis, 2, filter);
  if (coordinates == Coordinates::f32) return make_single_precision_filter(axis, filter);
  Axis as_is = axis;
  as_is.flip = false;
  for (int i = 0; i < axis.count; ++i) {
    const int output = axis.begin + i;
    const double position = ((axis.flip ? axis.out - 1 - output : output) + 0.5) * scale - 0.5;
    const double low = std::floor(position);
    const auto fraction = static_cast<float>(position - low);
    const std::array<float, 2> linear{1 - fraction, fraction};
    put(as_is, i, static_cast<int>(low), linear.data(), 2, filter);
  }
}

void pad_with_zeros(Filter<float>& filter, int before, int count) {
  const auto leading = static_cast<size_t>(before), all = static_cast<size_t>(count);
  const auto taps = static_cast<size_t>(filter.taps);
  filter.first.insert(filter.first.begin(), leading, filter.first.front());
  filter.first.resize(all, filter.first.back());
  filter.weights.insert(filter.weights.begin(), leading * taps, 0.0f);
  filter.weights.resize(all * taps, 0.0f);
}

namespace {

// Arithmetic variants. A register holds kLanes sums; Pixel has the four lanes of a pixel and one byte of the next.
// Explicit FMA: compilers differ in what they contract, and ONNX models repeat the rounding (onnx_image.cpp).
struct Floats {
  using Weight = float;
  using Sample = float;  // intermediate type between the passes
  using Output = float;
  using Pixel = __m128;
  using Sums = __m256;
  static constexpr int kLanes = 8;

  static Pixel pixel_sums() { return _mm_setzero_ps(); }
  static Pixel add(Pixel sums, __m128i bytes, float weight) {
    return _mm_fmadd_ps(_mm_cvtepi32_ps(bytes), _mm_set1_ps(weight), sums);
  }
  static void store(Pixel sums, float* out) { _mm_storeu_ps(out, sums); }

  static Sums row_sums() { return _mm256_setzero_ps(); }
  static Sums add(Sums sums, const float* samples, float weight) {
    return _mm256_fmadd_ps(_mm256_loadu_ps(samples), _mm256_set1_ps(weight), sums);
  }
  static void store(Sums sums, float* out) { _mm256_storeu_ps(out, sums); }
};

struct RoundedFloats : Floats {
  using Output = uint8_t;

  using Floats::store;
  static void store(Sums sums, uint8_t* out) {
    const __m256i values = _mm256_cvtps_epi32(sums);
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(values), _mm256_extracti128_si256(values, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_packus_epi16(words, words));
  }
};

struct Fixed {
  using Weight = int32_t;
  using Sample = uint8_t;
  using Output = uint8_t;
  using Pixel = __m128i;
  using Sums = __m256i;
  static constexpr int kLanes = 8;
  static constexpr int32_t kHalf = 1 << (kFilterBits - 1);

  static Pixel pixel_sums() { return _mm_set1_epi32(kHalf); }
  static Pixel add(Pixel sums, __m128i bytes, int32_t weight) {
    return _mm_add_epi32(sums, _mm_mullo_epi32(bytes, _mm_set1_epi32(weight)));
  }
  static void store(Pixel sums, uint8_t* out) {
    const __m128i low_bytes = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    // Weights are non-negative with sum 1 up to rounding, so that sums fit into 8 bits.
    const int32_t bytes = _mm_cvtsi128_si32(_mm_shuffle_epi8(_mm_srli_epi32(sums, kFilterBits), low_bytes));
    std::memcpy(out, &bytes, sizeof bytes);
  }

  static Sums row_sums() { return _mm256_set1_epi32(kHalf); }
  static Sums add(Sums sums, const uint8_t* samples, int32_t weight) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(samples));
    return _mm256_add_epi32(sums, _mm256_mullo_epi32(_mm256_cvtepu8_epi32(bytes), _mm256_set1_epi32(weight)));
  }
  static void store(Sums sums, uint8_t* out) {
    const __m256i words = _mm256_packus_epi32(_mm256_srli_epi32(sums, kFilterBits), _mm256_setzero_si256());
    const __m256i bytes = _mm256_packus_epi16(words, words);
    const std::array<int32_t, 2> halves{_mm256_extract_epi32(bytes, 0), _mm256_extract_epi32(bytes, 4)};
    std::memcpy(out, halves.data(), sizeof halves);
  }
};

__m128i load_pixel(const uint8_t* pixel) {
  int32_t bytes;
  std::memcpy(&bytes, pixel, sizeof bytes);
  return _mm_cvtepu8_epi32(_mm_cvtsi32_si128(bytes));
}

// Horizontal pass. Stores four lanes per pixel; the fourth is overwritten by the next pixel, or lies in the padding.
template <class Kind, int kTaps>
void filter_row(const uint8_t* source, const Filter<typename Kind::Weight>& x, typename Kind::Sample* out) {
  const int taps = kTaps > 0 ? kTaps : x.taps;
  const auto* weight = x.weights.data();
  for (const int first : x.first) {
    const uint8_t* pixel = source + 3 * static_cast<ptrdiff_t>(first);
    auto sums = Kind::pixel_sums();
    for (int t = 0; t < taps; ++t) sums = Kind::add(sums, load_pixel(pixel + 3 * t), weight[t]);
    weight += taps;
    Kind::store(sums, out);
    out += 3;
  }
}

// Common tap counts are compile-time constants.
template <class Kind>
void filter_row(const uint8_t* source, const Filter<typename Kind::Weight>& x, typename Kind::Sample* out) {
  switch (x.taps) {
    case 2:
      return filter_row<Kind, 2>(source, x, out);
    case 3:
      return filter_row<Kind, 3>(source, x, out);
    case 4:
      return filter_row<Kind, 4>(source, x, out);
    case 5:
      return filter_row<Kind, 5>(source, x, out);
    default:
      return filter_row<Kind, 0>(source, x, out);
  }
}

// Vertical pass: `taps` filtered rows into one. May read rows up to the next multiple of kLanes.
template <class Kind>
void combine_rows(const typename Kind::Sample* const* rows, const typename Kind::Weight* weights, int taps, int length,
                  typename Kind::Output* out) {
  for (int i = 0; i < length; i += Kind::kLanes) {
    auto sums = Kind::row_sums();
    for (int t = 0; t < taps; ++t) sums = Kind::add(sums, rows[t] + i, weights[t]);
    if (i + Kind::kLanes <= length) {
      Kind::store(sums, out + i);
    } else {
      std::array<typename Kind::Output, Kind::kLanes> last;
      Kind::store(sums, last.data());
      std::copy_n(last.data(), length - i, out + i);
    }
  }
}

// Output rows need ascending source rows: a ring buffer holds `taps` filtered rows, and unused source rows are never
// filtered.
template <class Kind>
void resample_rows(const ImageView& source, const Filter<typename Kind::Weight>& x,
                   const Filter<typename Kind::Weight>& y, std::vector<typename Kind::Sample>& ring,
                   typename Kind::Output* out, ptrdiff_t pitch_out) {
  DT_CHECK(x.begin() >= 0 && x.end() <= source.width && y.begin() >= 0 && y.end() <= source.height,
           "resample: the filters read [", x.begin(), ", ", x.end(), ") x [", y.begin(), ", ", y.end(),
           ") of an image of ", source.width, "x", source.height);
  const int length = 3 * x.count();
  const size_t pitch = (static_cast<size_t>(length) / Kind::kLanes + 1) * Kind::kLanes;
  const auto taps = static_cast<size_t>(y.taps);
  if (ring.size() < pitch * taps) ring.resize(pitch * taps);
  std::vector<int> held(taps, -1);
  std::vector<const typename Kind::Sample*> rows(taps);
  for (int i = 0; i < y.count(); ++i) {
    for (size_t t = 0; t < taps; ++t) {
      const int row = y.first[static_cast<size_t>(i)] + static_cast<int>(t);
      const size_t slot = static_cast<size_t>(row) % taps;
      auto* filtered = ring.data() + slot * pitch;
      if (held[slot] != row) filter_row<Kind>(source.row(row), x, filtered);
      held[slot] = row;
      rows[t] = filtered;
    }
    combine_rows<Kind>(rows.data(), y.weights.data() + static_cast<size_t>(i) * taps, y.taps, length,
                       out + i * pitch_out);
  }
}

}  // namespace

void resample(const ImageView& source, const Filter<float>& x, const Filter<float>& y, std::vector<float>& rows,
              float* out) {
  resample_rows<Floats>(source, x, y, rows, out, ptrdiff_t{3} * x.count());
}

void resample(const ImageView& source, const Filter<float>& x, const Filter<float>& y, std::vector<float>& rows,
              uint8_t* out, int64_t stride) {
  DT_CHECK(stride >= int64_t{3} * x.count(), "resample: rows of ", x.count(), " pixels ", stride, " bytes apart");
  resample_rows<RoundedFloats>(source, x, y, rows, out, stride);
}

void resample(const ImageView& source, const Filter<int32_t>& x, const Filter<int32_t>& y, std::vector<uint8_t>& rows,
              uint8_t* out) {
  resample_rows<Fixed>(source, x, y, rows, out, ptrdiff_t{3} * x.count());
}

}  // namespace dtrain::data
