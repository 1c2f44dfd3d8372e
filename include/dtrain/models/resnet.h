// ResNet v1 and v1.5 for ImageNet (He et al. 2015, table 1) and the three-stage variant for CIFAR (section 4.2), with
// torchvision's parameter names. TensorFlow's official models differ in padding and projections.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "dtrain/layers.h"
#include "dtrain/models/trace.h"

namespace dtrain::models {

struct Entry;  // of the catalogue

// Padding of strided convolutions and pools.
enum class StridedPadding {
  both,    // kernel / 2 on each side: torchvision
  before,  // the odd row and column at the top and left: TensorPack
  after,   // the odd row and column at the bottom and right: TensorFlow's SAME for even sizes
};

inline constexpr int kNormGroups = 32;  // groups of a group norm (Wu and He 2018)

// Normalisation after each convolution.
enum class ConvNorm {
  batch,
  group,  // with the parameter names of batch norm
  none,   // the last convolution of each block starts at 0
};

// Weight initialisers.
enum class ResNetInit {
  torchvision,  // He normal with fan-out; last layer: truncated normal, variance 1 / in, cut at two deviations
  tensorflow,   // official models: variance scaling with fan-in; last layer: Glorot uniform
};

struct ResNetOptions {
  std::vector<int> blocks{};   // blocks per stage
  std::vector<int> strides{};  // stride of each stage's first block; empty: 1, then 2 each
  bool bottleneck = false;     // 1x1, 3x3, 1x1 with four times the channels out; else 3x3, 3x3
  int64_t width = 64;          // channels of the stem and inside the blocks of the first stage; not for CIFAR
  bool stride_in_3x3 = true;   // bottleneck stride in the 3x3 convolution (v1.5), else in the first 1x1 (v1)
  bool cifar = false;          // a 3x3 stem of 16 channels without pooling; else 7x7/2 of 64 and a max-pool
  bool project_first = false;  // the first block of each stage has a projection even if shapes match
  StridedPadding padding = StridedPadding::both;
  std::optional<StridedPadding> pool_padding{};  // of the stem's pool, if different
  std::optional<StridedPadding> stem_padding{};  // of the stem's convolution, if different
  ResNetInit init = ResNetInit::torchvision;
  ConvNorm norm = ConvNorm::batch;
  BatchNormOptions batch_norm{};
  bool zero_last_gamma = false;  // gamma of the last norm in each block starts at 0 (Goyal et al. 2017)
};

// Padding of a convolution with a square kernel.
Padding padding_of(const ResNetOptions& options, int kernel, int stride);

class ResNet {
 public:
  // `classes` 0: only features(), without the layer `fc`.
  ResNet(ParameterStore& store, Trace& trace, const ResNetOptions& options, int64_t classes);
  // [n, h, w, 3] -> [n, classes]. Throws Error without classes.
  Var operator()(Tape& tape, const Var& x) const;
  // [n, h, w, 3] -> output of each stage, [n, ceil(h / s), ceil(w / s), c]. ImageNet: s is 4, 8, 16, 32, and c is width
  // times 1, 2, 4, 8, and four times that with bottlenecks. CIFAR: s is 1, 2, 4, and c is 16, 32, 64.
  std::vector<Var> features(Tape& tape, const Var& x) const;
  // Only the first `stages` stages.
  std::vector<Var> features(Tape& tape, const Var& x, size_t stages) const;
  // Applies stage `index`, from 0 on, to the output of the stage before.
  Var stage(Tape& tape, size_t index, Var x) const;

 private:
  // A convolution without bias, its norm and an activation; with batch norm a ConvBnAct.
  struct Layer {
    Conv2d conv;
    std::variant<BatchNorm, GroupNorm, std::monostate> norm;
    Activation activation = Activation::relu;
    Var operator()(Tape& tape, const Var& x, const Var* residual = nullptr) const;
  };
  struct Block {
    std::vector<Layer> convs;
    std::optional<Layer> downsample;  // projection shortcut, where channels or resolution change
    Var operator()(Tape& tape, Var x) const;
  };
  // Per-layer arguments.
  struct LayerForm {
    std::string conv, norm;  // paths
    int64_t channels = 0;
    int kernel = 1, stride = 1;
    Activation activation = Activation::relu;
    bool last = false;  // of its block
  };
  static Layer make_layer(ParameterStore& store, Trace& trace, const ResNetOptions& options, const LayerForm& form);
  static Layer make_stem(ParameterStore& store, Trace& trace, const ResNetOptions& options);
  // Per-block arguments.
  struct BlockForm {
    std::string path;
    int64_t width = 0;
    int stride = 1;
    bool first = false;  // of its stage
  };
  static Block make_block(ParameterStore& store, Trace& trace, const ResNetOptions& options, const BlockForm& form);
  Var stem(Tape& tape, const Var& x) const;

  std::optional<PoolOptions> pool_;  // of the stem
  Layer stem_;
  std::vector<std::vector<Block>> stages_;
  std::optional<Linear> fc_;
};

// v1 and v1.5 with 18, 34, 50, 101 and 152 layers for ImageNet, v1 of TensorFlow's official models, and 20, 32, 44, 56
// and 110 layers for CIFAR-10.
std::vector<Entry> resnet_entries();

}  // namespace dtrain::models
