#include "libdtrain/cpu/conv/depthwise.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "dtrain/core/context.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"

namespace dtrain::cpu {
namespace {

// One axis of a pass: output cell `out_start + out_step * i` is a sum over input cells `in_step * i + offset`, one for
// each tap. The data gradient of a strided convolution has one such relation for each remainder modulo the stride.
struct AxisTap {
  int64_t offset, weight;
};
struct Axis {
  int64_t out_start, out_step, count;  // count: output cells
  int64_t in_step, in;
  int64_t tap_offset, tap_weight;           // from each tap to the next
  std::vector<AxisTap> taps{};              // in the order of the input cells
  int64_t first_whole = 0, last_whole = 0;  // output cells [first, last) have all taps inside

  bool inside(const AxisTap& tap, int64_t i) const {
    const int64_t cell = in_step * i + tap.offset;
    return cell >= 0 && cell < in;
  }
  void find_whole_range() {
    const auto whole = [&](int64_t i) {
      return std::ranges::all_of(taps, [&](const AxisTap& tap) { return inside(tap, i); });
    };
    last_whole = count;
    while (first_whole < count && !whole(first_whole)) ++first_whole;
    while (last_whole > first_whole && !whole(last_whole - 1)) --last_whole;
  }
};

Axis forward_axis(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation, int64_t padding) {
  Axis axis{0, 1, out, stride, in, dilation, 1};
  for (int64_t tap = 0; tap < kernel; ++tap) axis.taps.push_back({tap * dilation - padding, tap});
  axis.find_whole_range();
  return axis;
}

// The data gradient of the cells of dx with the remainder `start`; `in`: cells of dx, `out`: of dy.
Axis backward_axis(int64_t start, int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation,
                   int64_t padding) {
  const int64_t period = stride / std::gcd(stride, dilation);  // of the taps that reach a cell
  Axis axis{start, stride, (in - start + stride - 1) / stride, 1, out, period * dilation / stride, -period};
  for (int64_t tap = kernel - 1; tap >= 0; --tap) {
    const int64_t reach = start + padding - tap * dilation;
    if (reach % stride == 0) axis.taps.push_back({reach / stride, tap});
  }
  axis.find_whole_range();
  return axis;
}

// The first tap inside the image for cell i, and the number of taps inside, which are neighbours.
std::pair<std::vector<AxisTap>::const_iterator, int64_t> taps_inside(const Axis& axis, int64_t i) {
  const auto inside = [&](const AxisTap& tap) { return axis.inside(tap, i); };
  return {std::ranges::find_if(axis.taps, inside), std::ranges::count_if(axis.taps, inside)};
}

// Forward or data-gradient pass over rows of images.
template <class T>
struct Sweep {
  const DepthwiseLoops<T>& kernels;
  const T* in;
  const float *weights, *bias;  // weights: [r * s][c]
  T* out;
  bool add;
  int64_t channels, out_width, kernel_width;
  Axis columns;

  // Output pixels [begin, end) of a row, all of which have the same taps inside. `out_row`: the row's first pixel.
  void run_pixels(const Axis& rows, int64_t image, int64_t row, int64_t begin, int64_t end, T* out_row) const {
    if (begin == end) return;
    const auto [first, taps] = taps_inside(columns, begin);
    DepthwiseRun<T> run{.row_count = 0,
                        .taps = taps,
                        .pixels = end - begin,
                        .channels = channels,
                        .x_tap_step = columns.tap_offset * channels,
                        .w_tap_step = columns.tap_weight * channels,
                        .x_pixel_step = columns.in_step * channels,
                        .y_pixel_step = columns.out_step * channels,
                        .bias = bias,
                        .y = out_row + (columns.out_start + columns.out_step * begin) * channels,
                        .add = add,
                        .ahead = rows.in_step * columns.in * channels};
    for (const AxisTap& r : rows.taps) {
      if (taps == 0 || !rows.inside(r, row)) continue;
      const int64_t pixel = (image * rows.in + rows.in_step * row + r.offset) * columns.in + columns.in_step * begin;
      run.rows[run.row_count++] = {in + (pixel + first->offset) * channels,
                                   weights + (r.weight * kernel_width + first->weight) * channels};
    }
    if (run.row_count == 0) run.taps = 0;
    kernels.sum_taps(run);
  }

  void run_row(const Axis& rows, int64_t image, int64_t row, T* out_row) const {
    for (int64_t i = 0; i < columns.first_whole; ++i) run_pixels(rows, image, row, i, i + 1, out_row);
    run_pixels(rows, image, row, columns.first_whole, columns.last_whole, out_row);
    for (int64_t i = columns.last_whole; i < columns.count; ++i) run_pixels(rows, image, row, i, i + 1, out_row);
  }
};

// All rows of `images` images of `out_height` rows; row h is of axis h % rows.size().
template <class T>
void run_rows(const Context& context, const std::vector<Sweep<T>>& sweeps, const std::vector<Axis>& rows,
              int64_t images, int64_t out_height) {
  const auto kinds = static_cast<int64_t>(rows.size());
  const Sweep<T>& any = sweeps[0];
#pragma omp parallel for num_threads(context.threads()) schedule(static)
  for (int64_t i = 0; i < images * out_height; ++i) {
    const int64_t image = i / out_height, h = i % out_height;
    for (const Sweep<T>& sweep : sweeps)
      sweep.run_row(rows[static_cast<size_t>(h % kinds)], image, h / kinds, any.out + i * any.out_width * any.channels);
  }
}

// [c][taps] to [taps][c], as floats
template <class T>
void transpose_filters(const T* w, int64_t channels, int64_t taps, float* to) {
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t tap = 0; tap < taps; ++tap) to[tap * channels + c] = w[c * taps + tap];
}

// Pixels of a row whose products are summed in registers before they are added to the sums.
constexpr int64_t kRun = 16;

// Adds the contributions of rows of dy to the sums of dw, [r * s][c].
template <class T>
struct DepthwiseWgrad {
  const DepthwiseLoops<T>& kernels;
  const ConvShape& o;
  const T *x, *dy;
  Axis rows = forward_axis(o.h, o.p, o.r, o.stride_h, o.dilation_h, o.pad_top),
       columns = forward_axis(o.w, o.q, o.s, o.stride_w, o.dilation_w, o.pad_left);

  // Pixels [begin, end) of a row, all of which have the same taps inside.
  void add_pixels(int64_t image, int64_t p, int64_t begin, int64_t end, float* sums) const {
    const auto [first, taps] = taps_inside(columns, begin);
    if (taps == 0) return;
    DepthwiseProducts<T> products{.row_count = 0,
                                  .taps = taps,
                                  .pixels = end - begin,
                                  .channels = o.c,
                                  .x_tap_step = o.dilation_w * o.c,
                                  .sums_tap_step = o.c,
                                  .x_pixel_step = o.stride_w * o.c,
                                  .dy_pixel_step = o.c,
                                  .dy = dy + ((image * o.p + p) * o.q + begin) * o.c,
                                  .x_ahead = o.stride_h * o.w * o.c,
                                  .dy_ahead = o.q * o.c};
    for (const AxisTap& r : rows.taps) {
      if (!rows.inside(r, p)) continue;
      const int64_t pixel = (image * o.h + o.stride_h * p + r.offset) * o.w + o.stride_w * begin + first->offset;
      products.rows[products.row_count++] = {x + pixel * o.c, sums + (r.weight * o.s + first->weight) * o.c};
    }
    kernels.add_products(products);
  }

  void add_row(int64_t image, int64_t p, float* sums) const {
    for (int64_t q = 0; q < columns.first_whole; ++q) add_pixels(image, p, q, q + 1, sums);
    for (int64_t q = columns.first_whole; q < columns.last_whole; q += kRun)
      add_pixels(image, p, q, std::min(q + kRun, columns.last_whole), sums);
    for (int64_t q = columns.last_whole; q < o.q; ++q) add_pixels(image, p, q, q + 1, sums);
  }
};

}  // namespace

Verdict depthwise_verdict(const Context&, const ConvShape& o) {
  const bool supported = o.groups > 1 && o.groups == o.c && o.groups == o.k && o.r <= kDepthwiseRows;
  return supported ? Verdict{} : Verdict::unsupported("needs groups = channels = filters");
}

template <class T>
void Depthwise<T>::forward(Context& context, const ConvShape& o, const ConvOperands<T>& a) {
  const Scratch<float> weights(context, o.r * o.s * o.c);
  transpose_filters(a.w, o.c, o.r * o.s, weights.data());
  const Axis rows = forward_axis(o.h, o.p, o.r, o.stride_h, o.dilation_h, o.pad_top);
  const Axis columns = forward_axis(o.w, o.q, o.s, o.stride_w, o.dilation_w, o.pad_left);
  const DepthwiseLoops<T>& kernels = context.kernels().depthwise.of<T>();
  run_rows<T>(context, {{kernels, a.x, weights.data(), a.bias, a.y, false, o.c, o.q, o.s, columns}}, {rows}, o.n, o.p);
}

template <class T>
void Depthwise<T>::dgrad(Context& context, const ConvShape& o, const ConvOperands<T>& a) {
  const Scratch<float> weights(context, o.r * o.s * o.c);
  transpose_filters(a.w, o.c, o.r * o.s, weights.data());
  std::vector<Axis> rows;
  std::vector<Sweep<T>> sweeps;
  for (int64_t top = 0; top < o.stride_h; ++top)
    rows.push_back(backward_axis(top, o.h, o.p, o.r, o.stride_h, o.dilation_h, o.pad_top));
  for (int64_t left = 0; left < std::min(o.stride_w, o.w); ++left)
    sweeps.push_back({context.kernels().depthwise.of<T>(), a.dy, weights.data(), nullptr, a.dx, a.add, o.c, o.w, o.s,
                      backward_axis(left, o.w, o.q, o.s, o.stride_w, o.dilation_w, o.pad_left)});
  run_rows(context, sweeps, rows, o.n, o.h);
}

template <class T>
void Depthwise<T>::wgrad(Context& context, const ConvShape& o, const ConvOperands<T>& a) {
  const int64_t taps = o.r * o.s, count = taps * o.c;
  const Scratch<float> sums(context, context.threads() * count);
  const DepthwiseWgrad<T> gradient{context.kernels().depthwise.of<T>(), o, a.x, a.dy};
  parallel_parts(context, o.n * o.p, [&](int part, int64_t begin, int64_t end) {
    float* const own = sums.data() + part * count;
    std::fill_n(own, count, 0.0f);
    for (int64_t i = begin; i < end; ++i) gradient.add_row(i / o.p, i % o.p, own);
  });
  for (int64_t c = 0; c < o.c; ++c)
    for (int64_t tap = 0; tap < taps; ++tap) {
      double sum = 0;
      for (int part = 0; part < context.threads(); ++part) sum += sums.data()[part * count + tap * o.c + c];
      float& to = a.dw[c * taps + tap];
      to = (a.add ? to : 0.0f) + static_cast<float>(sum);
    }
}

template struct Depthwise<float>;
template struct Depthwise<Bf16>;

}  // namespace dtrain::cpu
