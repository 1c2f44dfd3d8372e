// Detector::detect: score threshold, per-class non-maximum suppression and masks.
#include <algorithm>

#include "dtrain/models/detection/detector.h"
#include "dtrain/ops/gating.h"
#include "dtrain/ops/masked_losses.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/ops/top_k.h"
#include "libdtrain/ops/candidates.h"
#include "libdtrain/ops/positive_samples.h"
#include "models/detection/rows.h"

namespace dtrain::models {
namespace {

std::vector<int32_t> on_host(Context& context, const Tensor& counts) {
  std::vector<int32_t> values(static_cast<size_t>(counts.count()));
  context.download(counts, values.data(), "detect");
  return values;
}

// Maximum number of candidates in any image, of at most `all`.
int64_t candidates_capacity(Context& context, const Tensor& passed, int64_t all) {
  constexpr int64_t kStep = 64;
  const std::vector<int32_t> counts = on_host(context, passed);
  const int64_t most = *std::ranges::max_element(counts);
  return std::min((most / kStep + 1) * kStep, all);
}

struct Rows {
  Tensor places;  // [1, m] i32: indices of the detections of all images among n * d places
  Tensor images;  // [m] i32
};

// Rows of images with counts[i] of `places` places each.
Rows rows_taken(Context& context, const std::vector<int32_t>& counts, int64_t places) {
  std::vector<int32_t> rows, images;
  for (size_t image = 0; image < counts.size(); ++image)
    for (int32_t i = 0; i < counts[image]; ++i) {
      rows.push_back(static_cast<int32_t>(static_cast<int64_t>(image) * places + i));
      images.push_back(static_cast<int32_t>(image));
    }
  const auto m = static_cast<int64_t>(rows.size());
  const Rows taken{context.empty({1, m}, DType::i32), context.empty({m}, DType::i32)};
  if (m == 0) return taken;
  context.upload(rows.data(), taken.places);
  context.upload(images.data(), taken.images);
  return taken;
}

}  // namespace

Detections Detector::detect(Tape& tape, const Canvas& canvas, const Var& images, const Tensor& sizes) const {
  DT_CHECK(!tape.training(), "detect: the tape records; expected Mode::eval");
  const std::vector<Var> maps = features(tape, images);
  tape.part("rpn");
  const Rpn::Output dense = rpn_(tape, maps);
  tape.part("proposals");
  const Proposals proposals = rpn_.propose(tape.context(), dense, canvas, sizes, false);
  Detections found = find_boxes(tape, maps, proposals, sizes);
  found.proposals = proposals;
  if (mask_head_) found.masks = masks_of(tape, maps, found);
  return found;
}

Detector::Scored Detector::score_regions(Tape& tape, const std::vector<Var>& maps, const Tensor& rois,
                                         const Tensor& images, const Tensor& sizes) const {
  Context& context = tape.context();
  const int64_t r = rois.dim(0), c = options_.classes, k = options_.box.class_agnostic ? 1 : c;
  Scored scored;
  Tensor regions = rois;
  for (size_t stage = 0; stage < box_heads_.size(); ++stage) {
    tape.part("box head");
    const BoxHead::Output heads = box_heads_[stage](tape, box_features(tape, maps, regions, images));
    tape.part("boxes");
    scored.boxes = context.empty({r, k, 4});
    decode_boxes(context, heads.deltas.value.view({r, k, 4}), regions, sizes, coder(stage), scored.boxes);
    const Tensor probabilities = softmax(context, heads.logits.value);
    if (stage == 0)
      scored.probabilities = probabilities;
    else
      accumulate(context, probabilities, scored.probabilities);
    if (options_.cascade) regions = scored.boxes.view({r, 4});
  }
  if (options_.cascade) scale_by(context, scored.probabilities, 1 / static_cast<float>(box_heads_.size()));
  if (k < c) scored.boxes = rows_of(context, scored.boxes, context.zeros({r, c}, DType::i32));
  return scored;
}

Detections Detector::find_boxes(Tape& tape, const std::vector<Var>& maps, const Proposals& proposals,
                                const Tensor& sizes) const {
  Context& context = tape.context();
  const DetectionOptions& options = options_.detection;
  const int64_t n = proposals.boxes.dim(0), p = proposals.boxes.dim(1), c = options_.classes;
  const Tensor rois = proposals.boxes.view({n * p, 4}), images = context.empty({n * p}, DType::i32);
  images_of_places(context, proposals.counts, images);
  const Scored scored = score_regions(tape, maps, rois, images, sizes);
  const Tensor scores = context.empty({n, p * c}), passed = context.empty({n}, DType::i32);
  class_candidates(context, scored.probabilities, proposals.counts, options.score_threshold, scores, passed);
  const int64_t k = candidates_capacity(context, passed, p * c), d = options.per_image;
  const Tensor best = context.empty({n, k}), indices = context.empty({n, k}, DType::i32);
  top_k(context, scores, {}, best, indices);
  const Tensor best_boxes = rows_of(context, scored.boxes.view({n, p * c, 4}), indices);
  const Tensor classes = context.empty({n, k}, DType::i32);
  candidate_classes(context, indices, c, classes);
  drop_small_boxes(context, best_boxes.view({n * k, 4}), options.min_side, best.view({n * k}));

  const Tensor kept = context.empty({n, d}, DType::i32), counts = context.empty({n}, DType::i32);
  nms(context, best_boxes, best, classes, {.threshold = options.nms_threshold}, kept, counts);
  return {rows_of(context, best_boxes, kept), rows_of(context, best.view({n, k, 1}), kept).view({n, d}),
          rows_of(context, classes.view({n, k, 1}), kept).view({n, d}), counts};
}

Tensor Detector::masks_of(Tape& tape, const std::vector<Var>& maps, const Detections& found) const {
  Context& context = tape.context();
  const int64_t n = found.boxes.dim(0), d = found.boxes.dim(1);
  const Rows taken = rows_taken(context, on_host(context, found.counts), d);
  const int64_t m = taken.images.dim(0);
  if (m == 0) return {};
  tape.part("mask head");
  const Tensor rois = rows_of(context, found.boxes.view({1, n * d, 4}), taken.places).view({m, 4});
  const Tensor classes = rows_of(context, found.classes.view({1, n * d, 1}), taken.places).view({m});
  const Var logits = (*mask_head_)(tape, pool(tape, maps, rois, taken.images, options_.mask.resolution));
  const int64_t side = logits.value.dim(1);
  const Var own = select_class(tape, reshape(tape, logits, {m, side * side, options_.classes, 1}), classes);
  return sigmoid(tape, own).value.view({m, side, side});
}

}  // namespace dtrain::models
