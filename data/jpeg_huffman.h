// Huffman-coded blocks of a sequential JPEG: tables, and the two ways through a block: reading its coefficients and
// passing over it. Private to data.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "data/jpeg_bits.h"

namespace dtrain::data {

// A code as a DHT segment gives it: how many code words of each length, and their symbols in order.
struct HuffmanCode {
  std::array<uint8_t, 17> counts{};  // [0] is not used
  std::array<uint8_t, 256> symbols{};
  bool operator==(const HuffmanCode&) const = default;
};

// What a code word means, as the loop over a block wants it. A byte each, from the lowest: the bits of code word and
// value; those before the value; 63 less the value's; by how many coefficients to go on.
struct HuffmanSymbol {
  uint32_t packed = 0;

  // What go() is for an end of block, and for bits that are no code word. From anywhere in a block, the former leads
  // beyond kEndOfBlock; the latter leads, as a run that is too long does, to between 65 and there.
  static constexpr uint32_t kEndOfBlock = 129, kInvalid = 65;

  int bits() const { return static_cast<int>(packed & 63); }
  int begin() const { return static_cast<int>(packed >> 8 & 63); }
  uint32_t go() const { return packed >> 24; }
  // A value of n bits that starts with 1 stands for itself, any other for itself less 2^n - 1.
  int value(uint64_t stream) const {
    const int shift = static_cast<int>(packed >> 16 & 63);
    const uint64_t rest = stream << begin();
    const uint64_t negative = ~static_cast<uint64_t>(static_cast<int64_t>(rest) >> 63);
    return static_cast<int>((rest >> 1 >> shift) + (negative << (63 - shift)) - negative);
  }
};

// Two symbols in a row. `second` counts from where `first` begins; where it is not known it does nothing.
struct HuffmanSymbols {
  HuffmanSymbol first, second;
};

// Finds the symbols that a stream begins with. Symbols of a DC code are numbers of bits, found one at a time; those of
// an AC code are runs and numbers of bits, found two at a time where both code words are among the bits looked up.
template <bool kAc>
class HuffmanTable {
 public:
  using Entry = std::conditional_t<kAc, HuffmanSymbols, HuffmanSymbol>;

  // False where it is not a code, or not one of its kind.
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
  std::array<int, 17> end_{};    // one past the last code word of each length
  std::array<int, 17> index_{};  // the index of a code word's symbol, less the code word, for each length
};

// The tables of one component and its last DC value.
struct BlockCoder {
  HuffmanTable<false> dc;
  HuffmanTable<true> ac;
  int last_dc = 0;
};

// Room for a block's coefficients, and for what the ends of blocks write.
constexpr int kBlockRoom = 80;
// Entries of an order of coefficients; from 64 on they name a place past the block.
constexpr int kOrderSize = 208;

// Reads a block or, without kKeep, passes over it. Coefficients go to a block of zeros, number k of the zigzag order to
// order[k]. Returns how many there are up to the last that is not zero, at least 1; 0 where the data is damaged.
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
    // fill() comes after find(), so that it does not delay it.
    const auto [first, second] = coder.ac.find(reader.bits);
    reader.fill();
    const uint32_t one = k + first.go();
    k = one + second.go();
    if (kKeep) {
      // In this order: a second that does nothing has the place of the first.
      coefficients[order[k - 1]] = static_cast<int16_t>(second.value(reader.bits));
      coefficients[order[one - 1]] = static_cast<int16_t>(first.value(reader.bits));
    }
    // The first may have been the block's last coefficient: then the second is of the next block. Written as one
    // condition, which is rare: whether the block ends here is not.
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
