// Invariant division against the processor's.
#include "libdtrain/core/divisor.h"

#include "dtrain/core/rng.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr uint32_t kEnd = uint32_t{1} << 31;

void expect_division(uint32_t x, uint32_t d) {
  uint32_t rest = x;
  const uint32_t remainder = Divisor(d).split(rest);
  EXPECT_EQ(rest, x / d) << x << " / " << d;
  EXPECT_EQ(remainder, x % d) << x << " % " << d;
}

TEST(Divisor, AroundMultiplesAndPowersOfTwo) {
  for (int bit = 0; bit < 31; ++bit)
    for (const int64_t off : {-1, 0, 1}) {
      const int64_t d = (int64_t{1} << bit) + off;
      if (d < 1) continue;
      for (const int64_t multiple : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{7}, (kEnd - 1) / d})
        for (const int64_t beside : {-1, 0, 1})
          if (const int64_t x = multiple * d + beside; x >= 0 && x < kEnd)
            expect_division(static_cast<uint32_t>(x), static_cast<uint32_t>(d));
      expect_division(kEnd - 1, static_cast<uint32_t>(d));
    }
}

TEST(Divisor, Drawn) {
  RandomStream random(5, 0);
  for (int i = 0; i < 100000; ++i) {
    const uint32_t x = random.below(kEnd);
    expect_division(x, 1 + random.below(kEnd - 1) % (1u << random.below(32) % 31));
  }
}

TEST(Divisor, RefusesWhatItCannotDivideBy) {
  expect_error([] { Divisor(0); }, Fault::config, "divisor of 0");
  expect_error([] { Divisor(int64_t{1} << 31); }, Fault::config, "2147483648");
}

}  // namespace
}  // namespace dtrain
