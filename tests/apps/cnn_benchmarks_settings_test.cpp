// Flags to configuration: defaults, refused combinations, numbers of steps, schedules.
#include <cstdlib>

#include "apps/cnn_benchmarks/settings.h"
#include "apps/cnn_benchmarks/training_schedule.h"
#include "tests/testing.h"

namespace dtrain::cnn_benchmarks {
namespace {

struct Parsed {
  Flags values;
  cli::FlagSet flags{"dtrain-cnn-benchmarks", "", ""};
};

// The same with and without a GPU.
Settings settings_of(std::vector<std::string> arguments, const Ranks& ranks = {}) {
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  Parsed parsed;
  parsed.values.declare(parsed.flags);
  arguments.insert(arguments.begin(), "program");
  parsed.flags.parse(arguments);
  parsed.values.settle(parsed.flags);
  return make_settings(parsed.values, parsed.flags, ranks);
}

std::string failure(const std::vector<std::string>& arguments) {
  try {
    settings_of(arguments);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::config);
    return error.what();
  }
  return "";
}

TEST(Settings, DefaultsMatchTfCnnBenchmarks) {
  const Settings settings = settings_of({});
  EXPECT_EQ(settings.mode, RunMode::training);
  EXPECT_EQ(settings.info.name, "trivial");
  EXPECT_EQ(settings.dataset, "imagenet");
  EXPECT_TRUE(settings.synthetic());
  EXPECT_EQ(settings.options.classes, 1001);
  EXPECT_EQ(settings.shape.batch, 32);
  EXPECT_EQ(settings.warmup_steps, 10);
  EXPECT_FALSE(settings.machine.gpu);
  EXPECT_EQ(settings.notices.size(), 2u);  // no GPU code, NHWC
  EXPECT_EQ(settings_of({"--autotune_threshold=2"}).warmup_steps, 20);
  EXPECT_EQ(settings_of({"--num_warmup_batches=0"}).warmup_steps, 0);
  EXPECT_EQ(settings.flags.optimizer.options().update.rule, UpdateRule::sgd);
  EXPECT_EQ(settings_of({"--optimizer=momentum"}).flags.optimizer.options().update.rule, UpdateRule::nesterov);
}

TEST(Settings, RulesThatAdaptRatesAndAverages) {
  const auto options = [](std::vector<std::string> arguments) {
    return settings_of(std::move(arguments)).flags.optimizer.options();
  };
  EXPECT_FALSE(options({}).averages);
  const OptimizerOptions lamb = options({"--optimizer=lamb", "--weight_ema=0.999"});
  EXPECT_EQ(lamb.update.rule, UpdateRule::lamb);
  EXPECT_EQ(lamb.update.epsilon, 1e-6f);
  EXPECT_TRUE(lamb.averages && lamb.update.average_warmup);
  EXPECT_EQ(lamb.update.average_decay, 0.999f);
  const UpdateOptions apex = options({"--optimizer=momentum", "--larc=scale"}).update;
  EXPECT_EQ(apex.rule, UpdateRule::nesterov);
  EXPECT_EQ(apex.larc, Larc::scale);
  EXPECT_EQ(apex.epsilon, 1e-8f);
  EXPECT_EQ(apex.trust, 0.02f);
  const UpdateOptions aws =
      options({"--optimizer=momentum", "--larc=clip", "--larc_joint_norm", "--larc_trust=0.013"}).update;
  EXPECT_EQ(aws.larc, Larc::clip);
  EXPECT_TRUE(aws.joint_norm);
  EXPECT_EQ(aws.epsilon, 1);
  EXPECT_EQ(aws.trust, 0.013f);
}

TEST(Settings, AnyModelTrainsOnAnyDataSet) {
  EXPECT_EQ(settings_of({"--model=resnet20", "--data_name=imagenet"}).options.classes, 1001);
  const Settings settings = settings_of({"--model=resnet50", "--data_dir=/data/cifar10", "--image_size=64"});
  EXPECT_EQ(settings.dataset, "cifar10");
  EXPECT_EQ(settings.options.classes, 11);
  EXPECT_EQ(settings.options.image_size, 64);
  EXPECT_EQ(settings_of({"--model=resnet50", "--num_classes=7"}).options.classes, 7);
}

TEST(Settings, UnknownModelsNameTheNearest) {
  EXPECT_TRUE(contains(failure({"--model=resnet5O"}), "--model=resnet5O: unknown, did you mean resnet50?"))
      << failure({"--model=resnet5O"});
}

TEST(Settings, ModelsForOtherThanImagesAreRefusedWithTheReason) {
  EXPECT_TRUE(
      contains(failure({"--model=deepspeech2"}), "--model=deepspeech2: not an image classifier: it recognises speech"))
      << failure({"--model=deepspeech2"});
  EXPECT_TRUE(contains(failure({"--model=ncf"}), "it recommends films"));
}

TEST(Settings, AuxiliaryHead) {
  EXPECT_FALSE(settings_of({"--model=inception3"}).options.auxiliary_head);
  EXPECT_TRUE(settings_of({"--model=inception3", "--auxiliary_head"}).options.auxiliary_head);
  EXPECT_TRUE(
      contains(failure({"--model=googlenet", "--auxiliary_head"}), "--auxiliary_head: for inception3 and NASNet only"));
}

TEST(Settings, RefusedCombinations) {
  const std::vector<std::pair<std::vector<std::string>, const char*>> cases = {
      {{"--variable_update=horovod", "--num_gpus=2"}, "--num_gpus=1"},
      {{"--variable_update=horovod", "--job_name=worker"}, "--job_name"},
      {{"--num_batches=5", "--num_epochs=1"}, "--num_epochs"},
      {{"--num_eval_batches=5", "--num_eval_epochs=1"}, "--num_eval_epochs"},
      {{"--train_dir=x", "--save_model_secs=5", "--save_model_steps=5"}, "--save_model_steps"},
      {{"--train_dir=x", "--save_model_epochs=5", "--save_model_steps=5"}, "--save_model_epochs"},
      {{"--clear_train_dir"}, "--clear_train_dir needs --train_dir"},
      {{"--clear_train_dir", "--train_dir=x", "--resume=never"}, "excludes --resume"},
      {{"--clear_train_dir", "--train_dir=x", "--eval"}, "no checkpoint would be left to evaluate"},
      {{"--eval_nth_checkpoints=2"}, "--eval_nth_checkpoints needs --eval"},
      {{"--eval_nth_checkpoints=2", "--eval", "--train_dir=x", "--eval_interval_secs=5"}, "--eval_interval_secs"},
      {{"--eval_during_training_every_n_steps=5", "--eval_during_training_every_n_epochs=1"}, "four forms"},
      {{"--eval_during_training_at_specified_steps=5", "--eval_during_training_at_specified_epochs=1"}, "four forms"},
      {{"--eval", "--train_dir=x", "--eval_during_training_every_n_steps=5"}, "--eval and"},
      {{"--eval", "--train_dir=x", "--forward_only"}, "--forward_only and --eval"},
      {{"--eval"}, "--train_dir"},
      {{"--eval", "--train_dir=x", "--weights=x"}, "not both"},
      {{"--forward_only", "--eval_during_training_every_n_steps=5"}, "--forward_only and"},
      {{"--stop_at_top_1_accuracy=0.5"}, "--stop_at_top_1_accuracy needs"},
      {{"--num_epochs_per_decay=2", "--learning_rate_decay_factor=0.5"}, "--init_learning_rate"},
      {{"--init_learning_rate=1", "--num_epochs_per_decay=2"}, "--learning_rate_decay_factor"},
      {{"--init_learning_rate=1", "--minimum_learning_rate=0.1"}, "--minimum_learning_rate needs"},
      {{"--piecewise_learning_rate_schedule=1;2;3", "--init_learning_rate=1"}, "--piecewise"},
      {{"--piecewise_learning_rate_schedule=1;2;3", "--minimum_learning_rate=1"}, "--piecewise"},
      {{"--piecewise_learning_rate_schedule=1;2;3", "--resnet_base_lr=1"}, "--piecewise"},
      {{"--num_learning_rate_warmup_epochs=5"}, "--num_learning_rate_warmup_epochs needs"},
      {{"--use_fp16", "--fp16_vars", "--gradient_repacking=8"}, "--fp16_vars=true is not supported"},
      {{"--use_fp16", "--fp16_vars", "--all_reduce_spec=nccl", "--variable_update=replicated"},
       "--fp16_vars=true is not supported"},
      {{"--fp16_enable_auto_loss_scale", "--staged_vars"}, "--staged_vars"},
      {{"--hierarchical_copy"}, "more than one GPU"},
      {{"--trt_mode=FP16"}, "--trt_mode=FP16 is not supported"},
      {{"--trt_mode=FP16", "--forward_only"}, "--trt_mode=FP16 is not supported"},
      {{"--preprocessing=torchvision", "--distortions"}, "--preprocessing=tf_cnn"},
      {{"--input_preprocessor=official_models_imagenet", "--ml_perf"}, "--preprocessing=tf_cnn"},
      {{"--input_preprocessor=official_models_imagenet", "--preprocessing=tf_cnn"}, "contradict each other"},
      {{"--num_classes=1"}, "two classes"},
      {{"--lr_schedule=cosine"}, "--lr_schedule needs"},
      {{"--gradient_clip=1", "--gradient_clip_norm=1"}, "--gradient_clip and --gradient_clip_norm"},
      {{"--gradient_clip=1", "--optimizer=lars"}, "--gradient_clip and --optimizer=lars"},
      {{"--larc=clip", "--optimizer=adam"}, "--larc needs --optimizer=sgd, momentum or heavy_ball"},
      {{"--larc=clip", "--gradient_clip=1"}, "--gradient_clip and --larc"},
      {{"--larc_trust=1"}, "need --larc=clip or scale"},
      {{"--lamb_epsilon=1"}, "--lamb_epsilon needs"},
      {{"--weight_ema_warmup"}, "--weight_ema_warmup needs"},
      {{"--lr_decay_epochs=1"}, "--lr_decay_epochs needs"},
      {{"--lr_decay_lrs=1", "--init_learning_rate=1"}, "--lr_decay_lrs and another flag"},
      {{"--lr_decay_lrs=1", "--resnet_base_lr=1", "--model=resnet50"}, "--resnet_base_lr and --lr_decay_lrs"},
      {{"--lr_staircase=false"}, "--lr_staircase needs"},
      {{"--init_learning_rate=1", "--lr_schedule=poly_cycle"}, "need --lr_cycle_epochs"},
      {{"--init_learning_rate=1", "--lr_schedule=cosine", "--lr_cycle_epochs=1"}, "--lr_cycle_epochs needs"},
      {{"--init_learning_rate=1", "--lr_schedule=cosine", "--lr_power=1"}, "--lr_power needs"},
      {{"--init_learning_rate=1", "--lr_schedule=poly_cycle", "--lr_cycle_epochs=1", "--lr_t_mul=2"}, "--lr_t_mul and"},
      {{"--init_learning_rate=1", "--lr_schedule=linear_cosine", "--end_learning_rate=0"}, "--end_learning_rate needs"},
      {{"--lr_alpha=1"}, "--lr_alpha and --lr_beta need"},
      {{"--use_fp16", "--precision=bf16"}, "contradict each other"},
  };
  for (auto [arguments, part] : cases) {
    EXPECT_TRUE(contains(failure(arguments), part)) << testing::PrintToString(arguments) << ": " << failure(arguments);
    // The alternative flag for fp16.
    if (arguments[0] != "--use_fp16" || arguments[1].starts_with("--precision")) continue;
    arguments[0] = "--precision=fp16";
    EXPECT_TRUE(contains(failure(arguments), part)) << testing::PrintToString(arguments) << ": " << failure(arguments);
  }
}

TEST(Settings, UnsupportedFlagsAreErrors) {
  for (const char* flag : {"--fp16_vars", "--debugger=cli", "--precision=fp16", "--use_fp16"})
    EXPECT_TRUE(contains(failure({flag}), "not supported")) << flag << ": " << failure({flag});
  EXPECT_TRUE(contains(failure({"--data_name=librispeech"}), "--data_name=librispeech: unknown; expected imagenet"));
  EXPECT_TRUE(contains(failure({"--data_name=coco"}), "ssd300 needs detection data (coco)"));
  EXPECT_TRUE(contains(failure({"--device=gpu"}), "--device=gpu: no GPU 0: "));
  EXPECT_TRUE(contains(failure({"--device=gpu", "--gpu_indices=1"}), "no GPU 1: "));
  EXPECT_TRUE(contains(failure({"--device=gpu", "--gpu_indices=2,1"}), "no GPU 2: "));
  EXPECT_TRUE(contains(failure({"--gpu_indices=0,x"}), "expected numbers of GPUs"));
  EXPECT_TRUE(contains(failure({"--tf32"}), "on a GPU"));
  EXPECT_TRUE(contains(failure({"--jpeg_decoder=gpu"}), "--jpeg_decoder=gpu needs --device=gpu"));
  EXPECT_TRUE(contains(failure({"--modle=resnet50"}), "did you mean --model?"));
}

TEST(Settings, ValuesWithoutEffectAreAccepted) {
  EXPECT_EQ(failure({"--flush_stdout=true", "--noxla", "--gpu_memory_frac_for_testing=0.0", "--winograd_nonfused=1",
                     "--local_parameter_device=cpu", "--device=cpu", "--data_format=NHWC", "--nodistortions",
                     "--variable_update=horovod", "--horovod_device", "cpu", "--gradient_repacking=0", "--mkl",
                     "--datasets_parallel_interleave_cycle_length=10"}),
            "");
}

TEST(Settings, OtherVersionsOfTfCnnBenchmarks) {
  EXPECT_FALSE(settings_of({}).pixels().distortions);
  const Settings old = settings_of({"--compatible_with=1.12"});
  EXPECT_TRUE(old.pixels().distortions);
  EXPECT_EQ(old.recorded_identity.at("distortions"), "in YIQ");
  EXPECT_FALSE(settings_of({"--compatible_with=1.12", "--nodistortions"}).pixels().distortions);
  EXPECT_FALSE(settings_of({"--compatible_with=1.12", "--preprocessing=torchvision"}).pixels().distortions);
}

TEST(Settings, OfficialModelsPreprocessing) {
  const Settings settings = settings_of({"--input_preprocessor=official_models_imagenet", "--compatible_with=1.12"});
  EXPECT_EQ(settings.pixels().preprocessing, "official_models_imagenet");
  EXPECT_FALSE(settings.pixels().distortions);
  EXPECT_EQ(settings.recorded_identity.at("preprocessing"), "official_models_imagenet");
}

TEST(TrainingSchedule, CountsWarmUpAndRoundsEpochsUp) {
  const TrainingSchedule steps =
      make_schedule(settings_of({"--num_batches=20", "--num_warmup_batches=5"}), {1000, 100});
  EXPECT_EQ(steps.num_batches, 20);
  EXPECT_EQ(steps.total_steps, 25u);
  EXPECT_DOUBLE_EQ(steps.num_epochs, 0.64);
  EXPECT_EQ(make_schedule(settings_of({}), {1000, 100}).num_batches, 100);
  const TrainingSchedule epochs = make_schedule(settings_of({"--num_epochs=1.5", "--batch_size=64"}), {1000, 100});
  EXPECT_EQ(epochs.num_batches, 24);  // 1500 images
  EXPECT_EQ(make_schedule(settings_of({"--num_epochs=1.5", "--batch_size=64", "--max_train_steps=9"}), {1000, 100})
                .num_batches,
            9);
  EXPECT_EQ(make_schedule(settings_of({"--num_batches=3", "--gradient_accumulation=4"}), {1280, 9}).num_epochs, 0.3);
}

TEST(TrainingSchedule, EvaluatesOnePassAtMost) {
  EXPECT_EQ(make_schedule(settings_of({"--eval", "--train_dir=x"}), {1000, 130}).num_batches, 5);
  EXPECT_EQ(make_schedule(settings_of({"--eval", "--train_dir=x", "--num_batches=2"}), {1000, 130}).num_batches, 2);
  const std::string pauses = "--eval_during_training_every_n_steps=5";
  EXPECT_EQ(make_schedule(settings_of({pauses, "--num_eval_batches=3"}), {1000, 130}).eval_batches, 3);
  EXPECT_EQ(
      make_schedule(settings_of({pauses, "--num_eval_epochs=.5", "--eval_batch_size=10"}), {1000, 130}).eval_batches,
      7);
}

TEST(TrainingSchedule, PausesForEvaluation) {
  using Steps = std::set<uint64_t>;
  const auto steps = [](const std::string& flag) {
    const TrainingSchedule schedule =
        make_schedule(settings_of({"--num_batches=20", "--num_warmup_batches=0", flag}), {160, 64});
    Steps found;
    for (uint64_t step = 1; step < schedule.total_steps; ++step)
      if (schedule.evaluates_after(step)) found.insert(step);
    return found;
  };
  EXPECT_EQ(steps("--eval_during_training_every_n_steps=6"), (Steps{6, 12, 18}));
  EXPECT_EQ(steps("--eval_during_training_every_n_epochs=1.5"), (Steps{8, 15}));
  EXPECT_EQ(steps("--eval_during_training_at_specified_steps=3,9"), (Steps{3, 9}));
  EXPECT_EQ(steps("--eval_during_training_at_specified_epochs=0.5,2"), (Steps{3, 10}));
  EXPECT_THROW(steps("--eval_during_training_at_specified_steps=3,x"), Error);
}

TEST(TrainingSchedule, SchedulesOfModelsAndFlags) {
  const auto schedule = [](std::vector<std::string> arguments) {
    return make_schedule(settings_of(std::move(arguments)), {25600, 100}).learning_rate;
  };
  const Schedule resnet = schedule({"--model=resnet50", "--batch_size=256"});  // 100 steps per epoch
  EXPECT_DOUBLE_EQ(resnet.at(250), 0.064);
  EXPECT_DOUBLE_EQ(resnet.at(500), 0.128);
  EXPECT_NEAR(resnet.at(3000), 0.0128, 1e-12);
  EXPECT_NEAR(resnet.at(9500), 0.0000128, 1e-12);
  EXPECT_DOUBLE_EQ(schedule({"--model=resnet50", "--batch_size=128", "--resnet_base_lr=0.2"}).at(1000), 0.1);
  EXPECT_DOUBLE_EQ(schedule({"--model=trivial"}).at(0), 0.005);
  const Schedule cifar = schedule({"--model=resnet20", "--data_name=cifar10", "--batch_size=256"});
  EXPECT_DOUBLE_EQ(cifar.at(8199), 0.1);
  EXPECT_DOUBLE_EQ(cifar.at(8200), 0.01);
  EXPECT_DOUBLE_EQ(cifar.at(30000), 0.0002);
  const Schedule decay = schedule({"--batch_size=256", "--init_learning_rate=1", "--num_epochs_per_decay=2",
                                   "--learning_rate_decay_factor=0.5", "--minimum_learning_rate=0.2"});
  EXPECT_DOUBLE_EQ(decay.at(199), 1);
  EXPECT_DOUBLE_EQ(decay.at(400), 0.25);
  EXPECT_DOUBLE_EQ(decay.at(600), 0.2);
  const Schedule cosine =
      schedule({"--init_learning_rate=1", "--lr_schedule=cosine", "--num_batches=90", "--end_learning_rate=0.1"});
  EXPECT_DOUBLE_EQ(cosine.at(50), 0.55);
  EXPECT_DOUBLE_EQ(cosine.at(100), 0.1);
  const Schedule restarts =
      schedule({"--batch_size=256", "--init_learning_rate=1", "--lr_schedule=cosine_restarts", "--lr_cycle_epochs=0.5",
                "--lr_m_mul=0.5", "--lr_t_mul=3", "--end_learning_rate=0.2"});
  EXPECT_DOUBLE_EQ(restarts.at(25), 0.6);
  EXPECT_DOUBLE_EQ(restarts.at(50), 0.6);
  EXPECT_DOUBLE_EQ(restarts.at(125), 0.4);
  const Schedule cycle = schedule({"--batch_size=256", "--init_learning_rate=1", "--lr_schedule=poly_cycle",
                                   "--lr_cycle_epochs=1", "--lr_power=1"});
  EXPECT_DOUBLE_EQ(cycle.at(150), 0.25);
  const Schedule linear = schedule({"--init_learning_rate=1", "--lr_schedule=linear_cosine", "--num_batches=90",
                                    "--lr_periods=1", "--lr_alpha=0.5", "--lr_beta=0.25"});
  EXPECT_DOUBLE_EQ(linear.at(100), 0.75);
  const Schedule lists = schedule(
      {"--batch_size=256", "--lr_decay_epochs=2,3", "--lr_decay_lrs=1,0.5,0.1", "--num_learning_rate_warmup_epochs=1"});
  EXPECT_DOUBLE_EQ(lists.at(50), 0.5);
  EXPECT_DOUBLE_EQ(lists.at(199), 1);
  EXPECT_DOUBLE_EQ(lists.at(200), 0.5);
  const Schedule smooth = schedule({"--batch_size=256", "--init_learning_rate=1", "--num_epochs_per_decay=2",
                                    "--learning_rate_decay_factor=0.25", "--nolr_staircase"});
  EXPECT_DOUBLE_EQ(smooth.at(100), 0.5);
}

}  // namespace
}  // namespace dtrain::cnn_benchmarks
