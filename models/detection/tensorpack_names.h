// Weights in TensorPack's files (.npz) of its examples/FasterRCNN and of AWS Mask R-CNN, for a detector here.
//   a convolution's W (h, w, in, out), a linear layer's W (in, out), a transposed convolution's W (h, w, out, in);
//   batch norm's gamma, beta, mean/EMA and variance/EMA; group norm's gamma and beta
// Images are BGR in TensorPack and RGB here: the first convolution's channels are turned round. A linear layer over an
// image flattens it channel by channel, as torchvision's does. Background is class 0 in both, and boxes are (class, x,
// y, w, h) in the same order.
#pragma once

#include <string>

#include "libdtrain/train/weights.h"

namespace dtrain::models {

// TensorPack's name for a parameter or buffer of a Detector: "group0/block1/conv2/bn/mean/EMA" for
// "backbone.body.layer1.1.bn2.running_mean". Empty where it has none. Norms of the backbone are taken for batch norms,
// and layers of the heads for those of a detector with a pyramid; the other overload looks into the detector's `store`.
std::string tensorpack_name(const std::string& name);
std::string tensorpack_name(ParameterStore& store, const std::string& name);

// The other way round; a trailing ":0", as TensorFlow has it, is ignored. Empty where it is none of a Detector's.
std::string name_of_tensorpack(const std::string& name);

// Loads what fits by name and shape into a Detector's parameters, as load_weights() does. TensorPack predicts no mask
// of the background: that channel of ours keeps its values, for it is never read. What belongs to the file's optimiser
// or to ImageNet's classifier is expected and ignored. Throws as load_weights() does.
WeightReport load_tensorpack(ParameterStore& store, const std::string& path, Fault fault = Fault::data);

}  // namespace dtrain::models
