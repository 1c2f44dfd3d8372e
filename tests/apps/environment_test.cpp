// What programs take from their environment.
#include <cstdlib>

#include "apps/cli/environment.h"
#include "tests/testing.h"

namespace dtrain::cli {
namespace {

// A variable of this process, for a while.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(Environment, IsThatOfTheProcess) {
  const Variable variable("DTRAIN_JOB_ID", "of a test");
  EXPECT_STREQ(environment()("DTRAIN_JOB_ID"), "of a test");
  EXPECT_EQ(environment()("DTRAIN_NO_SUCH_VARIABLE"), nullptr);
}

TEST(Environment, AsksAGpuToBeSlowAndPlain) {
  EXPECT_FALSE(with_environment().sync_each_launch);
  EXPECT_TRUE(with_environment().pool);
  {
    const Variable sync("DTRAIN_SYNC", "1"), pool("DTRAIN_POOL", "0");
    EXPECT_TRUE(with_environment().sync_each_launch);
    EXPECT_FALSE(with_environment().pool);
    EXPECT_EQ(with_environment({.device = 3}).device, 3);
  }
  const Variable sync("DTRAIN_SYNC", "0"), pool("DTRAIN_POOL", "1");
  EXPECT_FALSE(with_environment().sync_each_launch);
  EXPECT_TRUE(with_environment().pool);
}

}  // namespace
}  // namespace dtrain::cli
