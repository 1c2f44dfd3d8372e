// What an image classifier is, built and before it is built.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "libdtrain/autograd/parameters.h"
#include "libdtrain/autograd/tape.h"
#include "libdtrain/train/schedule.h"

namespace dtrain {
class Communicator;
}

namespace dtrain::models {

using Forward = std::function<Var(Tape&, const Var&)>;

struct ClassifierOptions {
  int64_t classes = 0;     // 0: the model's default for its data set, whose class 0 is background
  int64_t image_size = 0;  // 0: the model's default
  // Synchronises all batch norms of the model over its ranks; see BatchNormOptions::communicator.
  Communicator* statistics = nullptr;
};

// What one forward pass of one image takes of the layer that owns the parameter `weight`.
struct LayerWork {
  std::string weight;
  int64_t multiply_adds;
};

// A model with its registered parameters; `forward` maps [n, h, w, 3] normalised pixels to [n, classes] logits.
struct Classifier {
  std::string name;
  int64_t classes = 0, image_size = 0;
  int64_t multiply_adds = 0;        // for one forward pass of one image, in convolutions and linear layers
  std::vector<LayerWork> layers{};  // the convolutions and the linear layers, in order of registration
  Forward forward{};
};

// What is known of a model before it is built.
struct ClassifierInfo {
  std::string name{};
  std::string dataset{};                // the one whose form of the model this is; a model may have several
  int64_t image_size = 0, classes = 0;  // defaults
  int64_t batch_size = 0;               // default per device
  // The learning rates of tf_cnn_benchmarks where the user names none; see default_schedule.
  double base_rate = 0.005;
  bool rate_grows_with_batch = false;  // base_rate is that of a global batch of 256 images
  // From the rate that follows from these two and from the steps of an epoch; null: the rate is constant.
  Schedule (*schedule)(double base, double steps_per_epoch) = nullptr;
};

}  // namespace dtrain::models
