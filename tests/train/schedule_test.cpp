// Schedules against values computed by hand.
#include "dtrain/train/schedule.h"

#include <cmath>

#include "dtrain/core/error.h"
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

  schedule.warmup_start = 0.05;  // warm-up downwards is valid
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

constexpr uint64_t kSteps[] = {0, 1, 7, 49, 99, 101, 150, 250, 299, 350, 699, 701, 1000, 5000};

// The same, compared with TensorFlow 1.15's learning_rate_decay_v2.py for kSteps.
void expect_rates(Schedule schedule, const std::vector<double>& expected) {
  schedule.base = 0.8;
  schedule.validate();
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(schedule.at(kSteps[i]), expected[i], 1e-12) << schedule.describe() << ", step " << kSteps[i];
  // After a warm-up the schedule is shifted by its steps.
  schedule.warmup_epochs = 50;
  schedule.total_steps += 50;
  if (schedule.decay == Schedule::Decay::exponential) return;  // counts from step 0, as in tf_cnn_benchmarks
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(schedule.at(kSteps[i] + 50), expected[i], 1e-12);
}

TEST(Schedule, CosineRestartsAsInTensorFlow) {
  Schedule schedule{.decay = Schedule::Decay::cosine_restarts, .decay_epochs = 100};
  schedule.floor = 0.08;
  schedule.m_mul = 0.5;
  expect_rates(schedule,
               {0.8, 0.799822361731663, 0.791330034297949, 0.451307873268126, 0.0801776382683366, 0.439977793846699,
                0.387279220613579, 0.132720779386421, 0.0800222061533011, 0.253149157926016, 0.0800027758119689,
                0.169999653022166, 0.142220754456429, 0.0879842973808873});
  EXPECT_EQ(schedule.describe(), "0.1, cosine to 0.08 in 100 steps, then again, x2 as long and from x0.5 the rate");
  schedule.floor = 0;
  schedule.t_mul = 1;
  schedule.m_mul = 0.9;
  expect_rates(schedule, {0.8, 0.799802624146293, 0.790366704775499, 0.412564303631251, 0.00019737585370736,
                          0.719822361731663, 0.36, 0.324, 0.000159874441502962, 0.2916, 0.000104893621070093,
                          0.382543115741037, 0.27894275208, 0.0041230201658561});
  schedule.t_mul = 1.5;
  schedule.m_mul = 0.1;
  expect_rates(schedule, {0.8, 0.799802624146293, 0.790366704775499, 0.412564303631251, 0.00019737585370736,
                          0.0799912273389938, 0.06, 0.008, 0.00709977795481672, 0.00469459271066772,
                          0.000203233150248132, 0.000196784178973289, 5.58431906415663e-05, 7.983457646532e-09});
}

TEST(Schedule, LinearCosineAsInTensorFlow) {
  Schedule schedule{.decay = Schedule::Decay::linear_cosine, .total_steps = 1000};
  schedule.periods = 0.47;
  schedule.beta = 1e-5;
  expect_rates(schedule, {0.800008, 0.799206257588933, 0.794323137599681, 0.756832422721544, 0.705515268158377,
                          0.703331092951651, 0.647192887907232, 0.521897328493583, 0.458421225093969, 0.39306118002973,
                          0.0633818133000582, 0.0623395935617796, 8e-06, 8e-06});
  EXPECT_EQ(schedule.describe(), "0.1, linear cosine of 0.47 periods to x1e-05 at step 1000");
  schedule.periods = 2;
  schedule.alpha = 0.25;
  schedule.beta = 0.01;
  expect_rates(schedule, {1.008, 1.00716055368423, 1.00047763046599, 0.880569376044535, 0.616162437955239,
                          0.604120310892805, 0.312032522475023, 0.008, 0.0778645490271832, 0.256753882025019,
                          0.051734636534459, 0.0483319005425066, 0.208, 0.208});
}

TEST(Schedule, PolynomialCyclesAsInTensorFlow) {
  Schedule schedule{.decay = Schedule::Decay::polynomial_cycle, .decay_epochs = 100};
  schedule.floor = 0.05;
  expect_rates(schedule, {0.8, 0.785075, 0.698675, 0.245075, 0.050075, 0.23376875, 0.096875, 0.0708333333333333,
                          0.0500083333333333, 0.06171875, 0.0500015306122449, 0.061485546875, 0.05, 0.05});
  EXPECT_EQ(schedule.describe(), "0.1, polynomial of power 2 to 0.05 in cycles of 100 steps");
}

TEST(Schedule, ExponentialAsInTensorFlow) {
  Schedule schedule{.decay = Schedule::Decay::exponential, .factor = 0.5, .decay_epochs = 100};
  expect_rates(schedule,
               {0.8, 0.8, 0.8, 0.8, 0.8, 0.4, 0.4, 0.2, 0.2, 0.1, 0.0125, 0.00625, 0.00078125, 7.105427357601e-16});
  schedule.staircase = false;
  expect_rates(schedule, {0.8, 0.794473996349629, 0.76211039843515, 0.569620078238829, 0.402782220022688,
                          0.397236998174814, 0.282842712474619, 0.14142135623731, 0.100695555005672, 0.0707106781186548,
                          0.00629347218785449, 0.00620682809648148, 0.00078125, 7.105427357601e-16});
  EXPECT_EQ(schedule.describe(), "0.1, x0.5 evenly over 100 steps");
}

TEST(Schedule, ListsOfRatesAndEpochs) {
  const Schedule schedule = Schedule::parse_lists("30,60.5", "0.4,0.04,0.004", 10);
  EXPECT_EQ(schedule.at(299), 0.4);
  EXPECT_EQ(schedule.at(300), 0.04);
  EXPECT_EQ(schedule.at(605), 0.004);
  const Schedule of_each_epoch = Schedule::parse_lists("", "0.1,0.3,0.2", 10);
  EXPECT_EQ(of_each_epoch.at(9), 0.1);
  EXPECT_EQ(of_each_epoch.at(10), 0.3);
  EXPECT_EQ(of_each_epoch.at(20), 0.2);
  EXPECT_EQ(of_each_epoch.at(1000), 0.2);
  EXPECT_EQ(Schedule::parse_lists("", "0.1", 10).at(1000), 0.1);
  const auto refused = [](const std::string& epochs, const std::string& rates, const std::string& reason) {
    expect_error([&] { Schedule::parse_lists(epochs, rates, 10); }, Fault::config, reason);
  };
  refused("30,60", "0.4,0.04", "2 rates for 2 epochs '30,60'; expected one rate more than epochs");
  refused("30,,60", "1,2,3,4", "list of epochs '30,,60': part 2, '', is not a number of epochs; expected E1,E2,...,En");
  refused("60,30", "1,2,3", "the epochs must increase");
  refused("", "1,x", "list of learning rates '1,x': part 2, 'x', is not a learning rate");
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
  const auto refused = [](const Schedule& wrong) { EXPECT_THROW(wrong.validate(), Error) << wrong.describe(); };
  refused({.decay = Schedule::Decay::cosine_restarts, .t_mul = 0.5});
  refused({.decay = Schedule::Decay::cosine_restarts, .decay_epochs = 0});
  refused({.decay = Schedule::Decay::polynomial_cycle, .power = NAN});
  refused({.decay = Schedule::Decay::linear_cosine});
  refused({.decay = Schedule::Decay::linear_cosine, .beta = -1, .total_steps = 9});
  EXPECT_THROW(Schedule::piecewise(1, {2, 1}, {0.1, 0.01}, 1), Error);
}

}  // namespace
}  // namespace dtrain
