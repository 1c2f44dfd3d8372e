// Image classifier: its catalogue entry, build options and the built model.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dtrain/autograd/parameters.h"
#include "dtrain/autograd/tape.h"
#include "dtrain/train/loss.h"
#include "dtrain/train/schedule.h"

namespace dtrain {
class Communicator;
}

namespace dtrain::models {

// [n, h, w, 3] normalised pixels -> [n, classes] logits. Unless `auxiliary` is null, the logits of the auxiliary heads,
// of the same shape, are appended to it.
using ForwardFunction = std::function<Var(Tape&, const Var& x, std::vector<Var>* auxiliary)>;

// Loss weight of an auxiliary head, as in tf_cnn_benchmarks.
inline constexpr float kAuxiliaryWeight = 0.4f;

// Padding of strided convolutions and pools in a ResNet.
enum class PaddingConvention {
  symmetric,  // kernel / 2 on each side: torchvision
  same_pool,  // symmetric, but SAME for the stem's max-pool: tf_cnn_benchmarks and the MLPerf reference
  same,       // SAME for the pool and the convolutions of the blocks: AWS's script
};

enum class ConvolutionInit {
  he_fan_out,        // normal, variance 2 / fan_out: torchvision
  variance_scaling,  // truncated normal, variance 1 / fan_in: TensorFlow
};

// Initialiser of the last linear layer. Biases are 0 unless stated otherwise.
enum class ClassifierInit {
  truncated_normal,  // truncated normal, standard deviation sqrt(1 / in) before truncation: tf_cnn_benchmarks
  normal,            // normal, standard deviation 0.01: AWS's script and the MLPerf reference
  uniform,           // uniform within +-sqrt(1 / in), biases too: torchvision
};

// Conventions in which implementations of one model differ. Unset values are the model's defaults.
struct ModelConventions {
  std::optional<bool> stride_in_3x3{};  // bottleneck stride in the 3x3 convolution (v1.5), else in the first 1x1 (v1)
  std::optional<PaddingConvention> padding{};
  std::optional<float> batch_norm_epsilon{}, batch_norm_decay{};  // decay: weight of the old running statistic
  std::optional<bool> zero_last_gamma{};                          // gamma of the last norm in each block starts at 0
  std::optional<ConvolutionInit> convolutions{};
  std::optional<ClassifierInit> classifier{};
};

struct ClassifierOptions {
  int64_t classes = 0;     // 0: the model's default for its data set, in which class 0 is background
  int64_t image_size = 0;  // 0: the model's default
  // Synchronises all batch norms of the model over the ranks; see BatchNormOptions::communicator.
  Communicator* statistics = nullptr;
  // Builds the auxiliary head of a model where it is optional; see ClassifierInfo. Used in training only.
  bool auxiliary_head = false;
  ModelConventions conventions{};  // blocks, padding and batch norm apply to ResNets only
};

// Multiply-adds in the forward pass of one image by the layer that owns the parameter `weight`.
struct LayerWork {
  std::string weight;
  int64_t multiply_adds;
};

// Targets of multi-label classification.
struct MultiLabelTargets {
  Tensor targets;      // [n, classes] f32: 1 for a class of the image, else 0
  Tensor row_weights;  // [n] f32: 1 for an image, 0 for padding
  int64_t rows = 0;    // number of images
};

// A model with its registered parameters.
struct Classifier {
  std::string name;
  int64_t classes = 0, image_size = 0;
  int64_t multiply_adds = 0;        // of the forward pass of one image, in convolutions and linear layers
  std::vector<LayerWork> layers{};  // convolutions and linear layers in order of registration
  ForwardFunction network{};

  // [n, h, w, 3] normalised pixels -> [n, classes] logits.
  Var forward(Tape& tape, const Var& x) const { return network(tape, x, nullptr); }
  // softmax_cross_entropy of the logits, with its metrics. In training, the loss of each auxiliary head is added with
  // weight kAuxiliaryWeight.
  Loss loss(Tape& tape, const Var& x, const Tensor& labels, const SoftmaxCrossEntropyOptions& options = {}) const;
  // Binary cross-entropy of the logits' sigmoids, averaged over images and classes, without metrics; auxiliary heads as
  // above. Unless `logits` is null, it becomes the logits [n, classes].
  Loss loss(Tape& tape, const Var& x, const MultiLabelTargets& targets, Tensor* logits = nullptr) const;
};

// Catalogue entry of a model.
struct ClassifierInfo {
  std::string name{};
  std::string dataset{};                // data set of this variant; a model may have several
  int64_t image_size = 0, classes = 0;  // defaults
  int64_t batch_size = 0;               // default per device
  bool auxiliary_head = false;          // ClassifierOptions::auxiliary_head is supported
  bool residual = false;                // supports all ModelConventions, else only the initialisers
  ModelConventions conventions{};       // of a ResNet: default stride, padding and epsilon
  // Default learning rate of tf_cnn_benchmarks; see default_schedule.
  double base_rate = 0.005;
  bool rate_grows_with_batch = false;  // base_rate is for a global batch of 256 images
  // Makes the schedule from the base rate and the steps per epoch; null: constant rate.
  Schedule (*schedule)(double base, double steps_per_epoch) = nullptr;
};

// Deprecated name, removed with the next minor version: docs/migration.md.
using Forward [[deprecated("renamed: ForwardFunction")]] = ForwardFunction;

}  // namespace dtrain::models
