// The header that has everything.
#include "libdtrain/dtrain.h"

#include "tests/testing.h"

namespace dtrain {
namespace {

TEST(Version, TheTextIsThatOfTheNumbers) {
  EXPECT_EQ(concat(DTRAIN_VERSION_MAJOR, '.', DTRAIN_VERSION_MINOR, '.', DTRAIN_VERSION_PATCH), DTRAIN_VERSION);
}

}  // namespace
}  // namespace dtrain
