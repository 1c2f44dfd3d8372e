// Ops of two-stage detectors of version 0.1.
#include <cstdio>

#include "libdtrain/ops/anchors.h"
#include "libdtrain/ops/boxes.h"
#include "libdtrain/ops/crop_runs.h"
#include "libdtrain/ops/masked_losses.h"
#include "libdtrain/ops/match_boxes.h"
#include "libdtrain/ops/mined_cross_entropy.h"
#include "libdtrain/ops/mix_pixels.h"
#include "libdtrain/ops/roi_align.h"
#include "libdtrain/ops/roi_samples.h"
#include "libdtrain/ops/top_k.h"
#include "libdtrain/testing/array.h"

using namespace dtrain;

// Masks of one image, cropped to regions.
Tensor crop(Context& context, const RunImages& masks, const Tensor& rois, const Tensor& images, const Tensor& which) {
  const CropOptions options{.height = 14, .width = 14};
  const Tensor y = context.empty({rois.dim(0), options.height, options.width});
  crop_runs(context, masks, rois, images, which, options, y);
  return y;
}

int main() {
  const auto context = make_cpu_context();
  const AnchorOptions options{.sizes = {32, 64}, .ratios = {0.5f, 1, 2}, .stride_h = 16, .stride_w = 16};
  const std::vector<float> corners = make_anchors(options, 4, 4);
  const Tensor anchors = to_device(*context, {static_cast<int64_t>(corners.size() / 4), 4}, corners);
  const Tensor iou = context->empty({anchors.dim(0), anchors.dim(0)});
  box_iou(*context, anchors, anchors, /*plus_one=*/false, iou);
  Tape tape(*context);
  const Var x = tape.variable(to_device(*context, random_array({2, 4}, 1)));
  const Tensor zeros = context->zeros({2, 4}), ones = to_device(*context, {2}, std::vector<float>{1, 1});
  const Var loss = smooth_l1(tape, x, zeros, ones, /*beta=*/1, {.constant = 8});
  tape.backward(loss);
  const BoxCoder coder{.wx = 10, .wy = 10, .ww = 5, .wh = 5};
  const MatchOptions matching{.positive = 0.5f, .negative = 0.5f};
  const SampleOptions sampling{.total = 64, .positives = 16};
  const NmsOptions suppression{.threshold = 0.7f};
  const RoiLevels levels{.plus_one = true};
  const PixelMixing mixing{.value = Erased::black};
  std::printf("%.2f %.2f %.2f %d %.2f %d %d\n", coder.wx, to_host(*context, iou)[0], matching.positive, sampling.total,
              suppression.threshold, levels.highest, static_cast<int>(mixing.value));
  static_cast<void>(&crop), static_cast<void>(&roi_align), static_cast<void>(&gather_samples);
  static_cast<void>(&mined_cross_entropy);
  return to_host(*context, iou)[0] == 1 ? 0 : 1;
}
