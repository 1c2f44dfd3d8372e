// Resolves interdependent defaults, and checks what this build and this machine support.
#include "apps/cnn_benchmarks/settings.h"

#include "data/image_list.h"
#include "data/web_dataset.h"

namespace dtrain::cnn_benchmarks {
namespace {

// Throws Error(Fault::config) for flags that contradict data of one split, and multi-label training.
void check_data(const Settings& settings) {
  const Flags& f = settings.flags;
  const std::string& data_dir = f.input.data_dir;
  const bool both = settings.trains() && settings.evaluates(), is_list = data::has_list_of_one_split(data_dir);
  DT_CHECK(!both || !(is_list || (data::has_tars(data_dir) && data::has_tars_of_one_split(data_dir))),
           "--data_dir=", data_dir, is_list ? ": a list" : ": archives",
           " of one split; an evaluation during training needs a folder with those of training and validation");
  if (!settings.multi_label) return;
  cli::refuse({
      {settings.synthetic() || settings.detects(), "--loss=bce needs --data_dir and a classifier"},
      {f.model.label_smoothing > 0, "--label_smoothing and --loss=bce: at most one may be given"},
      {f.augment.mixing().any(), "--mixup_alpha and --cutmix_alpha mix images of one label, and exclude --loss=bce"},
      {f.mode.stop_at_top_1_accuracy.has_value(),
       "--stop_at_top_1_accuracy: with --loss=bce there is no top-1 accuracy; see --early_stop_patience"},
      {f.benchmark_log.ml_perf_compliance_logging,
       "--ml_perf_compliance_logging and --loss=bce: MLPerf has no such task"},
  });
}

}  // namespace

Settings make_settings(const Flags& flags, const cli::FlagSet& set, const Ranks& ranks) {
  flags.check(set);
  Settings settings{.flags = flags, .ranks = ranks, .mode = flags.mode.mode()};
  settings.machine = flags.machine.resolve(set, ranks, settings.notices);
  flags.input.check_machine(settings.machine);
  settings.input_workers = flags.input.workers(ranks);
  const cli::Distribution distribution =
      flags.distribution.resolve(set, flags.ranks, ranks.size, settings.machine, settings.notices);
  settings.packs = distribution.packs;
  settings.independent = distribution.independent;
  if (flags.tf.data_format == "NCHW")
    settings.notices.push_back("data format NCHW: the engine computes in NHWC, with the same results");

  settings.dataset = flags.model.dataset(flags.input.data_dir, settings.notices);
  settings.info = flags.model.info(settings.dataset);
  flags.model.conventions.check(set, settings.info);
  settings.options = flags.model.options(settings.info, settings.dataset, flags.input.data_dir, settings.notices);
  settings.multi_label =
      flags.model.multi_label(flags.input.data_dir, settings.mode != RunMode::evaluation, settings.notices);
  check_data(settings);
  settings.stages = flags.augment.stages();
  if (!settings.stages.empty() && !settings.trains()) settings.stages = {{settings.stages.back().size, 0}};
  if (settings.stages.empty()) settings.stages = {{settings.options.image_size, 0}};
  DT_CHECK(flags.model.image_size == 0 || settings.stages.back().size == flags.model.image_size,
           "--progressive_resizing ends with images of ", settings.stages.back().size, " pixels, --image_size is ",
           flags.model.image_size);
  settings.options.image_size = settings.stages.back().size;
  const bool accumulates = settings.mode != RunMode::forward_only;
  settings.shape = {.batch = flags.run.batch_size > 0 ? flags.run.batch_size : settings.info.batch_size,
                    .micro_steps = accumulates ? static_cast<int>(flags.run.gradient_accumulation) : 1,
                    .gradients = distribution.gradients,
                    .buckets = distribution.buckets,
                    .tune_buckets = distribution.autotune,
                    .threads = settings.machine.threads,
                    .cores = cli::available_cores().usable,
                    .device = settings.machine.device()};
  settings.eval_batch = flags.run.eval_batch_size > 0 ? flags.run.eval_batch_size : settings.shape.batch;
  for (const int64_t samples : {settings.global_batch(), settings.global_eval_batch()})
    DT_CHECK(samples <= cli::kMostSamplesOfStep,
             "--batch_size, --gradient_accumulation and the number of ranks: global batch of ", samples,
             " images, expected at most ", cli::kMostSamplesOfStep);
  if (settings.detects() && settings.evaluates()) {
    DT_CHECK(!settings.synthetic(), "an evaluation of ssd300 needs --data_dir with ground truth");
    if (flags.run.num_eval_batches || flags.run.num_eval_epochs)
      settings.notices.push_back("num_eval_batches and num_eval_epochs: ignored; an evaluation of ssd300 is one epoch");
  }
  settings.warmup_steps = flags.run.warmup_batches(flags.tf.warmup_batches());
  settings.recorded_identity = set.recorded_identity();
  settings.recorded_settings = set.recorded_settings();
  settings.text = set.config_text();
  return settings;
}

RunOptions resume_options(const Settings& settings) {
  RunOptions options = settings.flags.resume_options(settings.ranks);
  if (settings.flags.rate_finder.find_learning_rate) options.train_dir.clear();
  return options;
}

void adopt_checkpoint(Settings& settings, const cli::FlagSet& set, Group& group) {
  if (!settings.trains()) return;
  ExplicitSettings given = settings.flags.explicit_settings(set);
  given.algorithm |= set.given("all_reduce_spec");
  given.bucket_count = settings.packs > 0;
  for (std::string& notice : elastic_resume(settings.shape, given, resume_options(settings), group))
    settings.notices.push_back(std::move(notice));
  settings.machine.threads = settings.shape.threads;
}

}  // namespace dtrain::cnn_benchmarks
