// Construction of decode tables from canonical codes (T.81, annex C).
#include "data/jpeg_huffman.h"

#include <algorithm>

namespace dtrain::data {
namespace {

constexpr HuffmanSymbol pack(int bits, int begin, int value_bits, uint32_t go) {
  return {static_cast<uint32_t>(bits) | static_cast<uint32_t>(begin) << 8 |
          static_cast<uint32_t>(63 - value_bits) << 16 | go << 24};
}

// No-op second symbol.
HuffmanSymbol nothing(HuffmanSymbol first) { return pack(first.bits(), 0, 0, 0); }

}  // namespace

template <bool kAc>
HuffmanSymbol HuffmanTable<kAc>::symbol(int symbol, int length) {
  const int bits = symbol & 15, run = symbol >> 4;
  uint32_t go = 0;
  if (kAc) go = bits == 0 && run != 15 ? HuffmanSymbol::kEndOfBlock : static_cast<uint32_t>(run) + 1;
  return pack(length + bits, length, bits, go);
}

template <bool kAc>
bool HuffmanTable<kAc>::build(const HuffmanCode& code) {
  symbols_ = code.symbols;
  fast_.fill({});
  int word = 0, used = 0;
  for (int length = 1; length <= 16; ++length) {
    const int count = code.counts[static_cast<size_t>(length)];
    index_[static_cast<size_t>(length)] = used - word;
    // The all-ones code word is reserved.
    if (used + count > 256 || word + count >= 1 << length) return false;
    for (int i = 0; i < count; ++i, ++word, ++used) {
      const int number = symbols_[static_cast<size_t>(used)];
      if (!kAc && number > 15) return false;
      if (length > kFastBits) continue;
      Entry entry{};
      if constexpr (kAc)
        entry.first = symbol(number, length);
      else
        entry = symbol(number, length);
      std::fill_n(fast_.begin() + (word << (kFastBits - length)), 1 << (kFastBits - length), entry);
    }
    end_[static_cast<size_t>(length)] = word;
    word <<= 1;
  }
  if constexpr (kAc) join_pairs();
  return used > 0;
}

template <>
void HuffmanTable<true>::join_pairs() {
  for (size_t i = 0; i < fast_.size(); ++i) {
    const HuffmanSymbol first = fast_[i].first;
    if (first.packed == 0) continue;
    fast_[i].second = nothing(first);
    if (first.bits() >= kFastBits || first.go() == HuffmanSymbol::kEndOfBlock) continue;
    const HuffmanSymbol second = fast_[i << first.bits() & (fast_.size() - 1)].first;
    if (second.packed != 0 && first.bits() + second.begin() <= kFastBits)
      fast_[i].second.packed = second.packed + static_cast<uint32_t>(first.bits()) * 0x101;
  }
}

template <bool kAc>
typename HuffmanTable<kAc>::Entry HuffmanTable<kAc>::find_long(uint64_t stream) const {
  HuffmanSymbol found = pack(1, 0, 0, HuffmanSymbol::kInvalid);
  for (int length = kFastBits + 1; length <= 16; ++length) {
    const int word = static_cast<int>(stream >> (64 - length));
    const auto l = static_cast<size_t>(length);
    if (word >= end_[l]) continue;
    found = symbol(symbols_[static_cast<size_t>(index_[l] + word)], length);
    break;
  }
  if constexpr (kAc)
    return {found, nothing(found)};
  else
    return found;
}

template class HuffmanTable<false>;
template class HuffmanTable<true>;

}  // namespace dtrain::data
