// AVX2. The accurate IDCT is Loeffler, Ligtenberg and Moschytz's with 13-bit constants. A register holds two of a
// block's eight lines as interleaved pairs for multiply-add. The column order lets the second pass find its pairs in
// 32-bit lanes, so that no 16-bit transposition is needed. The fast IDCT is Arai, Agui and Nakajima's in 16 bits, with
// part of its scaling folded into the factors.
#include "data/jpeg_idct.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

namespace dtrain::data {
namespace {

constexpr int kBits = 13, kExtraBits = 2;  // fraction bits: of the constants, and kept between the passes

// Paired lines, and the lane order.
constexpr int kPairs[4][2] = {{0, 4}, {2, 6}, {7, 1}, {3, 5}};
constexpr int kLanes[8] = {0, 4, 2, 6, 7, 1, 3, 5};

constexpr uint8_t place(int row, int column) {
  int at = 0;
  for (int pair = 0; pair < 4; ++pair)
    for (int half = 0; half < 2; ++half)
      for (int lane = 0; lane < 8; ++lane)
        if (kPairs[pair][half] == row && kLanes[lane] == column) at = 16 * pair + 2 * lane + half;
  return static_cast<uint8_t>(at);
}

using Order = std::array<uint8_t, kOrderSize>;

template <class Place>
constexpr Order make_order(Place place_of) {
  Order order{};
  order.fill(64);
  size_t k = 0;
  for (int diagonal = 0; diagonal < 15; ++diagonal)
    for (int i = 0; i <= diagonal; ++i) {
      const int row = diagonal % 2 ? i : diagonal - i, column = diagonal - row;
      if (row < 8 && column < 8) order[k++] = place_of(row, column);
    }
  return order;
}

constexpr Order kPairOrder = make_order(place);
constexpr Order kNaturalOrder = make_order([](int row, int column) { return static_cast<uint8_t>(8 * row + column); });

struct Pairs {
  __m256i l04, l26, l71, l35;
};

struct Lines {
  __m256i line[8];
};

__m256i pair(int low, int high) { return _mm256_set1_epi32(high * 65536 + (low & 0xFFFF)); }

constexpr int fix(double value) { return static_cast<int>(value * (1 << kBits) + (value < 0 ? -0.5 : 0.5)); }
constexpr int k0298 = fix(0.298631336), k0390 = fix(0.390180644), k0541 = fix(0.541196100), k0765 = fix(0.765366865),
              k0899 = fix(0.899976223), k1175 = fix(1.175875602), k1501 = fix(1.501321110), k1847 = fix(1.847759065),
              k1961 = fix(1.961570560), k2053 = fix(2.053119869), k2562 = fix(2.562915447), k3072 = fix(3.072711026);

// Eight lines as 32-bit lanes, scaled down by kShift bits. Sums of two inputs wrap at 16 bits.
template <int kShift>
Lines transform(const Pairs& in) {
  const __m256i swap = _mm256_broadcastsi128_si256(_mm_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
  const __m256i l40 = _mm256_shuffle_epi8(in.l04, swap);
  const __m256i sum = _mm256_add_epi16(in.l04, l40), difference = _mm256_sub_epi16(in.l04, l40);
  const __m256i half = _mm256_set1_epi32(1 << (kShift - 1));
  const auto scale = [&](__m256i x) {  // from the lower half of each lane
    return _mm256_add_epi32(_mm256_srai_epi32(_mm256_slli_epi32(x, 16), 16 - kBits), half);
  };
  const __m256i even0 = scale(sum), even1 = scale(difference);
  const __m256i even2 = _mm256_madd_epi16(in.l26, pair(k0541, k0541 - k1847));
  const __m256i even3 = _mm256_madd_epi16(in.l26, pair(k0541 + k0765, k0541));
  const __m256i e0 = _mm256_add_epi32(even0, even3), e3 = _mm256_sub_epi32(even0, even3);
  const __m256i e1 = _mm256_add_epi32(even1, even2), e2 = _mm256_sub_epi32(even1, even2);

  const __m256i z = _mm256_add_epi16(in.l71, in.l35);
  const __m256i z3 = _mm256_madd_epi16(z, pair(k1175 - k1961, k1175));
  const __m256i z4 = _mm256_madd_epi16(z, pair(k1175, k1175 - k0390));
  const __m256i o3 = _mm256_add_epi32(_mm256_madd_epi16(in.l71, pair(k0298 - k0899, -k0899)), z3);
  const __m256i o0 = _mm256_add_epi32(_mm256_madd_epi16(in.l71, pair(-k0899, k1501 - k0899)), z4);
  const __m256i o2 = _mm256_add_epi32(_mm256_madd_epi16(in.l35, pair(-k2562, k2053 - k2562)), z4);
  const __m256i o1 = _mm256_add_epi32(_mm256_madd_epi16(in.l35, pair(k3072 - k2562, -k2562)), z3);

  const auto sum_of = [](__m256i e, __m256i o) { return _mm256_srai_epi32(_mm256_add_epi32(e, o), kShift); };
  const auto difference_of = [](__m256i e, __m256i o) { return _mm256_srai_epi32(_mm256_sub_epi32(e, o), kShift); };
  return {{sum_of(e0, o0), sum_of(e1, o1), sum_of(e2, o2), sum_of(e3, o3), difference_of(e3, o3), difference_of(e2, o2),
           difference_of(e1, o1), difference_of(e0, o0)}};
}

// Eight rows -> eight columns, pair by pair.
Pairs transpose(const Lines& rows) {
  struct Half {
    __m256i l04_l71, l26_l35;
  };
  const auto four = [&](size_t y) {
    const __m256i rows02 = _mm256_packs_epi32(rows.line[y], rows.line[y + 2]);
    const __m256i rows13 = _mm256_packs_epi32(rows.line[y + 1], rows.line[y + 3]);
    const __m256i rows01 = _mm256_unpacklo_epi32(rows02, rows13), rows23 = _mm256_unpackhi_epi32(rows02, rows13);
    return Half{_mm256_unpacklo_epi64(rows01, rows23), _mm256_unpackhi_epi64(rows01, rows23)};
  };
  const Half upper = four(0), lower = four(4);
  return {_mm256_permute2x128_si256(upper.l04_l71, lower.l04_l71, 0x20),
          _mm256_permute2x128_si256(upper.l26_l35, lower.l26_l35, 0x20),
          _mm256_permute2x128_si256(upper.l04_l71, lower.l04_l71, 0x31),
          _mm256_permute2x128_si256(upper.l26_l35, lower.l26_l35, 0x31)};
}

void store_two_rows(__m128i rows, uint8_t* out, ptrdiff_t stride) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(out), rows);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(out + stride), _mm_unpackhi_epi64(rows, rows));
}

// Stores eight columns, one lane per row, as rows of bytes.
void store(const Lines& columns, uint8_t* out, ptrdiff_t stride) {
  const __m256i by_row =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const auto four = [&](size_t first) {
    const __m256i words01 = _mm256_packs_epi32(columns.line[first], columns.line[first + 1]);
    const __m256i words23 = _mm256_packs_epi32(columns.line[first + 2], columns.line[first + 3]);
    const __m256i bytes = _mm256_packs_epi16(words01, words23);
    return _mm256_shuffle_epi8(_mm256_xor_si256(bytes, _mm256_set1_epi8(-128)), by_row);
  };
  const __m256i left = four(0), right = four(4);
  const __m256i rows01 = _mm256_unpacklo_epi32(left, right), rows23 = _mm256_unpackhi_epi32(left, right);
  store_two_rows(_mm256_castsi256_si128(rows01), out, stride);
  store_two_rows(_mm256_castsi256_si128(rows23), out + 2 * stride, stride);
  store_two_rows(_mm256_extracti128_si256(rows01, 1), out + 4 * stride, stride);
  store_two_rows(_mm256_extracti128_si256(rows23, 1), out + 6 * stride, stride);
}

void accurate(int16_t* coefficients, const int16_t* factors, uint8_t* out, ptrdiff_t stride) {
  auto* block = reinterpret_cast<__m256i*>(coefficients);
  const auto* factor = reinterpret_cast<const __m256i*>(factors);
  const Pairs in{block[0], block[1], block[2], block[3]};
  std::fill_n(block, 4, _mm256_setzero_si256());
  const Pairs scaled{_mm256_mullo_epi16(in.l04, factor[0]), _mm256_mullo_epi16(in.l26, factor[1]),
                     _mm256_mullo_epi16(in.l71, factor[2]), _mm256_mullo_epi16(in.l35, factor[3])};
  const __m256i below =
      _mm256_or_si256(_mm256_or_si256(_mm256_srli_epi32(in.l04, 16), in.l26), _mm256_or_si256(in.l71, in.l35));
  Lines rows;
  if (_mm256_testz_si256(below, below))
    // Only the first row: all are equal. Overflow of 16 bits wraps here and saturates otherwise.
    std::fill_n(rows.line, 8, _mm256_srai_epi32(_mm256_slli_epi32(scaled.l04, 16 + kExtraBits), 16));
  else
    rows = transform<kBits - kExtraBits>(scaled);
  store(transform<kBits + kExtraBits + 3>(transpose(rows)), out, stride);
}

// Eight lines of eight words.
struct WordLines {
  __m128i line[8];
};

// x * value, with value rounded to 8 fraction bits; drops the upper two bits of x.
__m128i scale(__m128i x, double value) {
  const int fixed = static_cast<int>(value * 256 + (value < 0 ? -0.5 : 0.5));
  return _mm_mulhi_epi16(_mm_slli_epi16(x, 2), _mm_set1_epi16(static_cast<int16_t>(fixed * 64)));
}

[[gnu::always_inline]] inline WordLines transform(const WordLines& in) {
  const auto add = [](__m128i a, __m128i b) { return _mm_add_epi16(a, b); };
  const auto sub = [](__m128i a, __m128i b) { return _mm_sub_epi16(a, b); };
  const auto& l = in.line;
  const __m128i sum04 = add(l[0], l[4]), difference04 = sub(l[0], l[4]);
  const __m128i sum26 = add(l[2], l[6]), rest26 = sub(scale(sub(l[2], l[6]), 1.414213562), sum26);
  const __m128i e0 = add(sum04, sum26), e3 = sub(sum04, sum26);
  const __m128i e1 = add(difference04, rest26), e2 = sub(difference04, rest26);

  const __m128i z13 = add(l[5], l[3]), z10 = sub(l[5], l[3]), z11 = add(l[1], l[7]), z12 = sub(l[1], l[7]);
  const __m128i z5 = scale(add(z10, z12), 1.847759065);
  const __m128i o0 = add(z11, z13);
  const __m128i o1 = sub(add(sub(scale(z10, -1.613125930), z10), z5), o0);
  const __m128i o2 = sub(scale(sub(z11, z13), 1.414213562), o1);
  const __m128i o3 = add(sub(scale(z12, 1.082392200), z5), o2);
  return {{add(e0, o0), add(e1, o1), add(e2, o2), sub(e3, o3), add(e3, o3), sub(e2, o2), sub(e1, o1), sub(e0, o0)}};
}

WordLines transpose(WordLines in) {
  for (int round = 0; round < 3; ++round) {
    const WordLines from = in;
    for (size_t i = 0; i < 4; ++i) {
      in.line[2 * i] = _mm_unpacklo_epi16(from.line[i], from.line[i + 4]);
      in.line[2 * i + 1] = _mm_unpackhi_epi16(from.line[i], from.line[i + 4]);
    }
  }
  return in;
}

// Stores eight columns as rows of bytes, two per register from the third round on.
void store(const WordLines& columns, uint8_t* out, ptrdiff_t stride) {
  __m128i rows[4];
  for (size_t i = 0; i < 4; ++i) {
    const __m128i even = _mm_srai_epi16(columns.line[2 * i], 5), odd = _mm_srai_epi16(columns.line[2 * i + 1], 5);
    rows[i] = _mm_xor_si128(_mm_packs_epi16(even, odd), _mm_set1_epi8(-128));
  }
  for (int round = 0; round < 3; ++round) {
    const __m128i from[4] = {rows[0], rows[1], rows[2], rows[3]};
    for (size_t i = 0; i < 2; ++i) {
      rows[2 * i] = _mm_unpacklo_epi8(from[i], from[i + 2]);
      rows[2 * i + 1] = _mm_unpackhi_epi8(from[i], from[i + 2]);
    }
  }
  for (ptrdiff_t i = 0; i < 4; ++i) store_two_rows(rows[i], out + 2 * i * stride, stride);
}

void fast(int16_t* coefficients, const int16_t* factors, uint8_t* out, ptrdiff_t stride) {
  auto* block = reinterpret_cast<__m128i*>(coefficients);
  const auto* factor = reinterpret_cast<const __m128i*>(factors);
  WordLines scaled;
  for (size_t i = 0; i < 8; ++i) scaled.line[i] = _mm_mullo_epi16(block[i], factor[i]);
  std::fill_n(block, 8, _mm_setzero_si128());
  store(transform(transpose(transform(scaled))), out, stride);
}

// Quantizer times sqrt(2) cos(n pi / 16) for non-zero row n and column n, with 2 fraction bits.
int16_t fast_factor(int quantizer, int row, int column) {
  constexpr double kScales[] = {1.0, 1.387039845, 1.306562965, 1.175875602, 1.0, 0.785694958, 0.541196100, 0.275899379};
  const int scale = static_cast<int>(kScales[row] * kScales[column] * (1 << 14) + 0.5);
  return static_cast<int16_t>((quantizer * scale + (1 << 11)) >> 12);
}

}  // namespace

const std::array<uint8_t, kOrderSize>& block_order(Dct dct) {
  return dct == Dct::accurate ? kPairOrder : kNaturalOrder;
}

void make_factors(Dct dct, const uint16_t* quantizers, int16_t* factors) {
  for (int row = 0; row < 8; ++row)
    for (int column = 0; column < 8; ++column) {
      const int i = 8 * row + column, quantizer = quantizers[i];
      if (dct == Dct::accurate)
        factors[place(row, column)] = static_cast<int16_t>(quantizer);
      else
        factors[i] = fast_factor(quantizer, row, column);
    }
}

void inverse_dct(Dct dct, int16_t* coefficients, const int16_t* factors, uint8_t* out, ptrdiff_t stride) {
  dct == Dct::accurate ? accurate(coefficients, factors, out, stride) : fast(coefficients, factors, out, stride);
}

void inverse_dct_flat(Dct dct, int16_t coefficient, int16_t factor, uint8_t* out, ptrdiff_t stride) {
  const auto product = static_cast<uint32_t>(coefficient * factor);
  // Both keep the same number of fraction bits; only the accurate one rounds.
  const int value =
      dct == Dct::accurate ? static_cast<int16_t>(product << kExtraBits) + 16 : static_cast<int16_t>(product);
  const int sample = std::clamp((value >> (kExtraBits + 3)) + 128, 0, 255);
  for (int y = 0; y < 8; ++y) std::memset(out + y * stride, sample, 8);
}

}  // namespace dtrain::data
