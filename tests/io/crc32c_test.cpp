// CRC-32C: published values, and both implementations against the definition.
#include "libdtrain/io/crc32c.h"

#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/testing.h"

namespace dtrain {
namespace {

// Bitwise definition.
uint32_t by_definition(const uint8_t* data, size_t size) {
  uint32_t crc = 0xffffffff;
  for (size_t i = 0; i < size; ++i) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0);
  }
  return ~crc;
}

std::vector<uint8_t> random_bytes(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

// RFC 3720, B.4, and the check value of the CRC catalogue.
TEST(Crc32c, KnownAnswers) {
  std::vector<uint8_t> ascending(32), descending(32);
  std::iota(ascending.begin(), ascending.end(), uint8_t{0});
  std::iota(descending.rbegin(), descending.rend(), uint8_t{0});
  for (auto crc : {crc32c_portable, crc32c}) {
    EXPECT_EQ(crc("", 0, 0), 0u);
    EXPECT_EQ(crc("123456789", 9, 0), 0xe3069283u);
    EXPECT_EQ(crc(std::string(32, '\0').data(), 32, 0), 0x8a9136aau);
    EXPECT_EQ(crc(std::string(32, '\xff').data(), 32, 0), 0x62a8ab43u);
    EXPECT_EQ(crc(ascending.data(), 32, 0), 0x46dd794eu);
    EXPECT_EQ(crc(descending.data(), 32, 0), 0x113fdb5cu);
  }
  EXPECT_EQ(mask_crc32c(0xe3069283u), 0xc78ab0e5u);
}

// Lengths around every block size, at every alignment.
TEST(Crc32c, ImplementationsAgreeWithTheDefinition) {
  const auto bytes = random_bytes(40000, 1);
  std::mt19937 random(2);
  std::vector<size_t> sizes = {767, 768, 769, 775, 776, 1536, 12287, 12288, 12289, 13056, 24576, 36863};
  for (size_t size = 0; size < 80; ++size) sizes.push_back(size);
  for (int i = 0; i < 40; ++i) sizes.push_back(random() % 30000);
  for (size_t size : sizes) {
    const size_t shift = random() % 64;
    const uint32_t expected = by_definition(bytes.data() + shift, size);
    ASSERT_EQ(crc32c(bytes.data() + shift, size), expected) << size << " bytes, shifted by " << shift;
    ASSERT_EQ(crc32c_portable(bytes.data() + shift, size), expected) << size << " bytes, shifted by " << shift;
  }
}

TEST(Crc32c, ContinuesFromEarlierBytes) {
  const auto bytes = random_bytes(30000, 3);
  const uint32_t whole = crc32c(bytes.data(), bytes.size());
  for (size_t cut : {0, 1, 7, 8, 300, 768, 12288, 12295, 29999, 30000}) {
    const uint32_t head = crc32c(bytes.data(), cut);
    EXPECT_EQ(crc32c(bytes.data() + cut, bytes.size() - cut, head), whole) << "cut at " << cut;
    EXPECT_EQ(crc32c_portable(bytes.data() + cut, bytes.size() - cut, head), whole) << "cut at " << cut;
  }
}

}  // namespace
}  // namespace dtrain
