// The inverse cosine transform of JPEG's 8x8 blocks, with dequantisation. Bit for bit libjpeg-turbo's two integer ones
// as it has them for this processor: their overflows in damaged blocks too. Private to data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "data/jpeg_huffman.h"

namespace dtrain::data {

enum class Dct : uint8_t { accurate, fast };

// A block is stored as its transform reads it: number k of the zigzag order at place order[k], as read_block() wants.
const std::array<uint8_t, kOrderSize>& block_order(Dct dct);

// 64 quantizers in natural order -> factors in the order of a block.
void make_factors(Dct dct, const uint16_t* quantizers, int16_t* factors);

// Writes 8 rows of 8 samples, `stride` apart, and clears the coefficients. They and the factors are 32-byte aligned.
void inverse_dct(Dct dct, int16_t* coefficients, const int16_t* factors, uint8_t* out, ptrdiff_t stride);
// The same, of coefficients that are zero but for the first.
void inverse_dct_flat(Dct dct, int16_t coefficient, int16_t factor, uint8_t* out, ptrdiff_t stride);

}  // namespace dtrain::data
