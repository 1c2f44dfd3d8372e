// TensorBoard histograms of gradients and parameters, and images of training batches.
#pragma once

#include <functional>
#include <vector>

#include "apps/cli/pictures.h"
#include "apps/observers/event_files.h"
#include "dtrain/train/trainer.h"

namespace dtrain::observers {

// Level of detail, as tf_cnn_benchmarks' --summary_verbosity.
struct ModelDetails {
  int64_t verbosity = 0;
  // Images of the last step on this rank; may be empty.
  std::function<std::vector<cli::Picture>()> pictures{};
};

// With verbosity >= 2: `log_gradients_summary/log_gradients`, the logarithms of the magnitudes of all non-zero
// gradients. With 3: NAME/gradients and NAME for each trained parameter, and `images/image/0` etc. Gradients are of the
// trainer's last step, unscaled from `loss_scale`: means over the global batch, before clipping and weight decay.
// Parameters are after that step. Waits for the device.
void add_details(const ModelDetails& details, const Trainer& trainer, double loss_scale, Summary& summary);

// The same as a callback for event files; the trainer outlives it.
StepDetails details_of(ModelDetails details, const Trainer& trainer);

}  // namespace dtrain::observers
