// What TensorBoard shows of a model in training beside scalars: histograms of its gradients and parameters, and images
// that it was trained on.
#pragma once

#include <functional>
#include <vector>

#include "apps/cli/pictures.h"
#include "apps/observers/event_files.h"
#include "libdtrain/train/trainer.h"

namespace dtrain::observers {

// How much is shown, by tf_cnn_benchmarks' --summary_verbosity.
struct ModelDetails {
  int64_t verbosity = 0;
  // Some of the images that the last step was made with, on this rank; empty: there are none.
  std::function<std::vector<cli::Picture>()> pictures{};
};

// With verbosity 2 and more, `log_gradients_summary/log_gradients`: the logarithms of the sizes of all gradients that
// are not 0; with 3, for each parameter that is trained NAME/gradients and NAME, and `images/image/0` and so on.
// Gradients are those that the trainer's last step has left, made with `loss_scale`: means over the global batch,
// before they are clipped, without weight decay. Parameters are those after that step. Waits for the device.
void add_details(const ModelDetails& details, const Trainer& trainer, double loss_scale, Summary& summary);

// The same as an event file asks for it; the trainer outlives it.
StepDetails details_of(ModelDetails details, const Trainer& trainer);

}  // namespace dtrain::observers
