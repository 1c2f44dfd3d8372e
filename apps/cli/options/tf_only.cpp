#include "apps/cli/options/tf_only.h"

#include <algorithm>

namespace dtrain::cli {

void TfFlags::declare(FlagSet& flags) {
  flags.group("Only in tf_cnn_benchmarks");
  flags.add("num_gpus", num_gpus, "devices of this host, or worker; the program starts one rank for each",
            kPositiveCount);
  flags.add("autotune_threshold", autotune_threshold,
            "sets only the default of num_warmup_batches, to max(10, 5 * autotune_threshold^2)", {1, 10000});
  flags.add_choice("data_format", data_format, {"NHWC", "NCHW"}, "the engine is NHWC; NCHW is accepted with a notice");
  flags.add_choice("loss_type_to_report", loss_type_to_report, {"base_loss", "total_loss"},
                   "total_loss includes the L2 term of weight_decay");
  flags.add("print_training_accuracy", print_training_accuracy, "add top-1 and top-5 columns");
  flags
      .add("batch_group_size", batch_group_size,
           "batches that the input pipeline produces at a time; shown in the header", kPositiveCount)
      .no_effect("batches are prefetched one by one");
  flags.add("rewriter_config", rewriter_config, "graph rewriter options of TensorFlow; shown in the header")
      .no_effect("there is no TensorFlow graph");
  flags.add_choice("compatible_with", compatible_with, {"dtrain", "master", "1.12"},
                   "branch of tf_cnn_benchmarks whose lines the log has, after a first line that names dtrain; other "
                   "lines go to stderr. dtrain adds them to master's log. 1.12 also enables distortions unless "
                   "--nodistortions is given");
}

int64_t TfFlags::warmup_batches() const {
  const int64_t tries = autotune_threshold.value_or(1);
  return std::max<int64_t>(10, 5 * tries * tries);
}

}  // namespace dtrain::cli
