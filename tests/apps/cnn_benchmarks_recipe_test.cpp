// Recipes: flags that they set, precedence of the command line, printed and recorded text.
#include <cstdlib>
#include <set>

#include "apps/cli/options/recipe_table.h"
#include "apps/cnn_benchmarks/settings.h"
#include "apps/cnn_benchmarks/training_schedule.h"
#include "tests/testing.h"

namespace dtrain::cnn_benchmarks {
namespace {

// Resolves a command line with a recipe, with and without a GPU.
struct Cooked {
  explicit Cooked(std::vector<std::string> arguments) {
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    values.declare(flags);
    arguments.insert(arguments.begin(), "program");
    flags.parse(arguments);
    lines = values.recipe.apply(flags);
  }
  Settings settings() const { return make_settings(values, flags); }
  // Learning rates of an ImageNet run.
  Schedule schedule() const { return make_schedule(settings(), {1'281'167, 50'000}).learning_rate; }

  Flags values;
  cli::FlagSet flags{"dtrain-cnn-benchmarks", "", ""};
  std::vector<std::string> lines;
};

TEST(Recipe, EachIsAValidCommandLine) {
  for (const cli::Recipe& recipe : cli::recipes()) {
    SCOPED_TRACE(recipe.name);
    const Cooked cooked({"--recipe=" + std::string(recipe.name)});
    EXPECT_NO_THROW(cooked.schedule());
    std::set<std::string> flags;
    for (const cli::Part& part : recipe.parts)
      for (const auto& [flag, value] : part.settings) EXPECT_TRUE(flags.insert(flag).second) << flag << " twice";
    for (const char* flag : {"num_classes", "label_offset", "preprocessing", "batch_norm_epsilon", "batch_norm_decay",
                             "zero_gamma", "conv_initializer", "classifier_initializer", "optimizer", "weight_decay"})
      EXPECT_TRUE(flags.contains(flag)) << flag;
  }
}

TEST(Recipe, WithoutOneNothingChanges) {
  const Cooked cooked({});
  EXPECT_TRUE(cooked.lines.empty());
  EXPECT_EQ(cooked.settings().info.name, "trivial");
  EXPECT_FALSE(cooked.flags.recorded_settings().contains("recipe"));
}

TEST(Recipe, AwsTrainsAsItsScript) {
  const Cooked cooked({"--recipe=aws", "--batch_size=1024", "--num_epochs=90"});
  const Settings settings = cooked.settings();
  EXPECT_EQ(settings.info.name, "resnet50");
  EXPECT_EQ(settings.options.classes, 1000);
  EXPECT_EQ(settings.flags.model.label_offset, -1);
  EXPECT_EQ(settings.pixels().preprocessing, "aws");
  const models::ModelConventions& model = settings.options.conventions;
  EXPECT_EQ(model.stride_in_3x3, true);
  EXPECT_EQ(model.zero_last_gamma, true);
  EXPECT_EQ(model.batch_norm_epsilon, 1e-4f);
  EXPECT_EQ(model.padding, models::PaddingConvention::same);
  EXPECT_EQ(model.classifier, models::ClassifierInit::normal);
  EXPECT_EQ(settings.flags.optimizer.options().update.rule, UpdateRule::nesterov);
  EXPECT_EQ(settings.flags.machine.fp16_loss_scale, 1024);
  const Schedule schedule = cooked.schedule();
  EXPECT_NEAR(schedule.base, 0.4, 1e-12) << "0.1 for 256 images";
  EXPECT_NEAR(schedule.at(0), 0.001, 1e-12);
  EXPECT_NEAR(schedule.at(12511), 0.4, 1e-3) << "after ten epochs";
  EXPECT_NEAR(schedule.at(schedule.total_steps), 1e-5, 1e-9);
  // A short run ends within the warm-up.
  EXPECT_EQ(Cooked({"--recipe=aws", "--num_batches=100"}).schedule().decay, Schedule::Decay::constant);
}

TEST(Recipe, AwsLargeLimitsTheRateOfEachParameter) {
  const Cooked cooked({"--recipe=aws-large", "--batch_size=16384", "--num_epochs=90"});
  const Settings settings = cooked.settings();
  const UpdateOptions update = settings.flags.optimizer.options().update;
  EXPECT_EQ(update.rule, UpdateRule::nesterov);
  EXPECT_EQ(update.larc, Larc::clip);
  EXPECT_TRUE(update.joint_norm);
  EXPECT_EQ(update.trust, 0.013f);
  EXPECT_EQ(update.epsilon, 1);
  EXPECT_EQ(update.momentum, 0.977f);
  EXPECT_TRUE(settings.pixels().distortions);
  const Schedule schedule = cooked.schedule();
  EXPECT_EQ(schedule.base, 3.7);
  EXPECT_EQ(schedule.decay, Schedule::Decay::linear_cosine);
  EXPECT_EQ(schedule.periods, 0.47);
  const Settings other = Cooked({"--recipe=aws-large", "--optimizer=lamb"}).settings();
  EXPECT_EQ(other.flags.optimizer.options().update.larc, Larc::none);
  EXPECT_NO_THROW(Cooked({"--recipe=aws-large", "--preprocessing=torchvision"}).settings());
  EXPECT_NO_THROW(Cooked({"--recipe=aws-large", "--lr_decay_lrs=0.1,0.2"}).schedule());
}

TEST(Recipe, TorchvisionDecaysAllAndStepsDown) {
  const Cooked cooked({"--recipe=torchvision", "--batch_size=512"});
  EXPECT_TRUE(cooked.settings().flags.optimizer.options().decays_all);
  EXPECT_EQ(cooked.settings().flags.optimizer.options().update.rule, UpdateRule::momentum);
  const Schedule schedule = cooked.schedule();
  EXPECT_NEAR(schedule.at(0), 0.2, 1e-12);
  EXPECT_NEAR(schedule.at(31 * 2503), 0.02, 1e-12);
  EXPECT_NEAR(schedule.at(61 * 2503), 0.002, 1e-12);
}

TEST(Recipe, MlperfTakesItsRateFromTheBatch) {
  struct Case {
    const char* batch;
    double peak, warmup;
  };
  for (const auto& [batch, peak, warmup] : {Case{"4096", 5, 5}, {"4097", 10, 5}, {"16384", 25, 5}, {"16385", 33, 25}}) {
    const Schedule schedule = Cooked({"--recipe=mlperf", std::string("--batch_size=") + batch}).schedule();
    EXPECT_EQ(schedule.base, peak) << batch;
    EXPECT_EQ(schedule.warmup_epochs, warmup) << batch;
    EXPECT_EQ(schedule.floor, 1e-4);
  }
  EXPECT_EQ(Cooked({"--recipe=mlperf", "--init_learning_rate=7"}).schedule().base, 7);
  EXPECT_EQ(Cooked({"--recipe=mlperf"}).settings().flags.optimizer.options().update.rule, UpdateRule::lars);
  EXPECT_EQ(Cooked({"--recipe=intel", "--batch_size=512"}).schedule().base, 0.256);
  EXPECT_EQ(Cooked({"--recipe=intel"}).settings().flags.optimizer.options().update.rule, UpdateRule::momentum);
}

TEST(Recipe, TheCommandLineWins) {
  const Cooked cooked({"--weight_decay=5e-5", "--recipe=aws", "--nozero_gamma", "--lr_schedule=cosine"});
  EXPECT_EQ(cooked.values.optimizer.weight_decay, 5e-5);
  EXPECT_FALSE(cooked.values.model.conventions.zero_gamma);
  EXPECT_EQ(cooked.schedule().floor, 1e-5) << "of the cosine, too";
  EXPECT_TRUE(contains(cooked.lines[3], "--weight_decay=5e-05 (given)")) << cooked.lines[3];
}

TEST(Recipe, AnOverriddenScheduleSkipsItsDetails) {
  EXPECT_EQ(Cooked({"--recipe=aws", "--batch_size=1024", "--init_learning_rate=0.7"}).schedule().base, 0.7);
  const Schedule steps = Cooked({"--recipe=aws", "--piecewise_learning_rate_schedule=0.3;5;0.1"}).schedule();
  EXPECT_EQ(steps.at(0), 0.3);
  EXPECT_EQ(Cooked({"--recipe=torchvision", "--init_learning_rate=0.3"}).schedule().at(1'000'000), 0.3);
  EXPECT_EQ(Cooked({"--recipe=aws", "--batch_size=256", "--resnet_base_lr=0.2"}).schedule().base, 0.2);
  EXPECT_EQ(Cooked({"--recipe=aws", "--num_classes=10"}).values.model.label_offset, 0);
}

TEST(Recipe, PrintsTheFlagsThatItSets) {
  const std::vector<std::string> expected = {
      "recipe torchvision, labels: --num_classes=1000 --label_offset=-1",
      "recipe torchvision, images: --preprocessing=torchvision",
      "recipe torchvision, network: --model=resnet101 (given) --bottleneck_stride=3x3 --resnet_padding=symmetric "
      "--batch_norm_epsilon=1e-05 --batch_norm_decay=0.9 --zero_gamma=false --conv_initializer=he_fan_out "
      "--classifier_initializer=uniform",
      "recipe torchvision, update: --optimizer=heavy_ball --momentum=0.9 --weight_decay=0.0001 --weight_decay_on=all "
      "--label_smoothing=0",
      "recipe torchvision, rate: --piecewise_learning_rate_schedule=0.1;30;0.01;60;0.001 --lr_reference_batch=256",
      "recipe torchvision, order of samples: samples are split over the ranks there; here each epoch is one "
      "permutation of all samples, split over the ranks"};
  EXPECT_EQ(Cooked({"--recipe=torchvision", "--model=resnet101"}).lines, expected);
}

TEST(Recipe, IsRecordedAsItsFlagsAre) {
  const Cooked cooked({"--recipe=aws"});
  const std::map<std::string, std::string> identity = cooked.flags.recorded_identity(),
                                           settings = cooked.flags.recorded_settings();
  EXPECT_EQ(settings.at("recipe"), "aws");
  EXPECT_EQ(settings.at("weight decay"), "0.0001");
  EXPECT_EQ(identity.at("model"), "resnet50, stride in 3x3, padding same, batch norm epsilon 0.0001");
  EXPECT_EQ(identity.at("preprocessing"), "aws");
  EXPECT_EQ(identity.at("label offset"), "-1");
}

TEST(Recipe, ConventionsOfResNetsAreRefusedForOthers) {
  EXPECT_THROW(Cooked({"--model=vgg11", "--zero_gamma"}).settings(), Error);
  EXPECT_THROW(Cooked({"--model=vgg11", "--resnet_padding=same"}).settings(), Error);
  EXPECT_NO_THROW(Cooked({"--model=vgg11", "--recipe=aws"}).settings());
}

}  // namespace
}  // namespace dtrain::cnn_benchmarks
