// Flags about training on several ranks.
#include "apps/cnn_benchmarks/flags.h"

namespace dtrain::cnn_benchmarks {

using cli::kNotNegative;
using cli::kPositive;

void declare_ranks(cli::FlagSet& flags, Flags& v) {
  flags.group("Several ranks");
  flags.add("expect_ranks", v.expect_ranks, "exit 1 where another number of ranks has been started; 0: any",
            kNotNegative);
  flags.add("collective_timeout", v.collective_timeout,
            "seconds that a rank waits for the others in a step before the job ends with exit code 4", kPositive);
  flags.add("verify_weights_every", v.verify_weights_every,
            "steps after which several ranks compare checksums of their parameters; 0: at checkpoints only",
            kNotNegative);
  flags.add("sync_batch_norm", v.sync_batch_norm,
            "batch norm's mean and variance over the batches of all ranks, not of each alone");
}

}  // namespace dtrain::cnn_benchmarks
