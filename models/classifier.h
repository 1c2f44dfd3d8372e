// What an image classifier is, built and before it is built.
#pragma once

#include <functional>
#include <optional>
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

// Where what strides in a ResNet has its rows and columns of padding.
enum class PaddingConvention {
  symmetric,  // half of the kernel on each side: torchvision
  same_pool,  // the same, but the stem's pool as TensorFlow's SAME: tf_cnn_benchmarks and MLPerf's reference
  same,       // and the convolutions of the blocks too: AWS's script
};

enum class ConvolutionInit {
  he_fan_out,        // normal, of variance 2 / fan_out: torchvision
  variance_scaling,  // truncated normal, of variance 1 / fan_in: TensorFlow
};

// Of the last layer, whose biases are 0 unless it says otherwise.
enum class ClassifierInit {
  truncated_normal,  // of deviation sqrt(1 / in) before it is cut: tf_cnn_benchmarks
  normal,            // of deviation 0.01: AWS's script and MLPerf's reference
  uniform,           // within sqrt(1 / in), the biases too: torchvision
};

// In what respects programs build one and the same model in different ways. What is not set is as the model has it.
struct ModelConventions {
  std::optional<bool> stride_in_3x3{};  // of the bottlenecks of a ResNet: v1.5, else in their first 1x1: v1
  std::optional<PaddingConvention> padding{};
  std::optional<float> batch_norm_epsilon{}, batch_norm_decay{};  // the share of the old running statistic kept
  std::optional<bool> zero_last_gamma{};                          // the last norm of each block scales by 0 at first
  std::optional<ConvolutionInit> convolutions{};
  std::optional<ClassifierInit> classifier{};
};

struct ClassifierOptions {
  int64_t classes = 0;     // 0: the model's default for its data set, whose class 0 is background
  int64_t image_size = 0;  // 0: the model's default
  // Synchronises all batch norms of the model over its ranks; see BatchNormOptions::communicator.
  Communicator* statistics = nullptr;
  // Builds the auxiliary head of a model that can be had with and without one; see ClassifierInfo. It serves training
  // alone.
  bool auxiliary_head = false;
  ModelConventions conventions{};  // those of blocks, padding and batch norm are for ResNets
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
  bool residual = false;                // follows all ModelConventions, else only those of first weights
  ModelConventions conventions{};       // of a ResNet: stride, padding and epsilon where nothing else is asked for
  // The learning rates of tf_cnn_benchmarks where the user names none; see default_schedule.
  double base_rate = 0.005;
  bool rate_grows_with_batch = false;  // base_rate is that of a global batch of 256 images
  // From the rate that follows from these two and from the steps of an epoch; null: the rate is constant.
  Schedule (*schedule)(double base, double steps_per_epoch) = nullptr;
};

}  // namespace dtrain::models
