// What other programs call the weights of a Detector, and how the elements of their arrays lie: a table per program,
// from which its files are read and written. models/detection/weight_files.h does both.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libdtrain/autograd/parameters.h"

namespace dtrain::models {

// Layouts of arrays. A linear layer over an image flattens it channel by channel in both.
enum class ArrayOrder {
  torch,      // convolutions (out, in, h, w), transposed ones (in, out, h, w), linear layers (out, in)
  tensorflow  // convolutions (h, w, in, out), transposed ones (h, w, out, in), linear layers (in, out)
};

// Which classes the outputs of a layer are of, one after the other; ours begin with background.
enum class ClassOrder {
  background_first,
  background_last,
  no_background  // nobody reads our outputs for it
};

struct LayerName {
  std::string_view ours, theirs;  // '#' stands for a number
  int shift = 0;                  // their first number is larger by it
  ClassOrder classes = ClassOrder::background_first;
  int outputs_per_class = 1;
  bool bgr = false;  // it reads images, whose channels are blue, green and red there, and red, green and blue here
};

struct PartName {
  std::string_view ours, theirs;
};

struct WeightNames {
  std::string_view id, program;  // "tensorpack", "TensorPack"
  ArrayOrder order;
  // Of a name come first the layer, then the part. Without layers and norms the names are ours.
  std::span<const LayerName> layers, norms;
  std::span<const PartName> of_layer, of_norm;
  // What such files hold besides: their names contain one of these.
  std::span<const std::string_view> extras;
  std::span<const std::string_view> scores;  // their biases of the layers that score classes, in all forms of detectors
  // Their name for `ours` in the form of a store's detector, where `theirs` is that of a detector with a pyramid and
  // batch norm; null: all forms have the same.
  std::string (*in_form)(const ParameterStore& store, const std::string& ours, std::string theirs) = nullptr;
};

// The names that a Detector itself has, which are torchvision's.
const WeightNames& torchvision_names();
// All three, torchvision's first.
std::span<const WeightNames* const> all_weight_names();

// Their name for a parameter or buffer of a Detector, and the layer of the table that it belongs to: "group0/block1/
// conv2/bn/mean/EMA" for "backbone.body.layer1.1.bn2.running_mean". The text is empty where they have none.
struct ForeignName {
  std::string text{};
  LayerName layer{};
};
ForeignName foreign_name(const WeightNames& names, const std::string& ours);
// The same in the form of the detector whose parameters the store has.
ForeignName foreign_name(const WeightNames& names, const ParameterStore& store, const std::string& ours);

}  // namespace dtrain::models
