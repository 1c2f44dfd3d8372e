#include "dtrain/models/detection/rpn.h"

#include <algorithm>

#include "dtrain/ops/concat_channels.h"
#include "dtrain/ops/masked_losses.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/ops/top_k.h"
#include "libdtrain/ops/anchor_targets.h"
#include "libdtrain/ops/candidates.h"
#include "models/detection/rows.h"

namespace dtrain::models {
namespace {

// Concatenates the levels per image: [n, elements of all levels].
Var joined(Tape& tape, const std::vector<Var>& levels) {
  std::vector<Var> flat;
  for (const Var& level : levels) flat.push_back(flatten(tape, level));
  return concat_channels(tape, flat);
}

struct Candidates {
  Tensor boxes, scores;  // [n, k, 4] and [n, k]
};

// Top k of one level, padded with unscored boxes if it has fewer anchors. logits [n, h, w, a], deltas [n, h, w, 4 a],
// anchors [1, t, 4].
Candidates best_of_level(Context& context, const Tensor& logits, const Tensor& deltas, const Tensor& anchors,
                         const Tensor& sizes, int64_t k, const BoxCoder& coder) {
  const int64_t n = logits.dim(0), t = anchors.dim(1);
  const Candidates best{context.empty({n, k, 4}), context.empty({n, k})};
  const Tensor indices = context.empty({n, k}, DType::i32);
  top_k(context, logits.view({n, t}), {}, best.scores, indices);
  const Tensor chosen = rows_of(context, deltas.view({n, t, 4}), indices);
  const Tensor references = rows_of(context, anchors, indices);
  decode_boxes(context, chosen.view({n * k, 1, 4}), references.view({n * k, 4}), sizes, coder,
               best.boxes.view({n * k, 1, 4}));
  return best;
}

// Non-maximum suppression of candidates [rows, k] sorted by score; keeps at most m per row.
Candidates unsuppressed(Context& context, const Candidates& all, int64_t m, float threshold) {
  const int64_t rows = all.scores.dim(0), k = all.scores.dim(1);
  const Tensor kept = context.empty({rows, m}, DType::i32);
  nms(context, all.boxes, all.scores, {}, {.threshold = threshold}, kept, context.empty({rows}, DType::i32));
  const Candidates left{rows_of(context, all.boxes, kept),
                        rows_of(context, all.scores.view({rows, k, 1}), kept).view({rows, m})};
  // Padding rows are boxes of zeros.
  drop_small_boxes(context, left.boxes.view({rows * m, 4}), 0, left.scores.view({rows * m}));
  return left;
}

int64_t hidden_channels(int64_t channels, const RpnOptions& options) {
  return options.channels > 0 ? options.channels : channels;
}

int64_t anchors_of_cell(const RpnOptions& options) {
  return static_cast<int64_t>((options.single_map ? options.sizes.size() : 1) * options.anchors.ratios.size());
}

}  // namespace

Rpn::Rpn(ParameterStore& store, const std::string& path, int64_t channels, const RpnOptions& o)
    : conv(store, path + ".head.conv.0.0", channels, hidden_channels(channels, o), 3,
           {.conv = {.padding = 1}, .bias = true, .init = Init::normal(0.01f)}),
      cls_logits(store, path + ".head.cls_logits", hidden_channels(channels, o), anchors_of_cell(o), 1,
                 {.bias = true, .init = Init::normal(0.01f)}),
      bbox_pred(store, path + ".head.bbox_pred", hidden_channels(channels, o), 4 * anchors_of_cell(o), 1,
                {.bias = true, .init = Init::normal(0.01f)}),
      options(o) {}

Rpn::Output Rpn::operator()(Tape& tape, const std::vector<Var>& maps) const {
  Output output;
  for (const Var& map : maps) {
    const Var hidden = relu(tape, conv(tape, map));
    output.logits.push_back(cls_logits(tape, hidden));
    output.deltas.push_back(bbox_pred(tape, hidden));
  }
  return output;
}

Proposals Rpn::propose(Context& context, const Output& output, const Canvas& canvas, const Tensor& sizes,
                       bool training) const {
  const ProposalOptions& limits = training ? options.training : options.evaluation;
  const auto levels = static_cast<int64_t>(output.logits.size());
  int64_t most = 0;
  for (const Tensor& anchors : canvas.level_anchors) most = std::max(most, anchors.dim(1));
  const int64_t n = sizes.dim(0), k = std::min<int64_t>(limits.per_level, most), m = std::min<int64_t>(k, limits.total);
  std::vector<Tensor> boxes, scores;
  for (size_t level = 0; level < output.logits.size(); ++level) {
    const Candidates best = best_of_level(context, output.logits[level].value, output.deltas[level].value,
                                          canvas.level_anchors[level], sizes, k, options.coder);
    boxes.push_back(best.boxes);
    scores.push_back(best.scores.view({n, k, 1}));
  }
  // Suppression is per level.
  const Candidates all{join_rows(context, boxes).view({n * levels, k, 4}),
                       join_rows(context, scores).view({n * levels, k})};
  drop_small_boxes(context, all.boxes.view({n * levels * k, 4}), options.min_side, all.scores.view({n * levels * k}));
  const Candidates left = unsuppressed(context, all, m, options.nms_threshold);

  // Merges the levels by score.
  const Tensor sorted = context.empty({n, limits.total}), order = context.empty({n, limits.total}, DType::i32);
  top_k(context, left.scores.view({n, levels * m}), {}, sorted, order);
  Proposals proposals{rows_of(context, left.boxes.view({n, levels * m, 4}), order), context.empty({n}, DType::i32)};
  const Tensor there = places_with_score(context, proposals.boxes, sorted, proposals.counts);
  if (!training) proposals.scores = rows_of(context, sorted.view({n, limits.total, 1}), there).view({n, limits.total});
  return proposals;
}

Rpn::Losses Rpn::losses(Tape& tape, const Output& output, const Canvas& canvas, const DetectionTruth& truth) const {
  Context& context = tape.context();
  const int64_t n = truth.boxes.dim(0), t = canvas.anchors.dim(0);
  const Tensor matched = context.empty({n, t}, DType::i32);
  match_boxes(context, canvas.anchors, {}, truth.boxes, truth.counts, truth.sizes, options.match, matched);
  sample_matches(context,
                 {.total = options.batch,
                  .positives = options.positives,
                  .stream = tape.next_stream() & UINT32_MAX,
                  .first_row = static_cast<uint64_t>(tape.share() * n)},
                 matched);
  const AnchorTargets targets{context.empty({n, t}), context.empty({n, t}), context.empty({n, t}),
                              context.empty({n, t, 4}), context.empty({1})};
  anchor_targets(context, matched, truth.boxes, canvas.anchors, options.coder, targets);
  LossDivisor divisor{static_cast<float>(options.batch * n)};
  if (!options.fixed_divisor) divisor = {1, targets.count};
  const Var logits = joined(tape, output.logits);
  const Var deltas = reshape(tape, joined(tape, output.deltas), {n * t, 4});
  return {
      sigmoid_cross_entropy(tape, logits, targets.labels, targets.drawn, divisor),
      smooth_l1(tape, deltas, targets.deltas.view({n * t, 4}), targets.objects.view({n * t}), options.beta, divisor)};
}

}  // namespace dtrain::models
