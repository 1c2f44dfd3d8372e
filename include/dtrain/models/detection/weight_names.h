// Name and layout tables of detector weights in other programs, used by dtrain/models/detection/weight_files.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dtrain/autograd/parameters.h"

namespace dtrain::models {

// Array layouts. Both flatten an image before a linear layer in channel-major order.
enum class ArrayOrder {
  torch,      // convolutions (out, in, h, w), transposed ones (in, out, h, w), linear layers (out, in)
  tensorflow  // convolutions (h, w, in, out), transposed ones (h, w, out, in), linear layers (in, out)
};

// Class order of a layer's outputs; ours begins with background.
enum class ClassOrder {
  background_first,
  background_last,
  no_background  // no background; our background outputs are never read
};

struct LayerName {
  std::string_view ours, theirs;  // '#' matches a number
  int shift = 0;                  // added to our number to get theirs
  ClassOrder classes = ClassOrder::background_first;
  int outputs_per_class = 1;
  bool bgr = false;  // reads images, which are BGR there and RGB here
};

struct PartName {
  std::string_view ours, theirs;
};

struct WeightNames {
  std::string_view id, program;  // "tensorpack", "TensorPack"
  ArrayOrder order;
  // Prefix is the layer, suffix the part. Tables without layers and norms have our names.
  std::span<const LayerName> layers, norms;
  std::span<const PartName> of_layer, of_norm;
  // Substrings of names of known entries other than weights.
  std::span<const std::string_view> extras;
  std::span<const std::string_view> scores;  // their names of the class-score biases, in all detector variants
  // Their name of `ours` in the variant of this store's detector, given the name `theirs` in a detector with FPN and
  // batch norm; null: the names do not depend on the variant.
  std::string (*in_form)(const ParameterStore& store, const std::string& ours, std::string theirs) = nullptr;
  // Prefixes of our linear layers that are convolutions over the whole image there. Read are both.
  std::span<const std::string_view> convolutions{};
};

// Names of Detector, which are torchvision's.
const WeightNames& torchvision_names();
// torchvision, detectron2 and TensorPack, in this order.
std::span<const WeightNames* const> all_weight_names();

// Their name of a parameter or buffer of a Detector and its row in the layer table: "group0/block1/conv2/bn/mean/EMA"
// for "backbone.body.layer1.1.bn2.running_mean". The text is empty if they have no counterpart.
struct ForeignName {
  std::string text{};
  LayerName layer{};
};
ForeignName foreign_name(const WeightNames& names, const std::string& ours);
// The same for the detector variant in `store`.
ForeignName foreign_name(const WeightNames& names, const ParameterStore& store, const std::string& ours);

}  // namespace dtrain::models
