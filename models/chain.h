// Chain: sequential builder of a model. It tracks the output shape while layers are added, so that each layer is
// declared once. Branches start at one point and are concatenated or added.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dtrain/layers.h"
#include "models/entry.h"

namespace dtrain::models {

// Padding scheme of convolutions and pools.
enum class Border {
  same,   // TensorFlow's SAME: ceil(size / stride) windows, the odd row or column at the bottom or right
  valid,  // no padding
  half,   // kernel / 2 rows and columns on each side, whatever the stride
};

// Weight initialiser of convolutions, unless ConvForm::init overrides it.
enum class ConvInit {
  variance_scaling,  // see initializers.h
  he_fan_out,        // default of Conv2d
};

// Defaults shared by all layers of a model.
struct LayerDefaults {
  BatchNormOptions batch_norm{};
  bool norm_scales = true;  // false: batch norms only shift; their gammas exist, but are frozen at 1
  ConvInit conv_init = ConvInit::variance_scaling;
};

struct ConvForm {
  Size2 stride = 1;
  Border border = Border::same;
  std::string norm{};  // path of the batch norm after the convolution; empty: no batch norm
  bool bias = true;    // ignored with a batch norm
  Activation activation = Activation::relu;
  std::optional<Init> init{};
  float initial_bias = 0;
};

struct LinearForm {
  Activation activation = Activation::relu;
  std::optional<Init> init{};  // default: truncated normal with variance 2 / in before a ReLU, else 1 / in
  float initial_bias = 0;
};

// The layers of a chain, applied in order.
struct Layers {
  std::vector<std::function<Var(Tape&, const Var&)>> list{};
  Var operator()(Tape& tape, const Var& x) const;
};

class Chain {
 public:
  // Empty chain that starts at the image. The communicator of `inputs` is passed to the batch norms.
  explicit Chain(const BuildInputs& inputs, LayerDefaults defaults = {});
  // Empty chain that starts at the end of this one. Its layer paths are relative to `path`, or to this chain's path if
  // `path` is empty.
  Chain branch(const std::string& path = {}) const;

  const Shape& shape() const { return shape_; }  // of the output for one image
  int64_t channels() const { return shape_[shape_.rank() - 1]; }

  // Each method adds a layer and returns this chain. Throws Error if the image is too small.
  Chain& conv(const std::string& path, int64_t channels, Size2 kernel, const ConvForm& form = {});
  // torchvision's BasicConv2d: convolution `<path>.conv` and batch norm `<path>.bn`, which overrides `form.norm`.
  Chain& basic_conv(const std::string& path, int64_t channels, Size2 kernel, ConvForm form = {});
  Chain& norm_relu(const std::string& path);
  Chain& max_pool(Size2 kernel, Size2 stride, Border border);
  // Averages over the cells of a window inside the image (count_include_pad=False).
  Chain& average_pool(Size2 kernel, Size2 stride, Border border);
  // [n, h, w, c] -> [n, c]
  Chain& global_average_pool();
  Chain& dropout(float rate);
  // Flattens images first.
  Chain& linear(const std::string& path, int64_t out, const LinearForm& form = {});
  // Adds any other layer with output shape `shape`.
  Chain& then(const Shape& shape, std::function<Var(Tape&, const Var&)> layer);

  // Concatenates the outputs of the branches along the channels. The branches start at the end of this chain.
  Chain& join(const std::vector<Chain>& branches);
  // Adds the outputs of two branches.
  Chain& add(const Chain& one, const Chain& other);

  const Layers& layers() const { return layers_; }

 private:
  std::string at(const std::string& path) const { return path_ + path; }
  template <class Layer>
  void trace(const Layer& layer);
  Padding padding(Size2 kernel, Size2 stride, Border border) const;
  BatchNorm make_norm(const std::string& path, int64_t channels);

  ParameterStore* store_;
  Trace* trace_;
  LayerDefaults defaults_;
  std::string path_;
  Shape shape_;
  Layers layers_;
};

}  // namespace dtrain::models
