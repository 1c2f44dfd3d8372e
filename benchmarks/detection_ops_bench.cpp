// Box ops of a two-stage detector (matching, sampling, top-k, non-maximum suppression) at COCO's image size of 800 x
// 1333 pixels.
//   detection_ops_bench --device cpu --images 2
#include "benchmarks/devices.h"
#include "benchmarks/program.h"
#include "dtrain/core/rng.h"
#include "dtrain/ops/anchors.h"
#include "dtrain/ops/boxes.h"
#include "dtrain/ops/match_boxes.h"
#include "dtrain/ops/roi_samples.h"
#include "dtrain/ops/top_k.h"
#include "libdtrain/ops/gather_rows.h"

namespace dtrain {
namespace {

constexpr int64_t kHeight = 832, kWidth = 1344, kTruths = 100, kProposals = 2000, kSamples = 512;

// Anchors of the first `levels` levels of a pyramid with strides from 4 on.
std::vector<float> pyramid_anchors(int levels) {
  std::vector<float> anchors;
  for (int level = 0; level < levels; ++level) {
    const int64_t stride = int64_t{4} << level;
    const auto pixels = static_cast<float>(stride);
    const std::vector<float> own =
        make_anchors({.sizes = {8 * pixels}, .ratios = {0.5, 1, 2}, .stride_h = pixels, .stride_w = pixels},
                     kHeight / stride, kWidth / stride);
    anchors.insert(anchors.end(), own.begin(), own.end());
  }
  return anchors;
}

template <class T>
Tensor upload(Context& context, Shape shape, const std::vector<T>& values) {
  const Tensor tensor = context.empty(shape, dtype_of<T>());
  context.upload(values.data(), tensor);
  return tensor;
}

Tensor random_scores(Context& context, Shape shape) {
  RandomStream random(1, 0);
  std::vector<float> scores(static_cast<size_t>(shape.count()));
  for (float& score : scores) score = random.normal();
  return upload(context, shape, scores);
}

// Boxes with sides of 8 to 300 pixels, [.., 4].
Tensor random_boxes(Context& context, Shape shape) {
  RandomStream random(2, 0);
  std::vector<float> boxes;
  for (int64_t i = 0; i < shape.count() / 4; ++i) {
    const float x = random.uniform(0, kWidth - 300), y = random.uniform(0, kHeight - 300);
    boxes.insert(boxes.end(), {x, y, x + random.uniform(8, 300), y + random.uniform(8, 300)});
  }
  return upload(context, shape, boxes);
}

void add(Context& context, const std::string& name, const std::function<void()>& work) {
  add_benchmark(concat(context.device(), "/", name),
                [&context, work](benchmark::State& state) { measure_time(state, context, work); });
}

void add_matches(Context& context, int64_t n) {
  const std::vector<float> corners = pyramid_anchors(5);
  const auto t = static_cast<int64_t>(corners.size() / 4);
  const Tensor anchors = upload(context, {t, 4}, corners), truth = random_boxes(context, {n, kTruths, 4});
  const auto images = static_cast<size_t>(n);
  const Tensor counts = upload(context, {n}, std::vector<int32_t>(images, kTruths));
  const Tensor sizes = upload(context, {n, 2}, std::vector<float>(2 * images, kHeight));
  const Tensor matched = context.empty({n, t}, DType::i32), drawn = context.empty({n, t}, DType::i32);
  const MatchOptions options{.keep_best = true, .inside_only = true};
  match_boxes(context, anchors, Tensor(), truth, counts, sizes, options, matched);
  add(context, concat("match_boxes ", t, " anchors"),
      [=, &context] { match_boxes(context, anchors, Tensor(), truth, counts, sizes, options, matched); });
  add(context, concat("sample_matches ", t, " anchors"), [=, &context] {
    context.copy(matched, drawn);
    sample_matches(context, {}, drawn);
  });
}

void add_samples(Context& context, int64_t n) {
  const Tensor proposals = random_boxes(context, {n, kProposals, 4}), truth = random_boxes(context, {n, kTruths, 4});
  const Tensor counts = upload(context, {n}, std::vector<int32_t>(static_cast<size_t>(n), kTruths));
  const Tensor matched = context.empty({n, kProposals}, DType::i32), classes = context.zeros({n, kTruths}, DType::i32);
  const auto column = [&] { return context.empty({n * kSamples}, DType::i32); };
  const RoiSamples samples{context.empty({n * kSamples, 4}), column(),          column(), column(),
                           context.empty({n * kSamples, 4}), context.empty({2})};
  const MatchOptions options{.positive = 0.5f, .negative = 0.5f};
  add(context, concat("match, sample and gather ", kProposals, " proposals"), [=, &context] {
    match_boxes(context, proposals, Tensor(), truth, counts, Tensor(), options, matched);
    sample_matches(context, {.total = kSamples, .positives = kSamples / 4}, matched);
    gather_samples(context, proposals, matched, truth, classes, {}, samples);
  });
}

// RPN ops on the pyramid's largest map: top-k scores, box decoding and non-maximum suppression.
void add_proposals(Context& context, int64_t n) {
  const std::vector<float> corners = pyramid_anchors(1);
  const auto t = static_cast<int64_t>(corners.size() / 4);
  const Tensor anchors = upload(context, {1, t, 4}, corners), scores = random_scores(context, {n, t});
  for (const int64_t k : {int64_t{1000}, kProposals, int64_t{4000}}) {
    const Tensor values = context.empty({n, k}), indices = context.empty({n, k}, DType::i32);
    const Tensor boxes = context.empty({n, k, 4}), decoded = context.empty({n * k, 1, 4});
    const Tensor deltas = random_scores(context, {n * k, 1, 4});
    const Tensor kept = context.empty({n, k}, DType::i32), counts = context.empty({n}, DType::i32);
    top_k(context, scores, Tensor(), values, indices);
    gather_rows(context, anchors, indices, boxes);
    add(context, concat("top_k ", k, " of ", t), [=, &context] { top_k(context, scores, Tensor(), values, indices); });
    add(context, concat("gather_rows ", k), [=, &context] { gather_rows(context, anchors, indices, boxes); });
    add(context, concat("decode_boxes ", k), [=, &context] {
      decode_boxes(context, deltas, boxes.view({n * k, 4}), Tensor(), {}, decoded);
    });
    const Tensor crowd = random_boxes(context, {n, k, 4});
    add(context, concat("nms ", k),
        [=, &context] { nms(context, crowd, values, Tensor(), {.threshold = 0.7f}, kept, counts); });
  }
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  using namespace dtrain;
  int64_t images = 2;
  cli::FlagSet flags("detection_ops_bench", "[flags]",
                     "Box ops of a two-stage detector: matching, sampling, top-k, NMS.");
  flags.add("images", images, "images per batch", kPositiveBatch);
  return run_op_program(flags, argc, argv, [&](Context& context) {
    add_matches(context, images);
    add_samples(context, images);
    add_proposals(context, images);
  });
}
