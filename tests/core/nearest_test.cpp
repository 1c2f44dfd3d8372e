#include "libdtrain/core/nearest.h"

#include "tests/testing.h"

namespace dtrain {
namespace {

TEST(Nearest, CountsEditsAndSwaps) {
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("ab", "ba"), 1);
  EXPECT_EQ(nearest("resnet5", {"vgg16", "resnet50", "resnet56"}), "resnet50");
  EXPECT_EQ(nearest("q", {"resnet50"}), std::nullopt);
}

}  // namespace
}  // namespace dtrain
