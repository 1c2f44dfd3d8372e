#include "dtrain/models/detection/heads.h"

#include <cmath>

#include "dtrain/ops/pointwise.h"

namespace dtrain::models {
namespace {

// The first linear layer flattens an image, the others read vectors.
std::vector<Linear> make_linears(ParameterStore& store, const std::string& path, int64_t image_channels,
                                 const BoxHeadOptions& options) {
  std::vector<Linear> linears;
  int64_t in = image_channels * options.resolution * options.resolution;
  for (int i = 0; i < options.linear_layers; ++i) {
    linears.emplace_back(store, path + "." + linear_name(options, i), in, options.features,
                         Init::uniform(std::sqrt(3.0f / static_cast<float>(in))), i == 0 ? image_channels : 0);
    in = options.features;
  }
  return linears;
}

int64_t features_of(int64_t image_channels, const BoxHeadOptions& options) {
  return options.linear_layers > 0 ? options.features : image_channels * options.resolution * options.resolution;
}

int64_t boxes_of(int64_t classes, const BoxHeadOptions& options) { return options.class_agnostic ? 1 : classes; }

int64_t channels_after(int64_t channels, const BoxHeadOptions& options) {
  return options.convolutions > 0 ? options.channels : channels;
}

}  // namespace

std::string linear_name(const BoxHeadOptions& options, int i) {
  return options.convolutions > 0 ? std::to_string(options.convolutions + 1 + 2 * i) : "fc" + std::to_string(6 + i);
}

ConvTower::ConvTower(ParameterStore& store, const std::string& path, int count, int64_t in, int64_t channels,
                     bool group_norm, bool norm_after_relu)
    : relu_first(norm_after_relu) {
  for (int i = 0; i < count; ++i) {
    const std::string layer = path + "." + std::to_string(i);
    convs.emplace_back(store, layer + ".0", i == 0 ? in : channels, channels, 3,
                       Conv2d::Options{.conv = {.padding = 1}, .bias = !group_norm || norm_after_relu});
    if (group_norm) norms.emplace_back(store, layer + ".1", channels, kNormGroups);
  }
}

Var ConvTower::operator()(Tape& tape, const Var& x) const {
  Var y = x;
  for (size_t i = 0; i < convs.size(); ++i) {
    y = convs[i](tape, y);
    if (relu_first) y = relu(tape, y);
    if (!norms.empty()) y = norms[i](tape, y);
    if (!relu_first) y = relu(tape, y);
  }
  return y;
}

BoxHead::BoxHead(ParameterStore& store, const std::string& path, int64_t channels, int64_t classes,
                 const BoxHeadOptions& o)
    : tower(store, path + ".box_head", o.convolutions, channels, o.channels, o.group_norm, o.norm_after_relu),
      linears(make_linears(store, path + ".box_head", channels_after(channels, o), o)),
      cls_score(store, path + ".box_predictor.cls_score", features_of(channels_after(channels, o), o), classes,
                Init::normal(0.01f)),
      bbox_pred(store, path + ".box_predictor.bbox_pred", features_of(channels_after(channels, o), o),
                4 * boxes_of(classes, o), Init::normal(0.001f)) {}

BoxHead::Output BoxHead::operator()(Tape& tape, const Var& regions) const {
  Var y = flatten(tape, tower(tape, regions));
  for (const Linear& linear : linears) y = relu(tape, linear(tape, y));
  return {cls_score(tape, y), bbox_pred(tape, y)};
}

MaskHead::MaskHead(ParameterStore& store, const std::string& path, int64_t channels, int64_t classes,
                   const MaskHeadOptions& o)
    : tower(store, path + ".mask_head", o.convolutions, channels, o.channels, o.group_norm, o.norm_after_relu),
      conv5_mask(store, path + ".mask_predictor.conv5_mask", o.convolutions > 0 ? o.channels : channels, o.channels, 2,
                 {.conv = {.stride = 2}, .bias = true}),
      mask_fcn_logits(store, path + ".mask_predictor.mask_fcn_logits", o.channels, classes, 1, {.bias = true}) {}

Var MaskHead::operator()(Tape& tape, const Var& regions) const {
  return mask_fcn_logits(tape, relu(tape, conv5_mask(tape, tower(tape, regions))));
}

}  // namespace dtrain::models
