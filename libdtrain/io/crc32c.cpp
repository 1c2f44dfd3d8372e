// Hardware version: three independent streams, since the CRC instruction has a latency of three cycles and a throughput
// of one per cycle; combined by carry-less multiplication (V. Gopal et al., "Fast CRC computation for iSCSI polynomial
// using CRC32 instruction", Intel 2011). Portable version: slicing-by-8.
#include "libdtrain/io/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace dtrain {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // bit i is the coefficient of x^(31 - i)

constexpr uint32_t times_x(uint32_t p) { return (p >> 1) ^ ((p & 1) ? kPolynomial : 0); }

// Entry [k][b]: CRC of byte b followed by k zero bytes.
constexpr std::array<std::array<uint32_t, 256>, 8> make_tables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = times_x(crc);
    tables[0][b] = crc;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t b = 0; b < 256; ++b) tables[k][b] = (tables[k - 1][b] >> 8) ^ tables[0][tables[k - 1][b] & 0xff];
  return tables;
}
constexpr auto kTables = make_tables();

uint64_t load_u64(const uint8_t* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

#if defined(__x86_64__)

// x^n modulo the polynomial.
constexpr uint32_t power_of_x(uint64_t n) {
  uint32_t p = 0x80000000;
  for (uint64_t i = 0; i < n; ++i) p = times_x(p);
  return p;
}

// Factor that advances a CRC over `bytes` zero bytes: the product of two 32-bit reflected polynomials lacks a factor x,
// and reduction by the CRC instruction multiplies by x^32.
constexpr uint32_t shift_factor(uint64_t bytes) { return power_of_x(8 * bytes - 33); }

__attribute__((target("sse4.2,pclmul"))) inline __m128i product(uint64_t crc, uint32_t factor) {
  return _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<int64_t>(crc)), _mm_cvtsi32_si128(static_cast<int>(factor)),
                              0);
}

// Processes blocks of three times kStream bytes.
template <size_t kStream>
__attribute__((target("sse4.2,pclmul"))) inline uint64_t three_streams(const uint8_t*& at, size_t& size, uint64_t crc) {
  constexpr uint32_t kByOne = shift_factor(kStream), kByTwo = shift_factor(2 * kStream);
  while (size >= 3 * kStream) {
    uint64_t a = crc, b = 0, c = 0;
    for (size_t i = 0; i < kStream; i += 8) {
      a = _mm_crc32_u64(a, load_u64(at + i));
      b = _mm_crc32_u64(b, load_u64(at + kStream + i));
      c = _mm_crc32_u64(c, load_u64(at + 2 * kStream + i));
    }
    const __m128i joined = _mm_xor_si128(product(a, kByTwo), product(b, kByOne));
    crc = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(joined))) ^ c;
    at += 3 * kStream;
    size -= 3 * kStream;
  }
  return crc;
}

__attribute__((target("sse4.2,pclmul"))) uint32_t crc32c_hardware(const void* data, size_t size, uint32_t seed) {
  auto at = static_cast<const uint8_t*>(data);
  uint64_t crc = ~seed;
  crc = three_streams<4096>(at, size, crc);
  crc = three_streams<256>(at, size, crc);
  for (; size >= 8; at += 8, size -= 8) crc = _mm_crc32_u64(crc, load_u64(at));
  auto low = static_cast<uint32_t>(crc);
  for (; size > 0; ++at, --size) low = _mm_crc32_u8(low, *at);
  return ~low;
}

#endif

auto fastest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul")) return crc32c_hardware;
#endif
  return crc32c_portable;
}

}  // namespace

uint32_t crc32c_portable(const void* data, size_t size, uint32_t seed) {
  auto at = static_cast<const uint8_t*>(data);
  uint32_t crc = ~seed;
  for (; size >= 8; at += 8, size -= 8) {
    const uint64_t word = load_u64(at) ^ crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; size > 0; ++at, --size) crc = (crc >> 8) ^ kTables[0][(crc ^ *at) & 0xff];
  return ~crc;
}

uint32_t crc32c(const void* data, size_t size, uint32_t crc) {
  static const auto arm = fastest();
  return arm(data, size, crc);
}

}  // namespace dtrain
