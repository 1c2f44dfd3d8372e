#include "libdtrain/cpu/conv/sparse_grad.h"

#include <algorithm>
#include <bit>

#include "dtrain/core/context.h"
#include "libdtrain/cpu/conv/im2col.h"
#include "libdtrain/cpu/conv/implicit_gemm.h"
#include "libdtrain/cpu/elements.h"
#include "libdtrain/cpu/gemm/gemm_tn.h"
#include "libdtrain/cpu/gemm/packing.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"

namespace dtrain::cpu {
namespace {

// dy is sparse if at most one row in so many is nonzero: Winograd's algorithm is at best four times as fast as a GEMM
// over the same rows.
constexpr int64_t kMinSparsity = 8;
// Rows that are looked at first: where many of them are nonzero, the others are not scanned.
constexpr int64_t kProbes = 64;
// Rows in a GEMM of the data gradient.
constexpr int64_t kRows = 256;

// Ors all bits but the sign, which vectorises, unlike comparisons.
template <class T>
bool is_zero(const T* row, int64_t count) {
  uint32_t bits = 0;
  for (int64_t i = 0; i < count; ++i) bits |= std::bit_cast<uint32_t>(static_cast<float>(row[i])) << 1;
  return bits == 0;
}

template <class T>
bool looks_sparse(int64_t rows, int64_t k, const T* dy) {
  int64_t found = 0;
  for (int64_t i = 0; i < kProbes; ++i) found += !is_zero(dy + rows * i / kProbes * k, k);
  return found <= 2 * kProbes / kMinSparsity;
}

// Adds products [count][width], of a tap and the channels from `channel` on, to the pixels of dx that the tap reads.
void scatter(const ConvShape& o, const int64_t* rows, int64_t count, int64_t tap, int64_t channel, int64_t width,
             const float* products, float* dx) {
  for (int64_t i = 0; i < count; ++i, products += width) {
    const int64_t image = rows[i] / (o.p * o.q), p = rows[i] / o.q % o.p, q = rows[i] % o.q;
    const int64_t h = p * o.stride_h + tap / o.s * o.dilation_h - o.pad_top;
    const int64_t w = q * o.stride_w + tap % o.s * o.dilation_w - o.pad_left;
    if (h < 0 || h >= o.h || w < 0 || w >= o.w) continue;
    float* const to = dx + ((image * o.h + h) * o.w + w) * o.c + channel;
    for (int64_t j = 0; j < width; ++j) to[j] += products[j];
  }
}

// dx += the data gradient of these rows.
template <class T>
void add_dgrad(Context& context, const ConvShape& o, const std::vector<int64_t>& rows, const T* dy, const float* w,
               float* dx) {
  const GemmKernels& gemm = context.kernels().gemm;
  const int64_t width = gemm.columns, taps = o.r * o.s, columns = taps * o.c, stride = o.k + width;
  const Scratch<float> packed(context, columns * o.k), gathered(context, kRows * stride),
      products(context, context.threads() * kRows * width);
  pack_rows<float>(
      context, columns, o.k, [=](int64_t i) { return w + i * columns; }, packed.data());
  const auto total = static_cast<int64_t>(rows.size());
  for (int64_t first = 0; first < total; first += kRows) {
    const int64_t count = std::min(kRows, total - first);
    for (int64_t i = 0; i < count; ++i)
      std::copy_n(dy + rows[static_cast<size_t>(first + i)] * o.k, o.k, gathered.data() + i * stride);
      // A thread has all taps of its channels, so that no two threads add to one element.
#pragma omp parallel for schedule(static) num_threads(context.threads())
    for (int64_t channel = 0; channel < o.c; channel += width) {
      float* const mine = products.data() + omp_get_thread_num() * kRows * width;
      for (int64_t tap = 0; tap < taps; ++tap) {
        gemm.strided({.rows = count,
                      .k = o.k,
                      .a = gathered.data(),
                      .a_stride = stride,
                      .b = packed.data() + (tap * o.c + channel) * o.k,
                      .b_stride = width,
                      .y = mine,
                      .y_stride = width});
        scatter(o, rows.data() + first, count, tap, channel, width, mine, dx);
      }
    }
  }
}

}  // namespace

Verdict sparse_verdict(const Context& context, const ConvShape& o) {
  const GemmTnShape shape = wgrad_shape(o);
  const bool supported = o.groups == 1 && gemm_tn_supports(context, shape) && shape.macs_per_row() >= kMinMacsPerRow &&
                         shape.rows >= kProbes;
  return supported ? Verdict{}
                   : Verdict::unsupported("the GEMM is too small, or channels are no multiple of the panel width");
}

template <class T>
std::optional<std::vector<int64_t>> nonzero_rows(const ConvShape& o, const T* dy) {
  const int64_t rows = o.n * o.p * o.q;
  if (!looks_sparse(rows, o.k, dy)) return {};
  std::vector<int64_t> found;
  for (int64_t row = 0; row < rows; ++row) {
    if (is_zero(dy + row * o.k, o.k)) continue;
    if (static_cast<int64_t>(found.size()) == rows / kMinSparsity) return {};
    found.push_back(row);
  }
  return found;
}

template <class T>
void SparseGrad<T>::dgrad(Context& context, const ConvShape& o, const ConvOperands<T>& a) {
  const int64_t pixels = o.n * o.h * o.w * o.c, weights = o.k * o.r * o.s * o.c;
  if constexpr (std::is_same_v<T, float>) {
    if (!a.add) zero_elements(a.dx, pixels);
    add_dgrad(context, o, *a.nonzero_rows, a.dy, a.w, a.dx);
  } else {
    const Scratch<float> sums(context, pixels), wide_w(context, weights);
    convert_elements(a.w, weights, wide_w.data());
    if (a.add)
      convert_elements(a.dx, pixels, sums.data());
    else
      zero_elements(sums.data(), pixels);
    add_dgrad(context, o, *a.nonzero_rows, a.dy, wide_w.data(), sums.data());
    convert_elements(sums.data(), pixels, a.dx);
  }
}

template <class T>
void SparseGrad<T>::wgrad(Context& context, const ConvShape& o, const ConvOperands<T>& a) {
  const std::vector<int64_t>& rows = *a.nonzero_rows;
  const int64_t count = std::ssize(rows), taps = o.r * o.s, columns = taps * o.c;
  const std::vector<T> zeros(static_cast<size_t>(o.c));
  const MatrixA<T> windows = Im2colView<T>{o, a.x}.matrix(zeros.data());
  const Scratch<float> b(context, count * o.k);
  for (int64_t i = 0; i < count; ++i) std::copy_n(a.dy + rows[static_cast<size_t>(i)] * o.k, o.k, b.data() + i * o.k);
  if constexpr (std::is_same_v<T, float>) {
    MatrixA<float> gathered = windows;
    gathered.rows = count, gathered.contiguous = nullptr;
    gathered.fill_indirection = [&](int64_t first, int64_t n, int64_t step, const float** at) {
      for (int64_t i = 0; i < n; ++i) windows.fill_indirection(rows[static_cast<size_t>(first + i)], 1, step, at + i);
    };
    gemm_tn<float>(context, gathered, {b.data(), o.k}, a.dw, a.add);
  } else {
    const Scratch<float> gathered(context, count * columns);
    std::vector<const T*> at(static_cast<size_t>(taps));
    for (int64_t i = 0; i < count; ++i) {
      windows.fill_indirection(rows[static_cast<size_t>(i)], 1, 1, at.data());
      for (int64_t tap = 0; tap < taps; ++tap)
        std::copy_n(at[static_cast<size_t>(tap)], o.c, gathered.data() + i * columns + tap * o.c);
    }
    gemm_tn<float>(context, strided_matrix<float>(gathered.data(), count, columns, columns), {b.data(), o.k}, a.dw,
                   a.add);
  }
}

template std::optional<std::vector<int64_t>> nonzero_rows(const ConvShape&, const float*);
template std::optional<std::vector<int64_t>> nonzero_rows(const ConvShape&, const Bf16*);
template struct SparseGrad<float>;
template struct SparseGrad<Bf16>;

}  // namespace dtrain::cpu
