// Huffman decoding of blocks in sequential JPEGs: tables, and reading or skipping of coefficients. Private to data.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "data/jpeg_bits.h"

namespace dtrain::data {

// Code as in a DHT segment: number of code words per length, and the symbols in order.
struct HuffmanCode {
  std::array<uint8_t, 17> counts{};  // [0] is unused
  std::array<uint8_t, 256> symbols{};
  bool operator==(const HuffmanCode&) const = default;
};

// Packed decode-table entry, one byte each from the lowest: bits of code word and value; bits before the value; 63
// minus the bits of the value; coefficients to advance.
struct HuffmanSymbol {
  uint32_t packed = 0;

  // go() of an end of block and of an invalid code word. From any position in a block, the former leads beyond
  // kEndOfBlock; the latter, like an over-long run, to at least 65 and at most kEndOfBlock.
  static constexpr uint32_t kEndOfBlock = 129, kInvalid = 65;

  int bits() const { return static_cast<int>(packed & 63); }
  int begin() const { return static_cast<int>(packed >> 8 & 63); }
  uint32_t go() const { return packed >> 24; }
  // Sign extension (EXTEND of the JPEG standard): a value of n bits with leading 1 is itself, else itself minus 2^n -
  // 1.
  int value(uint64_t stream) const {
    const int shift = static_cast<int>(packed >> 16 & 63);
    const uint64_t rest = stream << begin();
    const uint64_t negative = ~static_cast<uint64_t>(static_cast<int64_t>(rest) >> 63);
    return static_cast<int>((rest >> 1 >> shift) + (negative << (63 - shift)) - negative);
  }
};

// Two consecutive symbols. `second` counts from the start of `first`; it is a no-op if it is unknown.
struct HuffmanSymbols {
  HuffmanSymbol first, second;
};

// Lookup of the next symbols of a stream. DC symbols (sizes) are decoded one at a time; AC symbols (run, size) two at a
// time if both code words fit the lookup bits.
template <bool kAc>
class HuffmanTable {
 public:
  using Entry = std::conditional_t<kAc, HuffmanSymbols, HuffmanSymbol>;

  // Returns false for an invalid code, or one of the wrong kind.
  bool build(const HuffmanCode& code);
  Entry find(uint64_t stream) const {
    const Entry entry = fast_[stream >> (64 - kFastBits)];
    return std::bit_cast<std::conditional_t<kAc, uint64_t, uint32_t>>(entry) != 0 ? entry : find_long(stream);
  }

 private:
  static constexpr int kFastBits = 10;

  static HuffmanSymbol symbol(int symbol, int length);
  Entry find_long(uint64_t stream) const;
  void join_pairs();

  std::array<uint8_t, 256> symbols_{};
  std::array<Entry, 1 << kFastBits> fast_{};
  std::array<int, 17> end_{};    // per length: one past the last code word
  std::array<int, 17> index_{};  // per length: index of a code word's symbol minus the code word
};

// Tables of one component and its DC predictor.
struct BlockCoder {
  HuffmanTable<false> dc;
  HuffmanTable<true> ac;
  int last_dc = 0;
};

// Capacity for a block's coefficients and overruns at block ends.
constexpr int kBlockRoom = 80;
// Size of a coefficient order; entries from 64 on point behind the block.
constexpr int kOrderSize = 208;

// Reads a block, or skips it without kKeep. Stores coefficient k in zigzag order at order[k] of a zeroed block. Returns
// the number of coefficients up to the last non-zero one, at least 1; 0 for invalid data.
template <bool kKeep>
[[gnu::always_inline]] inline int read_block(BitReader& reader, BlockCoder& coder, const uint8_t* order,
                                             int16_t* coefficients) {
  const HuffmanSymbol dc = coder.dc.find(reader.bits);
  reader.fill();
  coder.last_dc += dc.value(reader.bits);
  if (kKeep) coefficients[0] = static_cast<int16_t>(coder.last_dc);
  reader.drop(dc.bits());
  uint32_t k = 1 + dc.go();
  while (k < 64) {
    // fill() follows find() to keep it off the critical path.
    const auto [first, second] = coder.ac.find(reader.bits);
    reader.fill();
    const uint32_t one = k + first.go();
    k = one + second.go();
    if (kKeep) {
      // In this order, because a no-op second symbol has the position of the first.
      coefficients[order[k - 1]] = static_cast<int16_t>(second.value(reader.bits));
      coefficients[order[one - 1]] = static_cast<int16_t>(first.value(reader.bits));
    }
    // The first symbol may complete the block; the second then belongs to the next one. A single, rarely true
    // condition: whether the block ends here would be a mispredicted branch.
    if ((one >= 64) & (k != one)) [[unlikely]] {
      k = one;
      reader.drop(first.bits());
    } else {
      reader.drop(second.bits());
    }
  }
  constexpr uint32_t kEnd = HuffmanSymbol::kEndOfBlock;
  const bool sound = (k == 64 || k > kEnd) && coder.last_dc == static_cast<int16_t>(coder.last_dc) && !reader.overrun();
  return !sound ? 0 : k == 64 ? 64 : static_cast<int>(k - kEnd);
}

}  // namespace dtrain::data
