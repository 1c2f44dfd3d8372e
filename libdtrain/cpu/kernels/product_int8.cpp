#include "libdtrain/cpu/kernels/product_int8.h"

#include "libdtrain/cpu/kernels/ahead.h"
#include "libdtrain/cpu/kernels/table.h"
#include "libdtrain/cpu/kernels/vectors.h"

namespace dtrain::cpu::DT_ISA {
namespace {

constexpr int kColumns = 2 * kLanes;
constexpr int64_t kPiece = 64;  // bytes of a run between prefetches
constexpr float kMostByte = 255;

#ifdef __AVX512F__
using Ints = __m512i;
// GCC 12 warns about the forms without a mask, which leave a result undefined before they set it.
constexpr __mmask16 kAll = 0xffff;
[[gnu::always_inline]] inline Ints load_ints(const void* from) { return _mm512_loadu_si512(from); }
[[gnu::always_inline]] inline Ints all_of(int32_t x) { return _mm512_set1_epi32(x); }
[[gnu::always_inline]] inline Floats floats_of(Ints x) { return _mm512_maskz_cvtepi32_ps(kAll, x); }
[[gnu::always_inline]] inline Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
[[gnu::always_inline]] inline Floats bytes_as_floats(const uint8_t* from) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm512_maskz_cvtepi32_ps(kAll, _mm512_maskz_cvtepu8_epi32(kAll, bytes));
}
[[gnu::always_inline]] inline void store_bytes(uint8_t* to, Floats value) {
  value = value > kMostByte ? kMostByte - Floats{} : value;  // what is beyond 32 bits would be converted to the least
  const __m512i whole = _mm512_maskz_max_epi32(kAll, _mm512_maskz_cvtps_epi32(kAll, value), _mm512_setzero_si512());
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_maskz_cvtusepi32_epi8(kAll, whole));
}
#else
using Ints = __m256i;
[[gnu::always_inline]] inline Ints load_ints(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
[[gnu::always_inline]] inline Ints all_of(int32_t x) { return _mm256_set1_epi32(x); }
[[gnu::always_inline]] inline Floats floats_of(Ints x) { return _mm256_cvtepi32_ps(x); }
[[gnu::always_inline]] inline Floats multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
[[gnu::always_inline]] inline Floats bytes_as_floats(const uint8_t* from) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
}
[[gnu::always_inline]] inline void store_bytes(uint8_t* to, Floats value) {
  value = value > kMostByte ? kMostByte - Floats{} : value;
  const __m256i whole = _mm256_cvtps_epi32(value);
  const __m128i half = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(half, half));
}
#endif

#ifdef __AVX512VNNI__
// Twice as many accumulators, two vectors of the panel and one of a row fit 32 registers.
constexpr int kRows = 12;

// Quads of a vector of filters as products take them.
struct Filters {
  Ints quads;
  explicit Filters(const int8_t* from) : quads(load_ints(from)) {}
};
struct Activations {
  Ints quads;
  explicit Activations(int32_t quad) : quads(all_of(quad)) {}
};
[[gnu::always_inline]] inline Ints add_products(Ints sum, const Activations& a, const Filters& b) {
  return _mm512_dpbusd_epi32(sum, a.quads, b.quads);
}
#else
// Bytes are widened to 16 bits, whose pairs of products are added without overflow: those of 8 bits would saturate. The
// bytes of a quad at even places and those at odd ones are apart, in filters as in activations.
#ifdef __AVX512F__
constexpr int kRows = 10;
[[gnu::always_inline]] inline Ints low_bytes(Ints x) { return _mm512_and_si512(x, _mm512_set1_epi32(0x00ff00ff)); }
[[gnu::always_inline]] inline Ints high_bytes(Ints x) { return _mm512_srli_epi16(x, 8); }
[[gnu::always_inline]] inline Ints low_signed(Ints x) { return _mm512_srai_epi16(_mm512_slli_epi16(x, 8), 8); }
[[gnu::always_inline]] inline Ints high_signed(Ints x) { return _mm512_srai_epi16(x, 8); }
[[gnu::always_inline]] inline Ints pairs(Ints a, Ints b) { return _mm512_madd_epi16(a, b); }
[[gnu::always_inline]] inline Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
#else
constexpr int kRows = 4;
[[gnu::always_inline]] inline Ints low_bytes(Ints x) { return _mm256_and_si256(x, _mm256_set1_epi32(0x00ff00ff)); }
[[gnu::always_inline]] inline Ints high_bytes(Ints x) { return _mm256_srli_epi16(x, 8); }
[[gnu::always_inline]] inline Ints low_signed(Ints x) { return _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8); }
[[gnu::always_inline]] inline Ints high_signed(Ints x) { return _mm256_srai_epi16(x, 8); }
[[gnu::always_inline]] inline Ints pairs(Ints a, Ints b) { return _mm256_madd_epi16(a, b); }
[[gnu::always_inline]] inline Ints add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
#endif

struct Filters {
  Ints low, high;
  explicit Filters(const int8_t* from) : low(low_signed(load_ints(from))), high(high_signed(load_ints(from))) {}
};
struct Activations {
  Ints low, high;
  explicit Activations(int32_t quad) : low(low_bytes(all_of(quad))), high(high_bytes(all_of(quad))) {}
};
[[gnu::always_inline]] inline Ints add_products(Ints sum, const Activations& a, const Filters& b) {
  return add(sum, add(pairs(a.low, b.low), pairs(a.high, b.high)));
}
#endif

template <int R>
using Sums = Ints[R][2];

// sum[r] += the product of `k` bytes of row r and the panel.
template <int R>
[[gnu::always_inline]] inline void accumulate(const uint8_t* const (&at)[R], int64_t k, const int8_t* panel,
                                              Sums<R>& sum) {
  for (int64_t p = 0; p < k; p += kQuad, panel += kQuad * kColumns) {
    const Filters b0(panel), b1(panel + kQuad * kLanes);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      int32_t quad;
      std::memcpy(&quad, at[r] + p, sizeof quad);
      const Activations a(quad);
      sum[r][0] = add_products(sum[r][0], a, b0);
      sum[r][1] = add_products(sum[r][1], a, b1);
    }
  }
}

// Where the elements of a vector of one row are, and their columns.
struct Place {
  const uint8_t* residual_bytes;
  const float* residual;
  uint8_t* y_bytes;
  float* y;
  int64_t column;

  Place(const GatheredBytes& g, int64_t at, int64_t first)
      : residual_bytes(g.end.residual_bytes ? g.end.residual_bytes + at : nullptr),
        residual(g.end.residual ? g.end.residual + at : nullptr),
        y_bytes(g.y_bytes ? g.y_bytes + at : nullptr),
        y(g.y ? g.y + at : nullptr),
        column(first) {}
};

[[gnu::always_inline]] inline void end_vector(const Ints& sum, const ByteEnd& end, const Place& at) {
  Floats value = multiply_add(floats_of(sum), load(end.scale + at.column), load(end.shift + at.column));
  const Floats factor = end.residual_scale - Floats{};
  if (at.residual_bytes) value = multiply_add(bytes_as_floats(at.residual_bytes), factor, value);
  if (at.residual) value = multiply_add(load(at.residual), factor, value);
  const Floats floor = end.floor - Floats{};
  value = value < floor ? floor : value;  // lets a NaN through
  if (at.y_bytes)
    store_bytes(at.y_bytes, value);
  else
    store(at.y, value);
}

// Ends the first `valid` lanes of a vector, by way of memory that has room for all.
[[gnu::noinline]] void end_lanes(const Ints& sum, const ByteEnd& end, Place at, int64_t valid) {
  uint8_t residual_bytes[kLanes] = {}, y_bytes[kLanes];
  float residual[kLanes] = {}, y[kLanes];
  uint8_t* const to_bytes = at.y_bytes;
  float* const to = at.y;
  for (int64_t i = 0; i < valid; ++i) {
    if (at.residual_bytes) residual_bytes[i] = at.residual_bytes[i];
    if (at.residual) residual[i] = at.residual[i];
  }
  if (at.residual_bytes) at.residual_bytes = residual_bytes;
  if (at.residual) at.residual = residual;
  if (to_bytes) at.y_bytes = y_bytes;
  if (to) at.y = y;
  end_vector(sum, end, at);
  for (int64_t i = 0; i < valid; ++i) {
    if (to_bytes) to_bytes[i] = y_bytes[i];
    if (to) to[i] = y[i];
  }
}

enum class Residual { none, bytes, floats };

// Ends all columns of the rows, and keeps what does not differ between rows in registers.
template <int R, Residual kResidual, bool kBytes>
[[gnu::always_inline]] inline void end_rows_as(const GatheredBytes& g, const Sums<R>& sum) {
  const Floats factor = g.end.residual_scale - Floats{}, floor = g.end.floor - Floats{};
  const Floats scale[2] = {load(g.end.scale), load(g.end.scale + kLanes)};
  const Floats shift[2] = {load(g.end.shift), load(g.end.shift + kLanes)};
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const int64_t at = r * g.y_stride + half * kLanes;
      Floats value = multiply_add(floats_of(sum[r][half]), scale[half], shift[half]);
      if constexpr (kResidual == Residual::bytes)
        value = multiply_add(bytes_as_floats(g.end.residual_bytes + at), factor, value);
      if constexpr (kResidual == Residual::floats) value = multiply_add(load(g.end.residual + at), factor, value);
      value = value < floor ? floor : value;  // lets a NaN through
      if constexpr (kBytes)
        store_bytes(g.y_bytes + at, value);
      else
        store(g.y + at, value);
    }
}

template <int R, Residual kResidual>
[[gnu::always_inline]] inline void end_rows_with(const GatheredBytes& g, const Sums<R>& sum) {
  if (g.y_bytes)
    end_rows_as<R, kResidual, true>(g, sum);
  else
    end_rows_as<R, kResidual, false>(g, sum);
}

template <int R>
[[gnu::always_inline]] inline void end_rows(const GatheredBytes& g, const Sums<R>& sum) {
  if (g.end.residual_bytes)
    end_rows_with<R, Residual::bytes>(g, sum);
  else if (g.end.residual)
    end_rows_with<R, Residual::floats>(g, sum);
  else
    end_rows_with<R, Residual::none>(g, sum);
}

template <int R>
[[gnu::noinline]] void end_part_of_rows(const GatheredBytes& g, const Sums<R>& sum) {
  for (int r = 0; r < R; ++r) {
    end_lanes(sum[r][0], g.end, Place(g, r * g.y_stride, 0), g.valid < kLanes ? g.valid : kLanes);
    if (g.valid > kLanes) end_lanes(sum[r][1], g.end, Place(g, r * g.y_stride + kLanes, kLanes), g.valid - kLanes);
  }
}

// Lines that are only reached at the end come while the sums are made.
template <int R>
[[gnu::always_inline]] inline void fetch_ends(const GatheredBytes& g) {
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
    const int64_t at = r * g.y_stride;
    if (g.y_bytes)
      __builtin_prefetch(g.y_bytes + at, 1);
    else
      __builtin_prefetch(g.y + at, 1);
    if (g.end.residual_bytes) __builtin_prefetch(g.end.residual_bytes + at);
    if (g.end.residual) __builtin_prefetch(g.end.residual + at);
  }
}

template <int R>
void gathered_tile(const GatheredBytes& g) {
  fetch_ends<R>(g);
  Sums<R> sum;
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) sum[r][0] = sum[r][1] = Ints{};
  const uint8_t* const* tap = g.at;
  const int8_t* panel = g.panel;
  const int64_t pieces = g.taps * ((g.k + kPiece - 1) / kPiece);
  Ahead ahead(g.upcoming, pieces);
  for (int64_t t = 0; t < g.taps; ++t, tap += g.row_step) {
    const uint8_t* at[R];
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) at[r] = tap[r];
    for (int64_t done = 0; done < g.k; done += kPiece) {
      const int64_t piece = g.k - done < kPiece ? g.k - done : kPiece;
      ahead.fetch();
      accumulate<R>(at, piece, panel, sum);
      panel += piece * kColumns;
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) at[r] += piece;
    }
  }
  if (g.valid == kColumns) {
    end_rows<R>(g, sum);
    return;
  }
  Sums<R> copy;  // so that those above have no address and stay in registers
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) copy[r][0] = sum[r][0], copy[r][1] = sum[r][1];
  end_part_of_rows<R>(g, copy);
}

template <int R = kRows>
void rows_of_tile(const GatheredBytes& g) {
  if (g.rows == R)
    gathered_tile<R>(g);
  else if constexpr (R > 1)
    rows_of_tile<R - 1>(g);
}

void quantize(int64_t count, const float* x, float scale, float zero, uint8_t* to) {
  const Floats factor = scale - Floats{}, summand = zero - Floats{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store_bytes(to + i, multiply_add(load(x + i), factor, summand));
  if (i == count) return;
  float rest[kLanes] = {};
  uint8_t bytes[kLanes];
  for (int64_t j = i; j < count; ++j) rest[j - i] = x[j];
  store_bytes(bytes, multiply_add(load(rest), factor, summand));
  for (int64_t j = i; j < count; ++j) to[j] = bytes[j - i];
}

}  // namespace

ByteProductKernels byte_product_kernels() { return {kRows, kColumns, rows_of_tile<>, quantize}; }

}  // namespace dtrain::cpu::DT_ISA
