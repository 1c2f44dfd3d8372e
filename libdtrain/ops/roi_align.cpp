#include "dtrain/ops/roi_align.h"

#include <algorithm>

#include "dtrain/core/dispatch.h"
#include "libdtrain/ops/pointwise_kernels.h"
#include "libdtrain/ops/roi_align_kernels.h"

namespace dtrain {
namespace {

void require_maps(std::span<const Var> maps, const RoiAlignOptions& options) {
  DT_CHECK(!maps.empty() && maps.size() <= kMostRoiMaps && maps.size() == options.scales.size(),
           "roi_align: ", maps.size(), " maps and ", options.scales.size(), " scales; expected one each, ",
           kMostRoiMaps, " at most");
  const Tensor& first = maps[0].value;
  for (const Var& map : maps) {
    DT_CHECK(map.shape().rank() == 4 && map.shape().count() > 0 && map.shape()[0] == first.dim(0) &&
                 map.shape()[3] == first.dim(3) && map.value.dtype() == first.dtype(),
             "roi_align: maps ", first.shape(), " of ", first.dtype(), " and ", map.shape(), " of ", map.value.dtype(),
             "; expected [n, h, w, c] with equal n and c, of one type");
    DT_CHECK(std::max(map.shape()[1], map.shape()[2]) < 1 << 24, "roi_align: a map ", map.shape(),
             "; expected sides that an f32 holds exactly");
  }
}

void require_rois(const Tensor& rois, const Tensor& images, const Tensor& levels, size_t maps) {
  DT_CHECK(rois.shape().rank() == 2 && rois.dim(1) == 4 && rois.dtype() == DType::f32, "roi_align: regions ",
           rois.shape(), " of ", rois.dtype(), ", expected [r, 4] of f32");
  const auto fits = [&](const Tensor& x) { return x.shape() == Shape{rois.dim(0)} && x.dtype() == DType::i32; };
  DT_CHECK(fits(images), "roi_align: images ", images.shape(), " of ", images.dtype(), ", expected [", rois.dim(0),
           "] of i32");
  DT_CHECK(levels ? fits(levels) : maps == 1, "roi_align: levels ", levels.shape(), " of ", levels.dtype(),
           ", expected [", rois.dim(0), "] of i32 where there are ", maps, " maps");
}

}  // namespace

Var roi_align(Tape& tape, std::span<const Var> maps, const Tensor& rois, const Tensor& images, const Tensor& levels,
              const RoiAlignOptions& options) {
  require_maps(maps, options);
  require_rois(rois, images, levels, maps.size());
  DT_CHECK(options.height >= 1 && options.width >= 1 && options.sampling_ratio >= 0, "roi_align: ", options.height,
           " x ", options.width, " cells and sampling ratio ", options.sampling_ratio,
           "; expected at least one cell, and no negative ratio");
  Context& context = tape.context();
  const Tensor& first = maps[0].value;
  const Tensor y = context.empty({rois.dim(0), options.height, options.width, first.dim(3)}, first.dtype());
  std::vector<Tensor> values;
  std::vector<const Var*> inputs;
  std::vector<Var> slots;
  for (const Var& map : maps) {
    values.push_back(map.value);
    inputs.push_back(&map);
    slots.push_back(map.without_value());
  }
  DT_DISPATCH(context, roi_align)(values, rois, images, levels, options, y);
  return tape.record("roi_align", y, inputs, [slots, rois, images, levels, options](Tape& t, const Tensor& dy) {
    std::vector<Tensor> dmaps;
    std::vector<uint8_t> add;
    for (const Var& slot : slots) {
      const auto target = t.grad_target(slot);
      dmaps.push_back(target ? target->dx : Tensor());
      add.push_back(target && target->add);
    }
    DT_DISPATCH(t.context(), roi_align_grad)(dy, rois, images, levels, options, dmaps, add);
  });
}

Tensor roi_levels(Context& context, const Tensor& rois, const RoiLevels& options) {
  DT_CHECK(rois.shape().rank() == 2 && rois.dim(1) == 4 && rois.dtype() == DType::f32, "roi_levels: regions ",
           rois.shape(), " of ", rois.dtype(), ", expected [r, 4] of f32");
  DT_CHECK(options.lowest <= options.highest && options.canonical_size > 0, "roi_levels: maps ", options.lowest, " to ",
           options.highest, " and a canonical size of ", options.canonical_size,
           "; expected at least one map, and a positive size");
  const Tensor levels = context.empty({rois.dim(0)}, DType::i32);
  DT_DISPATCH(context, roi_levels)(rois, options, levels);
  return levels;
}

}  // namespace dtrain
