// Resolves interdependent defaults, and checks what this build and this machine support.
#include "apps/cnn_benchmarks/settings.h"

namespace dtrain::cnn_benchmarks {

Config make_config(const Flags& flags, const cli::FlagSet& set, const Ranks& ranks) {
  flags.check(set);
  Config config{.flags = flags, .ranks = ranks, .mode = flags.mode.mode()};
  config.machine = flags.machine.resolve(set, ranks, config.notices);
  flags.input.check_machine(config.machine);
  config.input_workers = flags.input.workers(ranks);
  config.distribution = flags.distribution.resolve(set, flags.ranks, ranks.size, config.machine, config.notices);
  if (flags.tf.data_format == "NCHW")
    config.notices.push_back("data format NCHW: the engine computes in NHWC, with the same results");

  config.dataset = flags.model.dataset(flags.input.data_dir, config.notices);
  config.info = flags.model.info(config.dataset);
  flags.model.conventions.check(set, config.info);
  config.options = flags.model.options(config.info, config.dataset);
  config.stages = flags.augment.stages();
  if (!config.stages.empty() && !config.trains()) config.stages = {{config.stages.back().size, 0}};
  if (config.stages.empty()) config.stages = {{config.options.image_size, 0}};
  DT_CHECK(flags.model.image_size == 0 || config.stages.back().size == flags.model.image_size,
           "--progressive_resizing ends with images of ", config.stages.back().size, " pixels, --image_size is ",
           flags.model.image_size);
  config.options.image_size = config.stages.back().size;
  config.batch = flags.run.batch_size > 0 ? flags.run.batch_size : config.info.batch_size;
  config.eval_batch = flags.run.eval_batch_size > 0 ? flags.run.eval_batch_size : config.batch;
  config.micro_steps = config.mode == RunMode::forward_only ? 1 : flags.run.gradient_accumulation;
  for (const int64_t samples : {config.global_batch(), config.global_eval_batch()})
    DT_CHECK(samples <= cli::kMostSamplesOfStep,
             "--batch_size, --gradient_accumulation and the number of ranks: global batch of ", samples,
             " images, expected at most ", cli::kMostSamplesOfStep);
  if (config.detects() && config.evaluates()) {
    DT_CHECK(!config.synthetic(), "an evaluation of ssd300 needs --data_dir with ground truth");
    if (flags.run.num_eval_batches || flags.run.num_eval_epochs)
      config.notices.push_back("num_eval_batches and num_eval_epochs: ignored; an evaluation of ssd300 is one epoch");
  }
  config.warmup_steps = flags.run.warmup_batches(flags.tf.warmup_batches());
  config.recorded_identity = set.recorded_identity();
  config.recorded_settings = set.recorded_settings();
  config.text = set.config_text();
  return config;
}

}  // namespace dtrain::cnn_benchmarks
