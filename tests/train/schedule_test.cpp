// The rates of a schedule against values worked out by hand from the rules.
#include "libdtrain/train/schedule.h"

#include <cmath>

#include "libdtrain/core/error.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

std::string error_of(const std::string& text) {
  try {
    Schedule::parse_piecewise(text, 10);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Schedule, ConstantWithWarmup) {
  Schedule schedule{.base = 0.4, .warmup_epochs = 2, .steps_per_epoch = 5.5};  // 11 steps
  EXPECT_EQ(schedule.at(0), 0);
  EXPECT_DOUBLE_EQ(schedule.at(1), 0.4 / 11);
  EXPECT_DOUBLE_EQ(schedule.at(10), 0.4 * 10 / 11);
  EXPECT_EQ(schedule.at(11), 0.4);
  EXPECT_EQ(schedule.at(1000000), 0.4);
  EXPECT_EQ(schedule.describe(), "0.4, linear warm-up over 2 epochs");
}

TEST(Schedule, WarmupFromARate) {
  Schedule schedule = Schedule::piecewise(0.02, {10, 20}, {0.002, 0.0002}, 1);
  schedule.warmup_epochs = 4;
  schedule.warmup_start = 0.004;
  EXPECT_EQ(schedule.at(0), 0.004);
  EXPECT_DOUBLE_EQ(schedule.at(1), 0.008);
  EXPECT_DOUBLE_EQ(schedule.at(3), 0.016);
  EXPECT_EQ(schedule.at(4), 0.02);
  EXPECT_EQ(schedule.at(10), 0.002);
  EXPECT_EQ(schedule.describe(), "0.02, linear warm-up over 4 steps from 0.004, x0.1 at steps 10, 20");

  schedule.warmup_start = 0.05;  // down to the rate, which is as good
  EXPECT_DOUBLE_EQ(schedule.at(2), 0.035);
  schedule.warmup_start = -1;
  EXPECT_THROW(schedule.validate(), Error);
}

TEST(Schedule, Piecewise) {
  const Schedule schedule = Schedule::parse_piecewise("0.3;10;0.03;20.05;0.001", 10);
  EXPECT_EQ(schedule.at(0), 0.3);
  EXPECT_EQ(schedule.at(99), 0.3);
  EXPECT_EQ(schedule.at(100), 0.03);
  EXPECT_EQ(schedule.at(199), 0.03);
  EXPECT_EQ(schedule.at(200), 0.001);  // 200.5 steps, truncated
  EXPECT_EQ(schedule.at(123456), 0.001);
  EXPECT_EQ(schedule.describe(), "0.3, 0.03 from epoch 10, 0.001 from epoch 20.05");
}

TEST(Schedule, WarmupInFrontOfPiecewise) {
  // ResNet-50 at 2048 images a step: 0.128 * 2048 / 256, 625.57 steps per epoch.
  const double steps_per_epoch = 1281167.0 / 2048;
  Schedule schedule =
      Schedule::piecewise(1.024, {30, 60, 80, 90}, {0.1024, 0.01024, 0.001024, 0.0001024}, steps_per_epoch);
  schedule.warmup_epochs = 5;
  EXPECT_DOUBLE_EQ(schedule.at(1000), 1.024 * 1000 / 3127);
  EXPECT_EQ(schedule.at(3127), 1.024);
  EXPECT_EQ(schedule.at(18766), 1.024);
  EXPECT_EQ(schedule.at(18767), 0.1024);
  EXPECT_EQ(schedule.at(56301), 0.0001024);
  EXPECT_EQ(schedule.describe(), "1.024, linear warm-up over 5 epochs, x0.1 at epochs 30, 60, 80, 90");
}

TEST(Schedule, ExponentialIsAStaircaseWithAFloor) {
  Schedule schedule;
  schedule.decay = Schedule::Decay::exponential;
  schedule.base = 0.5;
  schedule.factor = 0.25;
  schedule.decay_epochs = 2;
  schedule.floor = 0.01;
  schedule.steps_per_epoch = 3.25;  // 6 steps
  EXPECT_EQ(schedule.at(5), 0.5);
  EXPECT_EQ(schedule.at(6), 0.125);
  EXPECT_EQ(schedule.at(11), 0.125);
  EXPECT_EQ(schedule.at(12), 0.03125);
  EXPECT_EQ(schedule.at(18), 0.01);
  EXPECT_EQ(schedule.describe(), "0.5, x0.25 every 2 epochs, not below 0.01");
}

TEST(Schedule, PolynomialAndCosineRunFromTheEndOfTheWarmupToTheEnd) {
  Schedule schedule{.decay = Schedule::Decay::polynomial, .base = 5, .warmup_epochs = 1};
  schedule.floor = 1;
  schedule.steps_per_epoch = 20;
  schedule.total_steps = 100;
  EXPECT_DOUBLE_EQ(schedule.at(10), 2.5);
  EXPECT_EQ(schedule.at(20), 5);
  EXPECT_DOUBLE_EQ(schedule.at(40), 1 + 4 * 0.75 * 0.75);
  EXPECT_EQ(schedule.at(100), 1);
  EXPECT_EQ(schedule.at(5000), 1);
  EXPECT_EQ(schedule.describe(), "5, linear warm-up over 1 epochs, polynomial of power 2 to 1 at step 100");

  schedule.decay = Schedule::Decay::cosine;
  EXPECT_EQ(schedule.at(20), 5);
  EXPECT_DOUBLE_EQ(schedule.at(40), 1 + 4 * (1 + std::sqrt(0.5)) / 2);
  EXPECT_DOUBLE_EQ(schedule.at(60), 3);
  EXPECT_EQ(schedule.at(100), 1);
  EXPECT_EQ(schedule.describe(), "5, linear warm-up over 1 epochs, cosine to 1 at step 100");
}

TEST(Schedule, MalformedPiecewiseNamesThePart) {
  EXPECT_EQ(error_of("0.1;x;0.01"),
            "piecewise learning rates '0.1;x;0.01': part 2, 'x', is not a number of epochs; expected "
            "LR0;E1;LR1;...;En;LRn");
  for (const char* number : {"-1", "nan", "inf", "1e300"}) {
    EXPECT_NE(error_of(concat("0.1;5;", number)).find(concat("part 3, '", number, "', is not a learning rate")),
              std::string::npos);
    EXPECT_NE(error_of(concat("0.1;", number, ";1")).find("is not a number of epochs"), std::string::npos);
  }
  EXPECT_NE(error_of("0.1;5;1e400").find("part 3"), std::string::npos);
  EXPECT_NE(error_of("0.1;5;").find("part 3, ''"), std::string::npos);
  EXPECT_NE(error_of("0.1;5").find("2 parts"), std::string::npos);
  EXPECT_NE(error_of("0.1").find("1 parts"), std::string::npos);
  EXPECT_NE(error_of("0.1;5;0.01;5;0.001").find("part 4, epoch 5, does not come after epoch 5"), std::string::npos);
}

TEST(Schedule, RefusesWhatMakesNoSchedule) {
  Schedule schedule;
  schedule.decay = Schedule::Decay::cosine;
  schedule.warmup_epochs = 10;
  schedule.total_steps = 10;
  EXPECT_THROW(schedule.validate(), Error);
  schedule.total_steps = 11;
  EXPECT_NO_THROW(schedule.validate());
  EXPECT_THROW(Schedule::piecewise(1, {1, 2}, {0.1}, 1), Error);
  EXPECT_THROW(Schedule::piecewise(1, {2, 1}, {0.1, 0.01}, 1), Error);
}

}  // namespace
}  // namespace dtrain
