// Inverse DCT of JPEG's 8x8 blocks, with dequantisation. Bit-exact with libjpeg-turbo's two integer IDCTs of this
// architecture, including overflows in damaged blocks. Private to data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "data/jpeg_huffman.h"

namespace dtrain::data {

enum class Dct : uint8_t { accurate, fast };

// Storage order of coefficients for a transform: coefficient k in zigzag order goes to order[k], as in read_block().
const std::array<uint8_t, kOrderSize>& block_order(Dct dct);

// 64 quantizers in natural order -> factors in storage order.
void make_factors(Dct dct, const uint16_t* quantizers, int16_t* factors);

// Writes 8 rows of 8 samples, `stride` apart, and clears the coefficients. Coefficients and factors are 32-byte
// aligned.
void inverse_dct(Dct dct, int16_t* coefficients, const int16_t* factors, uint8_t* out, ptrdiff_t stride);
// The same for a block with only a DC coefficient.
void inverse_dct_flat(Dct dct, int16_t coefficient, int16_t factor, uint8_t* out, ptrdiff_t stride);

}  // namespace dtrain::data
