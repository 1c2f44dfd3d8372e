// ResNet: v1 and v1.5 for ImageNet (He et al. 2015, table 1) and the three-stage form for CIFAR (section 4.2), with
// torchvision's parameter names. The official models of TensorFlow differ in where they pad and project.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "libdtrain/layers.h"
#include "models/entry.h"

namespace dtrain::models {

// Where convolutions and pools that stride have their rows and columns of padding.
enum class StridedPadding {
  both,    // as many on each side, half of the kernel: torchvision
  before,  // of those that the stride leaves over, the odd one at the top and the left: TensorPack
  after,   // the odd one at the bottom and the right: TensorFlow's SAME, for images of even sides
};

inline constexpr int kNormGroups = 32;  // of channels in each group norm (Wu and He 2018)

// What follows each convolution.
enum class ConvNorm {
  batch,
  group,  // under the names that batch norm has
  none,   // the last convolution of each block is 0 at first
};

// Where the first weights come from.
enum class ResNetInit {
  torchvision,  // He's normal with fan-out; the classifier's are normal, of variance 1 / in, cut at two deviations
  tensorflow,   // TensorFlow's official models: variance scaling with fan-in; the classifier's are Glorot's uniform
};

struct ResNetOptions {
  std::vector<int> blocks{};   // per stage
  std::vector<int> strides{};  // per stage, of its first block; empty: 1, then 2 for each that follows
  bool bottleneck = false;     // 1x1, 3x3, 1x1 with four times the channels out; else 3x3, 3x3
  int64_t width = 64;          // channels of the stem and, within blocks, of the first stage; not for CIFAR's form
  bool stride_in_3x3 = true;   // v1.5: a bottleneck strides in its 3x3 convolution; v1: in its first 1x1
  bool cifar = false;          // a 3x3 stem of 16 channels without pooling; else 7x7/2 of 64 and a max-pool
  bool project_first = false;  // the first block of each stage has a projection even where its images fit
  StridedPadding padding = StridedPadding::both;
  std::optional<StridedPadding> pool_padding{};  // that of the stem's pool, where it is another
  std::optional<StridedPadding> stem_padding{};  // that of the stem's convolution, where it is another
  ResNetInit init = ResNetInit::torchvision;
  ConvNorm norm = ConvNorm::batch;
  BatchNormOptions batch_norm{};
  bool zero_last_gamma = false;  // the last norm of each block scales by 0 at first (Goyal et al. 2017)
};

// That of a convolution with a square kernel.
Padding padding_of(const ResNetOptions& options, int kernel, int stride);

class ResNet {
 public:
  // `classes` 0: features() alone, without the layer `fc`.
  ResNet(ParameterStore& store, Trace& trace, const ResNetOptions& options, int64_t classes);
  // [n, h, w, 3] -> [n, classes]. Throws Error where there are no classes.
  Var operator()(Tape& tape, const Var& x) const;
  // [n, h, w, 3] -> what each stage gives, [n, h / s, w / s, c], rounded up. In the ImageNet form s is 4, 8, 16 and 32,
  // and c width times 1, 2, 4 and 8, and four times that with bottlenecks; in that for CIFAR s is 1, 2 and 4, and c 16,
  // 32 and 64.
  std::vector<Var> features(Tape& tape, const Var& x) const;
  // The first `stages` of them.
  std::vector<Var> features(Tape& tape, const Var& x, size_t stages) const;
  // What stage `index`, from 0 on, makes of what the one before it gives.
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
    std::optional<Layer> downsample;  // where the number of channels or the resolution changes
    Var operator()(Tape& tape, Var x) const;
  };
  // How a layer differs from the others of its model.
  struct LayerForm {
    std::string conv, norm;  // paths
    int64_t channels = 0;
    int kernel = 1, stride = 1;
    Activation activation = Activation::relu;
    bool last = false;  // of its block
  };
  static Layer make_layer(ParameterStore& store, Trace& trace, const ResNetOptions& options, const LayerForm& form);
  static Layer make_stem(ParameterStore& store, Trace& trace, const ResNetOptions& options);
  // How a block differs from the others.
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

// v1 and v1.5 of 18, 34, 50, 101 and 152 layers for ImageNet, v1 of TensorFlow's official models, and 20, 32, 44, 56
// and 110 layers for CIFAR-10.
std::vector<Entry> resnet_entries();

}  // namespace dtrain::models
