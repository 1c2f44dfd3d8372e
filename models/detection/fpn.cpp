#include "dtrain/models/detection/fpn.h"

#include <cmath>

#include "dtrain/models/resnet.h"
#include "dtrain/ops/upsample.h"

namespace dtrain::models {
namespace {

// Glorot uniform with fan-in only, as in TensorPack and torchvision.
Init by_fan_in(int64_t fan_in) { return Init::uniform(std::sqrt(3.0f / static_cast<float>(fan_in))); }

Var normalized(Tape& tape, const Var& x, const std::vector<GroupNorm>& norms, size_t i) {
  return norms.empty() ? x : norms[i](tape, x);
}

}  // namespace

Fpn::Fpn(ParameterStore& store, const std::string& path, const std::vector<int64_t>& in_channels, int64_t channels,
         bool group_norm) {
  for (size_t i = 0; i < in_channels.size(); ++i) {
    const std::string block = path + ".inner_blocks." + std::to_string(i);
    inner.emplace_back(store, block + ".0", in_channels[i], channels, 1,
                       Conv2d::Options{.bias = true, .init = by_fan_in(in_channels[i])});
    if (group_norm) inner_norms.emplace_back(store, block + ".1", channels, kNormGroups);
  }
  for (size_t i = 0; i < in_channels.size(); ++i) {
    const std::string block = path + ".layer_blocks." + std::to_string(i);
    layer.emplace_back(store, block + ".0", channels, channels, 3,
                       Conv2d::Options{.conv = {.padding = 1}, .bias = true, .init = by_fan_in(9 * channels)});
    if (group_norm) layer_norms.emplace_back(store, block + ".1", channels, kNormGroups);
  }
}

std::vector<Var> Fpn::operator()(Tape& tape, const std::vector<Var>& stages) const {
  DT_CHECK(stages.size() == inner.size(), "FPN: ", stages.size(), " stages, expected ", inner.size());
  std::vector<Var> maps(stages.size());
  Var top;
  for (size_t i = stages.size(); i-- > 0;) {
    const Var lateral = normalized(tape, inner[i](tape, stages[i]), inner_norms, i);
    top = i + 1 == stages.size() ? lateral
                                 : upsample_nearest(tape, top, lateral.value.dim(1), lateral.value.dim(2), &lateral);
    maps[i] = normalized(tape, layer[i](tape, top), layer_norms, i);
  }
  maps.push_back(max_pool(tape, maps.back(), {.kernel = 1, .stride = 2, .padding = 0}));
  return maps;
}

}  // namespace dtrain::models
