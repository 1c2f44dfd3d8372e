// Batches, epochs, steps.
#include "apps/cli/options/run.h"

#include <algorithm>

#include "dtrain/core/error.h"

namespace dtrain::cli {
namespace {

constexpr int64_t kDefaultBatches = 100;

int64_t length(std::optional<int64_t> batches, std::optional<double> epochs, uint64_t samples, int64_t batch) {
  if (!epochs || *epochs <= 0) return batches.value_or(kDefaultBatches);
  const int64_t found = batches_of(*epochs, samples, batch);
  DT_CHECK(found <= kMostSteps, *epochs, " epochs of ", samples, " images are ", found, " batches of ", batch,
           ", expected at most ", kMostSteps);
  return found;
}

}  // namespace

void RunFlags::declare(FlagSet& flags) {
  flags.group("Batches and length");
  flags.add("batch_size", batch_size, "images per device and step; 0: the model's default", kBatch)
      .identity_once_resolved("global batch");
  flags.add("eval_batch_size", eval_batch_size, "images per device and evaluation step; 0: batch_size", kBatch);
  flags
      .add("gradient_accumulation", gradient_accumulation, "micro-batches per update; their gradients are averaged",
           {1, 1 << 16})
      .identity_once_resolved("global batch");
  flags.add("num_batches", num_batches, "timed steps; 100 if num_epochs is not given either", kPositiveCount);
  flags.add("num_epochs", num_epochs, "epochs to train, rounded up to whole batches; instead of num_batches",
            kNotNegative);
  flags.add("max_train_steps", max_train_steps, "upper limit on the steps of num_epochs", kPositiveCount);
  flags.add(
      "num_eval_batches", num_eval_batches,
      "batches of an evaluation; by default as num_batches or num_epochs. At most one epoch: each image counts once",
      kPositiveCount);
  flags.add("num_eval_epochs", num_eval_epochs, "epochs of an evaluation; instead of num_eval_batches", kNotNegative);
  flags.add("num_warmup_batches", num_warmup_batches,
            "untimed steps at the start, 10 by default. They update the parameters and count in the global step; a "
            "resumed run does not repeat them",
            kCount);
  flags
      .add("tf_random_seed", tf_random_seed, "seed of initialisation, shuffling, augmentation and dropout",
           kAny<int64_t>)
      .identity("seed");
}

void RunFlags::check(const FlagSet&) const {
  refuse({
      {num_batches && num_epochs, "--num_batches and --num_epochs: at most one may be given"},
      {num_eval_batches && num_eval_epochs, "--num_eval_batches and --num_eval_epochs: at most one may be given"},
  });
}

int64_t batches_of(double epochs, uint64_t samples, int64_t batch) {
  constexpr double kMostImages = 1e18;
  const double images = epochs * static_cast<double>(samples);
  DT_CHECK(images >= 1 && images <= kMostImages, epochs, " epochs of ", samples, " images are ", images,
           " images, expected 1 to ", kMostImages);
  return (static_cast<int64_t>(images) + batch - 1) / batch;
}

int64_t RunFlags::training_batches(uint64_t samples, int64_t batch) const {
  const int64_t batches = length(num_batches, num_epochs, samples, batch);
  return max_train_steps ? std::min(batches, *max_train_steps) : batches;
}

int64_t RunFlags::evaluation_batches(uint64_t samples, int64_t batch) const {
  const bool own = num_eval_batches || num_eval_epochs;
  return std::min(length(own ? num_eval_batches : num_batches, own ? num_eval_epochs : num_epochs, samples, batch),
                  batches_of(1, samples, batch));
}

}  // namespace dtrain::cli
