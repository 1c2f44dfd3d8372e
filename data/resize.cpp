// Filters of both libraries, and the pass that applies them.
#include "data/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "libdtrain/core/error.h"

namespace dtrain::data {
namespace {

constexpr int kFixedBits = 22;  // of a fixed-point weight: 8 bits are left for the sample, 2 for overshoot

template <class Weight>
void start(const Axis& axis, int taps, Filter<Weight>& filter) {
  DT_CHECK(axis.in > 0 && axis.begin >= 0 && axis.count > 0 && axis.begin + axis.count <= axis.out, "resize of ",
           axis.in, " to ", axis.out, " samples: [", axis.begin, ", ", axis.begin + axis.count,
           ") of them cannot be wanted");
  filter.taps = std::min(taps, axis.in);
  filter.first.assign(static_cast<size_t>(axis.count), 0);
  filter.weights.assign(static_cast<size_t>(axis.count) * static_cast<size_t>(filter.taps), Weight{});
}

// Sample i reads source samples from `low` on, those outside replaced by the nearest inside, with `count` weights.
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

// The share of each source sample in [position, position + scale).
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

template <class Weight>
int Filter<Weight>::begin() const {
  return *std::min_element(first.begin(), first.end());
}
template <class Weight>
int Filter<Weight>::end() const {
  return *std::max_element(first.begin(), first.end()) + taps;
}
template <class Weight>
void Filter<Weight>::shift(int offset) {
  for (int& index : first) index -= offset;
}
template struct Filter<float>;
template struct Filter<int32_t>;

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
  start(axis, 2 * static_cast<int>(std::ceil(width)) + 1, filter);
  std::vector<double> shares;
  std::vector<int32_t> weights;
  for (int i = 0; i < axis.count; ++i) {
    const double center = (axis.begin + i + 0.5) * scale;
    const int low = std::max(0, static_cast<int>(center - width + 0.5));
    const int high = std::min(axis.in, static_cast<int>(center + width + 0.5));
    double sum = 0;
    shares.clear();
    for (int v = low; v < high; ++v) {
      const double distance = std::abs((v - center + 0.5) * (1.0 / width));
      shares.push_back(std::max(0.0, 1.0 - distance));
      sum += shares.back();
    }
    weights.clear();
    for (const double share : shares)
      weights.push_back(static_cast<int32_t>(0.5 + share * (1 / sum) * (1 << kFixedBits)));
    put(axis, i, low, weights.data(), high - low, filter);
  }
}

namespace {

// A pixel and one byte of the next in four lanes.
using Bytes4 = uint8_t __attribute__((vector_size(4)));
template <class T>
using Lanes __attribute__((vector_size(4 * sizeof(T)))) = T;

// What differs between the two arithmetics: the sum a row starts from, and how a sum becomes a sample.
struct Floats {
  using Weight = float;
  using Sample = float;
  static constexpr float kStart = 0;
  static Lanes<float> finish(Lanes<float> sums) { return sums; }
  static float finish(float sum) { return sum; }
};
struct Fixed {
  using Weight = int32_t;
  using Sample = uint8_t;
  static constexpr int32_t kStart = 1 << (kFixedBits - 1);
  // The weights are not negative and sum to one within a few units, so no sum leaves 8 bits.
  static Bytes4 finish(Lanes<int32_t> sums) { return __builtin_convertvector(sums >> kFixedBits, Bytes4); }
  static uint8_t finish(int32_t sum) { return static_cast<uint8_t>(sum >> kFixedBits); }
};

// Horizontal pass. Stores four lanes a pixel: the fourth is overwritten by the next pixel, or lies in the row's
// padding.
template <class Kind, int kTaps>
void filter_row(const uint8_t* source, const Filter<typename Kind::Weight>& x, typename Kind::Sample* out) {
  using Weight = typename Kind::Weight;
  const int taps = kTaps > 0 ? kTaps : x.taps;
  const Weight* weight = x.weights.data();
  for (const int first : x.first) {
    const uint8_t* pixel = source + 3 * first;
    Lanes<Weight> sums = Lanes<Weight>{} + Kind::kStart;
    for (int t = 0; t < taps; ++t, pixel += 3) {
      Bytes4 bytes;
      std::memcpy(&bytes, pixel, sizeof bytes);
      sums += __builtin_convertvector(bytes, Lanes<Weight>) * *weight++;
    }
    const auto samples = Kind::finish(sums);
    std::memcpy(out, &samples, sizeof samples);
    out += 3;
  }
}

template <class Kind>
void filter_row(const uint8_t* source, const Filter<typename Kind::Weight>& x, typename Kind::Sample* out) {
  switch (x.taps) {
    case 2:
      return filter_row<Kind, 2>(source, x, out);
    case 3:
      return filter_row<Kind, 3>(source, x, out);
    case 5:
      return filter_row<Kind, 5>(source, x, out);
    default:
      return filter_row<Kind, 0>(source, x, out);
  }
}

// Vertical pass: `taps` filtered rows into one.
template <class Kind>
void combine_rows(const typename Kind::Sample* const* rows, const typename Kind::Weight* weights, int taps, int length,
                  typename Kind::Sample* out) {
  using Weight = typename Kind::Weight;
  constexpr int kBlock = 32;  // sums stay in registers
  for (int begin = 0; begin < length; begin += kBlock) {
    const int count = std::min(kBlock, length - begin);
    std::array<Weight, kBlock> sums;
    sums.fill(Kind::kStart);
    for (int t = 0; t < taps; ++t) {
      const auto* row = rows[t] + begin;
      const Weight weight = weights[t];
      // Rows are padded to whole blocks: a fixed count is what keeps this in vectors.
      for (int i = 0; i < kBlock; ++i) sums[static_cast<size_t>(i)] += static_cast<Weight>(row[i]) * weight;
    }
    for (int i = 0; i < count; ++i) out[begin + i] = Kind::finish(sums[static_cast<size_t>(i)]);
  }
}

// Output rows need source rows in rising order: a ring of `taps` filtered rows holds what is used again, and rows that
// no output needs are never filtered.
template <class Kind>
void resample_rows(const ImageView& source, const Filter<typename Kind::Weight>& x,
                   const Filter<typename Kind::Weight>& y, std::vector<typename Kind::Sample>& ring,
                   typename Kind::Sample* out) {
  DT_CHECK(x.begin() >= 0 && x.end() <= source.width && y.begin() >= 0 && y.end() <= source.height,
           "resample: the filters read [", x.begin(), ", ", x.end(), ") x [", y.begin(), ", ", y.end(),
           ") of an image of ", source.width, "x", source.height);
  const int length = 3 * x.count();
  const size_t pitch = (static_cast<size_t>(length) + 1 + 31) / 32 * 32;
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
                       out + static_cast<ptrdiff_t>(i) * length);
  }
}

}  // namespace

void resample(const ImageView& source, const Filter<float>& x, const Filter<float>& y, std::vector<float>& rows,
              float* out) {
  resample_rows<Floats>(source, x, y, rows, out);
}

void resample(const ImageView& source, const Filter<int32_t>& x, const Filter<int32_t>& y, std::vector<uint8_t>& rows,
              uint8_t* out) {
  resample_rows<Fixed>(source, x, y, rows, out);
}

}  // namespace dtrain::data
