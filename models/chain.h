// Chain: layers that are applied one after the other. It knows the shape of what it gives while it is built, so that a
// layer is stated once: where it is added. Where a model branches, chains that begin at one place are joined or added.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "libdtrain/layers.h"
#include "models/entry.h"

namespace dtrain::models {

// What is beyond the border of an image.
enum class Border {
  same,   // as much padding as makes ceil(size / stride) windows, the odd row or column at the bottom or the right
  valid,  // nothing: windows lie inside the image
  half,   // kernel / 2 rows and columns on each side, whatever the stride is
};

// Where convolutions take their first weights from, unless a ConvForm says otherwise.
enum class ConvInit {
  variance_scaling,  // see initializers.h
  he_fan_out,        // Conv2d's own
};

// What the layers of a model have in common.
struct LayerDefaults {
  BatchNormOptions batch_norm{};
  bool norm_scales = true;  // false: batch norms shift alone; their weights are there, but frozen at 1
  ConvInit conv_init = ConvInit::variance_scaling;
};

struct ConvForm {
  Size2 stride = 1;
  Border border = Border::same;
  std::string norm{};  // the path of the batch norm that follows; empty: there is none
  bool bias = true;    // where there is no batch norm
  Activation activation = Activation::relu;
  std::optional<Init> init{};
  float initial_bias = 0;
};

struct LinearForm {
  Activation activation = Activation::relu;
  std::optional<Init> init{};  // by default truncated normal, of variance 2 / in before a ReLU, else 1 / in
  float initial_bias = 0;
};

// One after the other: what a chain is once it has been built.
struct Layers {
  std::vector<std::function<Var(Tape&, const Var&)>> list{};
  Var operator()(Tape& tape, const Var& x) const;
};

class Chain {
 public:
  // An empty one, that begins at the image. The communicator of `inputs` goes into the batch norms' options.
  explicit Chain(const BuildInputs& inputs, LayerDefaults defaults = {});
  // An empty one, that begins where this one ends. The paths of its layers are relative to `path`, where that is given,
  // and else to this one's.
  Chain branch(const std::string& path = {}) const;

  const Shape& shape() const { return shape_; }  // of what it makes of one image
  int64_t channels() const { return shape_[shape_.rank() - 1]; }

  // Each adds a layer and returns this chain. They throw Error where an image is too small.
  Chain& conv(const std::string& path, int64_t channels, Size2 kernel, const ConvForm& form = {});
  // torchvision's BasicConv2d: `<path>.conv`, and `<path>.bn` in place of what `form` says about a norm.
  Chain& basic_conv(const std::string& path, int64_t channels, Size2 kernel, ConvForm form = {});
  Chain& norm_relu(const std::string& path);
  Chain& max_pool(Size2 kernel, Size2 stride, Border border);
  // The mean of those cells of a window that are inside the image.
  Chain& average_pool(Size2 kernel, Size2 stride, Border border);
  // [n, h, w, c] -> [n, c]
  Chain& global_average_pool();
  Chain& dropout(float rate);
  // Flattens images.
  Chain& linear(const std::string& path, int64_t out, const LinearForm& form = {});
  // Any other, which gives `shape`.
  Chain& then(const Shape& shape, std::function<Var(Tape&, const Var&)> layer);

  // What the branches give, along the channels one after another. They begin where this chain ends.
  Chain& join(const std::vector<Chain>& branches);
  // The sum of what two branches give.
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
