#include "dtrain/models/detection/detector.h"

#include <algorithm>

#include "dtrain/models/parts.h"
#include "dtrain/ops/concat_channels.h"
#include "dtrain/ops/crop_masks.h"
#include "dtrain/ops/gating.h"
#include "dtrain/ops/masked_losses.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/ops/roi_align.h"
#include "dtrain/ops/scalar_loss.h"
#include "dtrain/ops/slice_rows.h"
#include "libdtrain/ops/positive_samples.h"
#include "models/detection/cascade.h"

namespace dtrain::models {
namespace {

constexpr int kStages = 4;
const std::string kBody = "backbone.body.";

// Number of backbone stages applied to whole images; later ones are applied to regions.
size_t image_stages(const DetectorOptions& options) { return options.pyramid ? kStages : kStages - 1; }

// Options of the parts, as pyramid or C4 requires.
DetectorOptions resolved(DetectorOptions options) {
  DT_CHECK(options.classes >= 2, "detector: ", options.classes, " classes; expected at least 2, background included");
  DT_CHECK(!options.cascade || (options.pyramid && !options.stages.empty()), "detector: a cascade of ",
           options.stages.size(), " heads", options.pyramid ? "" : " without a pyramid",
           "; expected at least one head, and a pyramid");
  options.box.class_agnostic |= options.cascade;
  if (options.pyramid) return options;
  const C4Options& c4 = options.c4;
  DT_CHECK(c4.resolution >= 2 && c4.resolution % 2 == 0, "detector: regions of ", c4.resolution,
           " cells without a pyramid; expected an even number");
  DT_CHECK(options.backbone.norm != ConvNorm::batch || options.backbone.batch_norm.frozen,
           "detector: without a pyramid the fourth stage reads regions, of which some are padding; expected batch norm "
           "with constant statistics, group norm or none");
  options.rpn.single_map = true;
  options.rpn.channels = c4.rpn_channels;
  options.rpn.training = c4.training;
  options.rpn.evaluation = c4.evaluation;
  options.box.convolutions = options.box.linear_layers = options.mask.convolutions = 0;
  options.box.resolution = 1;  // spatial mean
  options.mask.resolution = c4.resolution / 2;
  return options;
}

ResNet make_backbone(ParameterStore& store, Trace& trace, const DetectorOptions& options) {
  const ParameterScope scope(store, kBody);
  return ResNet(store, trace, options.backbone, 0);
}

std::vector<int64_t> stage_channels(const ResNetOptions& options) {
  DT_CHECK(options.blocks.size() == kStages && !options.cifar, "detector: a backbone of ", options.blocks.size(),
           " stages; expected the ImageNet variant with ", kStages);
  const int64_t first = options.bottleneck ? 4 * options.width : options.width;
  return {first, 2 * first, 4 * first, 8 * first};
}

std::optional<Fpn> make_fpn(ParameterStore& store, const DetectorOptions& options) {
  const std::vector<int64_t> channels = stage_channels(options.backbone);
  if (!options.pyramid) return {};
  return Fpn(store, "backbone.fpn", channels, options.channels, options.pyramid_norm);
}

// Channels of the input of the RPN, and of the heads.
int64_t map_channels(const DetectorOptions& options) {
  return options.pyramid ? options.channels : stage_channels(options.backbone)[kStages - 2];
}
int64_t region_channels(const DetectorOptions& options) {
  return options.pyramid ? options.channels : stage_channels(options.backbone).back();
}

std::vector<BoxHead> make_box_heads(ParameterStore& store, const DetectorOptions& options) {
  std::vector<BoxHead> heads;
  const size_t count = options.cascade ? options.stages.size() : 1;
  for (size_t i = 0; i < count; ++i)
    heads.emplace_back(store, options.cascade ? "roi_heads.stage" + std::to_string(i + 1) : "roi_heads",
                       region_channels(options), options.classes, options.box);
  return heads;
}

MeanOver mean_of(const DetectorOptions& options) {
  return options.per_image_means ? MeanOver::images : MeanOver::batch;
}

// Capacity for the positives of a batch. On a CPU their exact number, since reading it does not stall.
int64_t positives_capacity(Context& context, const RoiSamples& regions, int64_t most) {
  if (!context.is_cpu()) return most;
  constexpr int64_t kStep = 8;
  const auto positives = static_cast<int64_t>(regions.totals.data<float>()[1]);
  return std::max((positives + kStep - 1) / kStep, int64_t{1}) * kStep;
}

// Number of chunks of the positives' capacity on a GPU. A captured CUDA graph skips the mask head of empty chunks by a
// condition on the device, without synchronisation and without dropping positives. More chunks would skip more, but
// their convolutions would underuse the device.
constexpr int64_t kMaskChunks = 4;

}  // namespace

Detector::Detector(ParameterStore& store, const DetectorOptions& options)
    : options_(resolved(options)),
      backbone_(make_backbone(store, trace_, options_)),
      fpn_(make_fpn(store, options_)),
      rpn_(store, "rpn", map_channels(options_), options_.rpn),
      box_heads_(make_box_heads(store, options_)) {
  if (options_.masks)
    mask_head_.emplace(store, "roi_heads", region_channels(options_), options_.classes, options_.mask);
}

void freeze(ParameterStore& store, const DetectorOptions& options) {
  for (int part = 0; part < options.freeze_at; ++part) {
    const std::string name = part == 0 ? "stem" : concat("layer", part);
    DT_CHECK(freeze_part(store, name), "freeze_at ", options.freeze_at, ": the backbone has no ", name);
  }
  if (options.freeze_norms)
    store.freeze([](const std::string& name) {
      return name.starts_with(kBody) && (name.find(".bn") != name.npos || name.find(".downsample.1.") != name.npos);
    });
}

Canvas Detector::canvas(Context& context, int64_t height, int64_t width) const {
  const std::vector<int> strides = fpn_ ? std::vector{4, 8, 16, 32, 64} : std::vector{16};
  return make_canvas(context, options_.rpn, strides, height, width);
}

std::vector<Var> Detector::features(Tape& tape, const Var& images) const {
  tape.part("backbone");
  const std::vector<Var> stages = backbone_.features(tape, images, image_stages(options_));
  tape.part("fpn");
  return fpn_ ? (*fpn_)(tape, stages) : std::vector{stages.back()};
}

Var Detector::align(Tape& tape, const std::vector<Var>& maps, const Tensor& rois, const Tensor& images,
                    int resolution) const {
  RoiAlignOptions options{
      .height = resolution, .width = resolution, .sampling_ratio = 2, .aligned = options_.aligned_rois};
  if (fpn_) {
    options.scales = {1.0f / 4, 1.0f / 8, 1.0f / 16, 1.0f / 32};
    const Tensor levels = roi_levels(tape.context(), rois, {.lowest = 2, .highest = 5});
    return roi_align(tape, std::span(maps).first(kStages), rois, images, levels, options);
  }
  options.height = options.width = options_.c4.resolution;
  options.scales = {1.0f / 16};
  return roi_align(tape, maps, rois, images, {}, options);
}

Var Detector::after_align(Tape& tape, const Var& aligned) const {
  return fpn_ ? aligned : backbone_.stage(tape, kStages - 1, aligned);
}

Var Detector::pool(Tape& tape, const std::vector<Var>& maps, const Tensor& rois, const Tensor& images,
                   int resolution) const {
  return after_align(tape, align(tape, maps, rois, images, resolution));
}

Var Detector::box_features(Tape& tape, const std::vector<Var>& maps, const Tensor& rois, const Tensor& images) const {
  const Var pooled = pool(tape, maps, rois, images, options_.box.resolution);
  if (!fpn_) return global_average_pool(tape, pooled);
  const auto heads = static_cast<float>(box_heads_.size());
  return heads > 1 ? scale_gradient(tape, pooled, 1 / heads) : pooled;
}

BoxCoder Detector::coder(size_t stage) const {
  BoxCoder coder = options_.box.coder;
  if (!options_.cascade) return coder;
  const auto& weights = options_.stages[stage].weights;
  coder.wx = weights[0], coder.wy = weights[1], coder.ww = weights[2], coder.wh = weights[3];
  return coder;
}

RoiSamples Detector::draw_regions(Tape& tape, const Tensor& proposals, const DetectionTruth& truth) const {
  Context& context = tape.context();
  const BoxHeadOptions& options = options_.box;
  const Tensor boxes = join_rows(context, {proposals, truth.boxes});
  const int64_t n = boxes.dim(0);
  const Tensor matched = context.empty({n, boxes.dim(1)}, DType::i32);
  match_boxes(context, boxes, {}, truth.boxes, truth.counts, truth.sizes, options.match, matched);
  sample_matches(context,
                 {.total = options.batch,
                  .positives = options.positives,
                  .stream = tape.next_stream() & UINT32_MAX,
                  .first_row = static_cast<uint64_t>(tape.share() * n)},
                 matched);
  const RoiSamples regions = empty_regions(context, n * options.batch);
  gather_samples(context, boxes, matched, truth.boxes, truth.classes, coder(0), regions);
  return regions;
}

Var Detector::box_loss(Tape& tape, const Var& deltas, const RoiSamples& regions, int64_t images) const {
  Context& context = tape.context();
  const int64_t r = regions.rois.dim(0);
  const Tensor weights = context.empty({r});
  region_weights(context, regions, images, mean_of(options_), weights);
  Var own = deltas;
  if (!options_.box.class_agnostic) {
    own = select_class(tape, reshape(tape, deltas, {r, 1, options_.classes, 4}), regions.classes);
    own = reshape(tape, own, {r, 4});
  }
  return smooth_l1(tape, own, regions.deltas, weights, options_.box.beta, {});
}

std::vector<std::pair<std::string, Var>> Detector::box_losses(Tape& tape, const std::vector<Var>& maps,
                                                              RoiSamples regions, const DetectionTruth& truth) const {
  std::vector<std::pair<std::string, Var>> losses;
  for (size_t stage = 0; stage < box_heads_.size(); ++stage) {
    tape.part("box head");
    const BoxHead::Output heads = box_heads_[stage](tape, box_features(tape, maps, regions.rois, regions.images));
    tape.part("box losses");
    const std::string name = options_.cascade ? concat("cascade_rcnn_stage", stage + 1, "_") : "";
    losses.emplace_back(name + "class_loss", softmax_cross_entropy(tape, heads.logits, regions.classes).loss);
    losses.emplace_back(name + "box_loss", box_loss(tape, heads.deltas, regions, truth.boxes.dim(0)));
    if (stage + 1 == box_heads_.size()) break;
    const Tensor boxes = refined_boxes(tape.context(), heads.deltas.value, regions.rois, truth.sizes, coder(stage));
    regions = refined_regions(tape.context(), boxes, truth, options_.stages[stage + 1].iou, coder(stage + 1));
  }
  return losses;
}

Var Detector::own_masks(Tape& tape, const Var& aligned, const Tensor& classes) const {
  const Var logits = (*mask_head_)(tape, after_align(tape, aligned));
  const int64_t m = logits.shape()[0], cells = logits.shape()[1] * logits.shape()[2];
  const Var own = select_class(tape, reshape(tape, logits, {m, cells, options_.classes, 1}), classes);
  return reshape(tape, own, {1, m * cells});
}

Var Detector::masks_of_positives(Tape& tape, const Var& aligned, const Tensor& classes, const Tensor& count) const {
  if (tape.context().is_cpu()) return own_masks(tape, aligned, classes);
  const int64_t m = classes.count(), rows = (m + kMaskChunks - 1) / kMaskChunks;
  std::vector<Var> chunks(static_cast<size_t>((m + rows - 1) / rows));
  // The first chunk always runs. It comes last, hence first in backward, and stores the gradients that others add to.
  for (size_t i = chunks.size(); i-- > 0;) {
    const int64_t begin = static_cast<int64_t>(i) * rows, end = std::min(m, begin + rows);
    const auto record = [&] {
      chunks[i] = own_masks(tape, slice_rows(tape, aligned, begin, end), classes.slice(begin, end));
    };
    if (i > 0)
      tape.run_or_skip(count, static_cast<float>(begin), record);
    else
      record();
  }
  return concat_channels(tape, chunks);
}

Var Detector::mask_loss(Tape& tape, const std::vector<Var>& maps, const RoiSamples& regions,
                        const DetectionTruth& truth) const {
  tape.part("mask head");
  Context& context = tape.context();
  const int64_t n = truth.boxes.dim(0);
  const int64_t m = positives_capacity(context, regions, n * options_.box.positives);
  const PositiveSamples positives{context.empty({m, 4}), context.empty({m}, DType::i32), context.empty({m}, DType::i32),
                                  context.empty({m}, DType::i32), context.empty({m})};
  gather_positives(context, regions, n, mean_of(options_), positives);
  ignore_unknown_masks(context, truth.masks, positives.images, positives.truth, positives.weights);
  const MaskHeadOptions& options = options_.mask;
  const Var aligned = align(tape, maps, positives.rois, positives.images, options.resolution);
  const Var own = masks_of_positives(tape, aligned, positives.classes, regions.totals.slice(1, 2));
  tape.part("mask loss");
  const int side = 2 * options.resolution;
  const int64_t cells = int64_t{side} * side;
  const Tensor targets = context.empty({m, side, side});
  crop_masks(
      context, truth.masks, positives.rois, positives.images, positives.truth,
      {.height = side, .width = side, .sampling_ratio = options.soft_targets ? 1 : 0, .aligned = options.soft_targets},
      targets);
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
  std::vector<std::pair<std::string, Var>> losses = {{"objectness_loss", rpn.objectness}, {"rpn_box_loss", rpn.boxes}};
  for (auto& loss : box_losses(tape, maps, regions, truth)) losses.push_back(std::move(loss));
  if (mask_head_) losses.emplace_back("mask_loss", mask_loss(tape, maps, regions, truth));

  std::vector<Var> terms;
  std::vector<Metric> metrics;
  for (const auto& [name, loss] : losses) {
    terms.push_back(loss);
    metrics.push_back({name, loss.value});
  }
  return {weighted_sum(tape, terms, std::vector<float>(terms.size(), 1)), metrics};
}

}  // namespace dtrain::models
