#include "models/detection/detector.h"

#include <algorithm>

#include "libdtrain/ops/concat_channels.h"
#include "libdtrain/ops/crop_runs.h"
#include "libdtrain/ops/masked_losses.h"
#include "libdtrain/ops/pointwise.h"
#include "libdtrain/ops/positive_samples.h"
#include "libdtrain/ops/roi_align.h"
#include "libdtrain/ops/scalar_loss.h"

namespace dtrain::models {
namespace {

constexpr int kStages = 4;
const std::string kBody = "backbone.body.";

ResNet make_backbone(ParameterStore& store, Trace& trace, const DetectorOptions& options) {
  const ParameterScope scope(store, kBody);
  return ResNet(store, trace, options.backbone, 0);
}

std::vector<int64_t> stage_channels(const ResNetOptions& options) {
  DT_CHECK(options.blocks.size() == kStages && !options.cifar, "detector: a backbone of ", options.blocks.size(),
           " stages; expected ImageNet's form, of ", kStages);
  const int64_t first = options.bottleneck ? 256 : 64;
  return {first, 2 * first, 4 * first, 8 * first};
}

MeanOver mean_of(const DetectorOptions& options) {
  return options.per_image_means ? MeanOver::images : MeanOver::batch;
}

// Room for the positives of a batch. A processor makes as much as there are, since it need not know beforehand.
int64_t room_for_positives(Context& context, const RoiSamples& regions, int64_t most) {
  if (!context.is_cpu()) return most;
  constexpr int64_t kStep = 8;
  const auto positives = static_cast<int64_t>(regions.totals.data<float>()[1]);
  return std::max((positives + kStep - 1) / kStep, int64_t{1}) * kStep;
}

}  // namespace

Detector::Detector(ParameterStore& store, const DetectorOptions& options)
    : options_(options),
      backbone_(make_backbone(store, trace_, options)),
      fpn_(store, "backbone.fpn", stage_channels(options.backbone), options.channels),
      rpn_(store, "rpn", options.channels, options.rpn),
      box_head_(store, "roi_heads", options.channels, options.classes, options.box) {
  DT_CHECK(options.classes >= 2, "detector: ", options.classes, " classes; expected background and at least another");
  if (options.masks) mask_head_.emplace(store, "roi_heads", options.channels, options.classes, options.mask);
}

void freeze(ParameterStore& store, const DetectorOptions& options) {
  if (options.freeze_at >= 1)
    for (const char* part : {"conv1.", "bn1."}) store.freeze(kBody + part);
  for (int stage = 1; stage < options.freeze_at; ++stage) store.freeze(kBody + "layer" + std::to_string(stage) + ".");
  if (options.freeze_norms)
    store.freeze([](const std::string& name) {
      return name.starts_with(kBody) && (name.find(".bn") != name.npos || name.find(".downsample.1.") != name.npos);
    });
}

Canvas Detector::canvas(Context& context, int64_t height, int64_t width) const {
  return make_canvas(context, options_.rpn, {4, 8, 16, 32, 64}, height, width);
}

std::vector<Var> Detector::features(Tape& tape, const Var& images) const {
  tape.part("backbone");
  const std::vector<Var> stages = backbone_.features(tape, images);
  tape.part("fpn");
  return fpn_(tape, stages);
}

Var Detector::pool(Tape& tape, const std::vector<Var>& maps, const Tensor& rois, const Tensor& images,
                   int resolution) const {
  const Tensor levels = roi_levels(tape.context(), rois, {.lowest = 2, .highest = 5});
  return roi_align(tape, std::span(maps).first(kStages), rois, images, levels,
                   {.height = resolution,
                    .width = resolution,
                    .sampling_ratio = 2,
                    .aligned = options_.aligned_rois,
                    .scales = {1.0f / 4, 1.0f / 8, 1.0f / 16, 1.0f / 32}});
}

RoiSamples Detector::draw_regions(Tape& tape, const Tensor& proposals, const DetectionTruth& truth) const {
  Context& context = tape.context();
  const BoxHeadOptions& options = options_.box;
  const Tensor boxes = join_rows(context, {proposals, truth.boxes});
  const int64_t n = boxes.dim(0), r = n * options.batch;
  const Tensor matched = context.empty({n, boxes.dim(1)}, DType::i32);
  match_boxes(context, boxes, {}, truth.boxes, truth.counts, truth.sizes, options.match, matched);
  sample_matches(context,
                 {.total = options.batch,
                  .positives = options.positives,
                  .stream = tape.next_stream() & UINT32_MAX,
                  .first_row = static_cast<uint64_t>(tape.share() * n)},
                 matched);
  const RoiSamples regions{context.empty({r, 4}),          context.empty({r}, DType::i32),
                           context.empty({r}, DType::i32), context.empty({r}, DType::i32),
                           context.empty({r, 4}),          context.empty({2})};
  gather_samples(context, boxes, matched, truth.boxes, truth.classes, options.coder, regions);
  return regions;
}

Var Detector::box_loss(Tape& tape, const Var& deltas, const RoiSamples& regions, int64_t images) const {
  Context& context = tape.context();
  const int64_t r = regions.rois.dim(0);
  const Tensor weights = context.empty({r});
  region_weights(context, regions, images, mean_of(options_), weights);
  const Var own = select_class(tape, reshape(tape, deltas, {r, 1, options_.classes, 4}), regions.classes);
  return smooth_l1(tape, reshape(tape, own, {r, 4}), regions.deltas, weights, options_.box.beta, {});
}

Var Detector::mask_loss(Tape& tape, const std::vector<Var>& maps, const RoiSamples& regions,
                        const DetectionTruth& truth) const {
  Context& context = tape.context();
  const int64_t n = truth.boxes.dim(0);
  const int64_t m = room_for_positives(context, regions, n * options_.box.positives);
  const PositiveSamples positives{context.empty({m, 4}), context.empty({m}, DType::i32), context.empty({m}, DType::i32),
                                  context.empty({m}, DType::i32), context.empty({m})};
  gather_positives(context, regions, n, mean_of(options_), positives);
  const MaskHeadOptions& options = options_.mask;
  const Var logits = (*mask_head_)(tape, pool(tape, maps, positives.rois, positives.images, options.resolution));
  tape.part("mask loss");
  const int side = 2 * options.resolution;
  const int64_t cells = int64_t{side} * side;
  const Tensor targets = context.empty({m, side, side});
  crop_runs(
      context, truth.masks, positives.rois, positives.images, positives.truth,
      {.height = side, .width = side, .sampling_ratio = options.soft_targets ? 1 : 0, .aligned = options.soft_targets},
      targets);
  const Var own = select_class(tape, reshape(tape, logits, {m, cells, options_.classes, 1}), positives.classes);
  return sigmoid_cross_entropy(tape, reshape(tape, own, {m, cells}), targets.view({m, cells}), positives.weights,
                               {.constant = static_cast<float>(cells)});
}

Loss Detector::loss(Tape& tape, const Canvas& canvas, const Var& images, const DetectionTruth& truth) const {
  const std::vector<Var> maps = features(tape, images);
  tape.part("rpn");
  const Rpn::Output dense = rpn_(tape, maps);
  tape.part("rpn losses");
  const Rpn::Losses rpn = rpn_.losses(tape, dense, canvas, truth);
  tape.part("proposals");
  const Proposals proposals = rpn_.propose(tape.context(), dense, canvas, truth.sizes, true);
  const RoiSamples regions = draw_regions(tape, proposals.boxes, truth);
  tape.part("box head");
  const BoxHead::Output heads =
      box_head_(tape, pool(tape, maps, regions.rois, regions.images, options_.box.resolution));
  tape.part("box losses");
  const Var classes = softmax_cross_entropy(tape, heads.logits, regions.classes).loss;
  const Var boxes = box_loss(tape, heads.deltas, regions, truth.boxes.dim(0));

  std::vector<Var> terms = {rpn.objectness, rpn.boxes, classes, boxes};
  std::vector<Metric> metrics = {{"objectness_loss", rpn.objectness.value},
                                 {"rpn_box_loss", rpn.boxes.value},
                                 {"class_loss", classes.value},
                                 {"box_loss", boxes.value}};
  if (mask_head_) {
    tape.part("mask head");
    terms.push_back(mask_loss(tape, maps, regions, truth));
    metrics.push_back({"mask_loss", terms.back().value});
  }
  return {weighted_sum(tape, terms, std::vector<float>(terms.size(), 1)), metrics};
}

}  // namespace dtrain::models
