#include "dtrain/models/ssd300_weights.h"

#include <algorithm>
#include <array>

#include "dtrain/models/detection/weight_files.h"
#include "libdtrain/train/checkpoint_files.h"

namespace dtrain::models {
namespace {

// Layers of the classifier after the third stage.
bool is_left_out(const std::string& name) { return name.starts_with("layer4.") || name.starts_with("fc."); }

}  // namespace

std::string load_ssd_backbone(ParameterStore& store, const SsdOptions& options, const std::string& path, Fault fault) {
  DT_CHECK(store.allocated(), "load_ssd_backbone: the store holds no values before ParameterStore::allocate()");
  // Separate store, because the file may also have names of the SSD layers.
  ParameterStore backbone(store.context());
  Trace trace(kSsdSide);
  const ResNet network(backbone, trace, ssd_backbone(options), 0);
  backbone.allocate(0, {.gradients = false});
  const std::string file = weights_file(path, fault);
  const std::array names = {&torchvision_names()};
  WeightReport report = load_by_names(backbone, names, file, fault).report;
  std::erase_if(report.unexpected, is_left_out);
  if (!report.complete()) throw Error(fault, concat(file, ": does not fit the backbone of SSD300: ", report.summary()));
  const auto take = [&](const std::string& name, const Tensor& value, const auto* to) {
    DT_CHECK(to && to->value.shape() == value.shape(), "load_ssd_backbone: the store has no ", name, " of shape ",
             value.shape());
    store.context().copy(value, to->value);
  };
  for (const Parameter& from : backbone.parameters()) take(from.name, from.value, store.find(from.name));
  for (const Buffer& from : backbone.buffers()) take(from.name, from.value, store.find_buffer(from.name));
  store.refresh_compute();
  return file;
}

}  // namespace dtrain::models
