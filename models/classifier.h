// What an image classifier is, built and before it is built.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "libdtrain/autograd/parameters.h"
#include "libdtrain/autograd/tape.h"
#include "libdtrain/train/loss.h"
#include "libdtrain/train/schedule.h"

namespace dtrain {
class Communicator;
}

namespace dtrain::models {

// [n, h, w, 3] normalised pixels -> [n, classes] logits. Where `auxiliary` is not null, the logits of the model's
// auxiliary heads, which have the same shape, are appended to it.
using Forward = std::function<Var(Tape&, const Var& x, std::vector<Var>* auxiliary)>;

// What the loss of an auxiliary head is multiplied by: tf_cnn_benchmarks' factor.
inline constexpr float kAuxiliaryWeight = 0.4f;

struct ClassifierOptions {
  int64_t classes = 0;     // 0: the model's default for its data set, whose class 0 is background
  int64_t image_size = 0;  // 0: the model's default
  // Synchronises all batch norms of the model over its ranks; see BatchNormOptions::communicator.
  Communicator* statistics = nullptr;
  // Builds the auxiliary head of a model that can be had with and without one; see ClassifierInfo. It serves training
  // alone.
  bool auxiliary_head = false;
};

// What one forward pass of one image takes of the layer that owns the parameter `weight`.
struct LayerWork {
  std::string weight;
  int64_t multiply_adds;
};

// A model with its registered parameters.
struct Classifier {
  std::string name;
  int64_t classes = 0, image_size = 0;
  int64_t multiply_adds = 0;        // for one forward pass of one image, in convolutions and linear layers
  std::vector<LayerWork> layers{};  // the convolutions and the linear layers, in order of registration
  Forward network{};

  // [n, h, w, 3] normalised pixels -> [n, classes] logits.
  Var forward(Tape& tape, const Var& x) const { return network(tape, x, nullptr); }
  // softmax_cross_entropy of the logits, with its metrics; in training, kAuxiliaryWeight times that of each auxiliary
  // head is added to the total.
  Loss loss(Tape& tape, const Var& x, const Tensor& labels, const SoftmaxCrossEntropyOptions& options = {}) const;
};

// What is known of a model before it is built.
struct ClassifierInfo {
  std::string name{};
  std::string dataset{};                // the one whose form of the model this is; a model may have several
  int64_t image_size = 0, classes = 0;  // defaults
  int64_t batch_size = 0;               // default per device
  bool auxiliary_head = false;          // ClassifierOptions may ask for one
  // The learning rates of tf_cnn_benchmarks where the user names none; see default_schedule.
  double base_rate = 0.005;
  bool rate_grows_with_batch = false;  // base_rate is that of a global batch of 256 images
  // From the rate that follows from these two and from the steps of an epoch; null: the rate is constant.
  Schedule (*schedule)(double base, double steps_per_epoch) = nullptr;
};

}  // namespace dtrain::models
