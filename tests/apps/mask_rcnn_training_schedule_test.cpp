// Learning-rate schedules from a detector's settings, and weight decay.
#include "apps/mask_rcnn/config_keys.h"
#include "apps/mask_rcnn/training_job.h"
#include "apps/mask_rcnn/training_schedule.h"
#include "dtrain/core/error.h"
#include "tests/testing.h"

namespace dtrain::mask_rcnn {
namespace {

Settings preset_with(const std::string& preset, const std::vector<std::string>& assignments) {
  Settings settings = preset_settings(preset);
  for (const std::string& assignment : assignments) apply(settings, assignment);
  return settings;
}

// Result of a step at learning rate 0.5 on a bias of 2 with zero gradient.
float bias_after_a_step(const Settings& settings) {
  const auto context = make_cpu_context();
  ParameterStore store(*context);
  const Parameter& bias = store.add("bias", {1}, Init::constant(2), {.decay = false});
  store.allocate(0);
  Optimizer optimizer(store, optimizer_options(settings.rate));
  context->set_scalars({.learning_rate = 0.5f});
  optimizer.step();
  return *bias.value.data<float>();
}

TEST(MaskRcnnSettings, BiasesDecayAsInTheProgramsOfThePresets) {
  EXPECT_FLOAT_EQ(bias_after_a_step(preset_settings("torchvision")), 2 - 0.5f * 1e-4f * 2);
  EXPECT_EQ(bias_after_a_step(preset_with("torchvision", {"TRAIN.DECAY_BIASES=False"})), 2);
  for (const char* preset : {"tensorpack", "tensorpack2019", "aws"}) {
    EXPECT_EQ(bias_after_a_step(preset_settings(preset)), 2) << preset;
    EXPECT_FLOAT_EQ(bias_after_a_step(preset_with(preset, {"TRAIN.DECAY_BIASES=True", "TRAIN.WEIGHT_DECAY=0.25"})),
                    1.75f)
        << preset;
  }
}

TEST(MaskRcnnTrainingSchedule, TensorPack) {
  // 32 devices: base_lr * 32 / 8, a quarter of the steps at 8, unchanged warm-up.
  const TrainingSchedule schedule(preset_settings("tensorpack"), 32);
  EXPECT_EQ(schedule.steps(), 45'000u);
  EXPECT_EQ(schedule.learning_rate().at(0), 1e-5);
  EXPECT_DOUBLE_EQ(schedule.learning_rate().at(500), 1e-5 + (0.04 - 1e-5) / 2);
  EXPECT_EQ(schedule.learning_rate().at(1000), 0.04);
  EXPECT_EQ(schedule.learning_rate().at(29'999), 0.04);
  EXPECT_DOUBLE_EQ(schedule.learning_rate().at(30'000), 0.004);
  EXPECT_DOUBLE_EQ(schedule.learning_rate().at(40'000), 0.0004);
  EXPECT_EQ(schedule.learning_rate().describe(),
            "0.04, linear warm-up over 1000 steps from 1e-05, x0.1 at steps 30000, 40000");
  EXPECT_EQ(schedule.lines(),
            (std::vector<std::string>{
                "learning rate: 0.04 for 32 images a step, 0.01 for 8", "warm-up: linear from 1e-05 over 1000 steps",
                "schedule: x0.1 from step 30000 (step 120000), x0.01 from step 40000 (step 160000), end "
                "at step 45000 (step 180000); in brackets at batch 8",
                "epoch: 500 steps"}));
  // One device: an eighth of the learning rate, eight times the steps.
  const TrainingSchedule one(preset_settings("tensorpack"), 1);
  EXPECT_EQ(one.steps(), 1'440'000u);
  EXPECT_EQ(one.learning_rate().describe(),
            "0.00125, linear warm-up over 1000 steps from 1e-05, x0.1 at steps 960000, 1280000");
  EXPECT_EQ(one.learning_rate().at(2000), 0.00125);
  // 120000 * 8 / 7 is not an integer.
  EXPECT_EQ(TrainingSchedule(preset_settings("tensorpack"), 7).learning_rate().boundaries[0], 137'142);
}

TEST(MaskRcnnTrainingSchedule, Aws) {
  // 8 devices with 4 images: 120000 // 32 steps per epoch, 32 times the rate per image.
  const TrainingSchedule schedule(preset_with("aws", {"TRAIN.BASE_LR=0.00125", "TRAIN.WARMUP_INIT_LR=0.000416",
                                                      "TRAIN.LR_EPOCH_SCHEDULE=[(9,0.1),(12,0.01),(13,None)]"}),
                                  32);
  EXPECT_EQ(schedule.steps(), 13u * 3750);
  EXPECT_DOUBLE_EQ(schedule.learning_rate().at(0), 8 * 0.000416);
  EXPECT_DOUBLE_EQ(schedule.learning_rate().at(1000), 0.04);
  EXPECT_DOUBLE_EQ(schedule.learning_rate().at(9 * 3750), 0.004);
  EXPECT_DOUBLE_EQ(schedule.learning_rate().at(12 * 3750), 0.0004);
  EXPECT_EQ(schedule.lines()[2],
            "schedule: x0.1 from step 33750 (epoch 9), x0.01 from step 45000 (epoch 12), end at step 48750 (epoch 13)");
}

TEST(MaskRcnnTrainingSchedule, WithoutDropsAndWarmup) {
  const TrainingSchedule schedule(
      preset_with("tensorpack", {"TRAIN.LR_SCHEDULE=[1000]", "TRAIN.WARMUP=0", "TRAIN.BASE_LR=1e-3"}), 8);
  EXPECT_EQ(schedule.steps(), 1000u);
  EXPECT_EQ(schedule.learning_rate().at(0), 0.001);
  EXPECT_EQ(schedule.learning_rate().at(999), 0.001);
  EXPECT_EQ(schedule.lines()[1], "warm-up: none");
}

TEST(MaskRcnnTrainingSchedule, AnEpochIsAPassOverTheUsersData) {
  Settings own = preset_settings("torchvision");
  own.fit_epoch(40, /*are_coco=*/false, 2);
  EXPECT_EQ(own.epoch_steps(2), 20);
  const TrainingSchedule schedule(own, 2);
  EXPECT_EQ(schedule.steps(), 26u * 20);
  EXPECT_EQ(schedule.lines()[1], "warm-up: linear from 2e-05 over 19 steps")
      << "as torchvision, within the first epoch";
  EXPECT_EQ(schedule.lines()[2],
            "schedule: x0.1 from step 320 (epoch 16), x0.01 from step 440 (epoch 22), end at step 520 (epoch 26)");
  Settings coco = preset_settings("torchvision");
  coco.fit_epoch(117'266, /*are_coco=*/true, 2);
  EXPECT_EQ(coco.epoch_steps(2), 58'633);
  EXPECT_EQ(coco.rate.warmup_steps, 1000);
  Settings few = preset_settings("aws");
  few.fit_epoch(3, false, 16);
  EXPECT_EQ(few.epoch_steps(16), 1) << "a batch is larger than the data";
  for (const char* said : {"TRAIN.IMAGES_PER_EPOCH=600", "TRAIN.STEPS_PER_EPOCH=300"}) {
    Settings settings = preset_with("torchvision", {said, "TRAIN.WARMUP=7"});
    settings.fit_epoch(40, false, 2);
    EXPECT_EQ(settings.epoch_steps(2), 300) << said;
    EXPECT_EQ(settings.rate.warmup_steps, 7);
  }
  Settings fixed = preset_settings("tensorpack");
  fixed.fit_epoch(40, false, 8);
  EXPECT_EQ(TrainingSchedule(fixed, 8).steps(), 180'000u) << "TensorPack's steps are fixed";
}

TEST(MaskRcnnTrainingSchedule, StretchesWithTheLength) {
  Settings own = preset_settings("torchvision");
  own.fit_epoch(40, false, 2);
  EXPECT_EQ(TrainingSchedule(own, 2, 260).lines()[2],
            "schedule: x0.1 from step 160 (epoch 8), x0.01 from step 220 (epoch 11), end at step 260 (epoch 13)");
  const TrainingSchedule steps(preset_settings("tensorpack"), 8, 18'000);
  EXPECT_EQ(steps.learning_rate().describe(),
            "0.01, linear warm-up over 1000 steps from 1e-05, x0.1 at steps 12000, 16000");
  EXPECT_EQ(steps.steps(), 18'000u);
  const TrainingSchedule two(preset_settings("tensorpack"), 8, 2);
  EXPECT_EQ(two.steps(), 2u);
  EXPECT_EQ(two.lines()[1], "warm-up: linear from 1e-05 over 1 steps");
  EXPECT_EQ(two.learning_rate().boundaries, std::vector<double>{1}) << "two drops at one step are the later one";
  EXPECT_EQ(TrainingSchedule(preset_settings("tensorpack"), 8, 1).steps(), 1u);
}

TEST(MaskRcnnTrainingSchedule, FlagsSayHowLongARunIs) {
  Settings own = preset_settings("torchvision");
  own.fit_epoch(40, false, 2);
  const auto schedule = [&](const cli::RunFlags& flags) { return make_schedule(own, flags, 40, 2); };
  cli::RunFlags flags;
  EXPECT_EQ(steps_of(schedule(flags), flags), 520u);
  flags.max_train_steps = 100;
  EXPECT_EQ(steps_of(schedule(flags), flags), 100u) << "without --num_epochs";
  flags.num_epochs = 13;
  EXPECT_EQ(schedule(flags).learning_rate().boundaries, (std::vector<double>{160, 220}))
      << "a limit squeezes no schedule";
  EXPECT_EQ(steps_of(schedule(flags), flags), 100u);
  flags.num_epochs = 0;
  expect_error([&] { schedule(flags); }, Fault::config, "0 epochs of 40 images are 0 images");
  flags = {};
  flags.num_batches = 30;
  EXPECT_EQ(schedule(flags).steps(), 520u);
  EXPECT_EQ(steps_of(schedule(flags), flags), 30u);
  flags.num_batches = 1300;
  EXPECT_EQ(schedule(flags).learning_rate().boundaries, (std::vector<double>{800, 1100}))
      << "longer than the preset's schedule";
  apply(own, "TRAIN.LR_EPOCH_SCHEDULE=[(10,0.1),(26,None)]");
  EXPECT_EQ(schedule(flags).learning_rate().boundaries, (std::vector<double>{200})) << "what is set is kept";
}

TEST(MaskRcnnTrainingSchedule, StretchingKeepsGivenValues) {
  const auto refused = [](const std::vector<std::string>& keys, uint64_t length, const std::string& part) {
    expect_error([&] { TrainingSchedule(preset_with("tensorpack", keys), 8, length); }, Fault::config, part);
  };
  refused({"TRAIN.WARMUP=500"}, 400, "TRAIN.WARMUP=500: the training has 400 steps");
  refused({"TRAIN.WARMUP=500"}, 600, "TRAIN.WARMUP=500: the rate drops after 400 steps");
  EXPECT_EQ(TrainingSchedule(preset_with("tensorpack", {"TRAIN.WARMUP=300"}), 8, 600).lines()[1],
            "warm-up: linear from 1e-05 over 300 steps");
  refused({"TRAIN.LR_SCHEDULE=[5,3,10]"}, 600, "TRAIN.LR_SCHEDULE: step 3 does not come after 5");
  refused({"TRAIN.LR_EPOCH_SCHEDULE=[(0,0.1),(10,None)]"}, 600, "epoch 0 does not come after 0");
}

TEST(MaskRcnnTrainingSchedule, RefusesInvalidSchedules) {
  const auto refused = [](const std::vector<std::string>& keys, int64_t batch, const std::string& part) {
    expect_error([&] { TrainingSchedule(preset_with("tensorpack", keys), batch); }, Fault::config, part);
  };
  refused({"TRAIN.LR_SCHEDULE=[20000,10000,30000]"}, 8, "step 10000 does not come after 20000");
  refused({"TRAIN.LR_SCHEDULE=[20000,20000]"}, 8, "step 20000 does not come after 20000");
  refused({"TRAIN.LR_SCHEDULE=[3]", "TRAIN.WARMUP=0"}, 64, "step 3 is at step 0 at batch 64");
  refused({"TRAIN.LR_SCHEDULE=[80,81,90]", "TRAIN.WARMUP=0"}, 64, "step 81 is at step 10 at batch 64");
  refused({"TRAIN.LR_SCHEDULE=[1000]"}, 8, "the training has 1000 steps at batch 8, expected more than the warm-up");
  refused({"TRAIN.LR_SCHEDULE=[900, 2000]"}, 8, "the rate drops after 900 steps at batch 8, within the warm-up");
  refused({}, 0, "a batch of 0 images");
  refused({"TRAIN.IMAGES_PER_EPOCH=100"}, 128, "expected at least the batch, 128");
  refused({"TRAIN.LR_SCHEDULE=[2000000000]"}, 1, "more than 2000000000");
  Settings settings = preset_settings("tensorpack");
  settings.rate.reference_batch = 0;
  expect_error([&] { TrainingSchedule(settings, 8); }, Fault::config, "LR_REFERENCE_BATCH=0: expected at least 1");
}

}  // namespace
}  // namespace dtrain::mask_rcnn
