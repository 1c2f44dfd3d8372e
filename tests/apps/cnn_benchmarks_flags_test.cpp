// Attributes of declared flags; parsing a flag changes only its own group.
#include <algorithm>

#include "apps/cnn_benchmarks/settings.h"
#include "tests/testing.h"

namespace dtrain::cnn_benchmarks {
namespace {

class DeclaredFlags : public testing::Test {
 protected:
  DeclaredFlags() { values.declare(flags); }
  Settings settings_of(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"dtrain-cnn-benchmarks", "--device=cpu"});
    flags.parse(arguments);
    return make_settings(values, flags);
  }

  Flags values;
  cli::FlagSet flags{"dtrain-cnn-benchmarks", "", ""};
};

TEST_F(DeclaredFlags, EachBelongsToAGroup) {
  const auto names = flags.names();
  EXPECT_FALSE(names.contains(""));
  size_t count = 0;
  for (const auto& [group, members] : names) count += members.size();
  EXPECT_GT(count, 100u);
}

TEST_F(DeclaredFlags, OnlyPathsMayDifferPerRank) {
  std::vector<std::string> served, differing;
  for (const auto& [group, members] : flags.names()) served.insert(served.end(), members.begin(), members.end());
  const auto settings = flags.settings_that_must_agree();
  for (const std::string& name : served)
    if (std::ranges::find(settings, "--" + name, [](const auto& setting) { return setting.first; }) == settings.end())
      differing.push_back(name);
  std::ranges::sort(differing);
  EXPECT_EQ(differing, (std::vector<std::string>{"config",
                                                 "data_cache_dir",
                                                 "data_cache_gb",
                                                 "data_dir",
                                                 "datasets_num_private_threads",
                                                 "gpu_indices",
                                                 "gpu_memory_frac_for_testing",
                                                 "graph_file",
                                                 "max_unpacked_gb",
                                                 "metrics_address",
                                                 "metrics_file",
                                                 "metrics_port",
                                                 "num_inter_threads",
                                                 "num_intra_threads",
                                                 "profile",
                                                 "progress",
                                                 "task_index",
                                                 "tfprof_file",
                                                 "timeline",
                                                 "trace_file",
                                                 "use_chrome_trace_format"}));
}

// A changed or missing key would break the resumption of existing checkpoints.
// Repeated augmentation, and the loss of multi-label training, are recorded only if enabled: existing checkpoints lack
// the key.
TEST_F(DeclaredFlags, TheIdentityOfARunHasTheKeysOfExistingCheckpoints) {
  EXPECT_EQ(flags.identity_keys(),
            (std::set<std::string>{"batch norm", "classes", "data set", "distortions", "global batch", "image size",
                                   "label offset", "loss", "model", "optimizer", "preprocessing",
                                   "repeated augmentation", "seed"}));
}

using Texts = std::map<std::string, std::string>;

TEST_F(DeclaredFlags, CheckpointsRecordDefaults) {
  const Settings settings = settings_of({});
  EXPECT_EQ(settings.recorded_identity, (Texts{{"batch norm", "per rank"},
                                               {"distortions", "none"},
                                               {"label offset", "0"},
                                               {"model", "trivial"},
                                               {"optimizer", "sgd"},
                                               {"preprocessing", "tf_cnn"},
                                               {"seed", "1234"}}));
  EXPECT_EQ(settings.recorded_settings, (Texts{{"JPEG decoder", "host"},
                                               {"label smoothing", "0"},
                                               {"resize method", "bilinear"},
                                               {"weight decay", "4e-05"}}));
}

TEST_F(DeclaredFlags, CheckpointsRecordGivenFlags) {
  const Settings settings =
      settings_of({"--sync_batch_norm", "--distortions", "--nodistort_color_in_yiq", "--label_offset=-1",
                   "--model=resnet50", "--optimizer=lars", "--ml_perf", "--tf_random_seed=7", "--label_smoothing=0.10",
                   "--resize_method=area", "--weight_decay=1e-4"});
  EXPECT_EQ(settings.recorded_identity, (Texts{{"batch norm", "over all ranks"},
                                               {"distortions", "in HSV"},
                                               {"label offset", "-1"},
                                               {"model", "resnet50"},
                                               {"optimizer", "lars"},
                                               {"preprocessing", "tf_cnn, ml_perf"},
                                               {"seed", "7"}}));
  EXPECT_EQ(settings.recorded_settings, (Texts{{"JPEG decoder", "host"},
                                               {"label smoothing", "0.1"},
                                               {"resize method", "area"},
                                               {"weight decay", "0.0001"}}));
}

TEST_F(DeclaredFlags, ResolvingDoesNotChangeParsedFlags) {
  const Settings settings = settings_of({"--gradient_accumulation=4", "--num_inter_threads=3"});
  EXPECT_EQ(settings.shape.micro_steps, 4);
  EXPECT_EQ(settings.input_workers, 3);
  EXPECT_FALSE(settings.flags.input.datasets_num_private_threads);
  static_assert(std::is_const_v<decltype(Settings::flags)>);
}

// Without updates, each batch is a step, so that throughput counts its images once.
TEST_F(DeclaredFlags, ForwardOnlyAccumulatesNothing) {
  const Settings settings = settings_of({"--forward_only", "--gradient_accumulation=4", "--batch_size=8"});
  EXPECT_EQ(settings.shape.micro_steps, 1);
  EXPECT_EQ(settings.global_batch(), 8);
}

}  // namespace
}  // namespace dtrain::cnn_benchmarks
