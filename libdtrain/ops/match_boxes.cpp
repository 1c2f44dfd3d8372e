#include "dtrain/ops/match_boxes.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "dtrain/core/dispatch.h"
#include "libdtrain/cpu/threads/scratch.h"
#include "libdtrain/cpu/threads/work_stealing.h"
#include "libdtrain/ops/box_checks.h"
#include "libdtrain/ops/box_math.h"
#include "libdtrain/ops/match_boxes_kernels.h"
#include "libdtrain/ops/match_math.h"

namespace dtrain {

void match_boxes(Context& context, const Tensor& boxes, const Tensor& valid, const Tensor& truth, const Tensor& counts,
                 const Tensor& sizes, const MatchOptions& options, const Tensor& matched) {
  require_rank("match_boxes: matched [n, t]", matched, 2, DType::i32);
  require_rank("match_boxes: truth [n, g, 4]", truth, 3, DType::f32);
  const int64_t n = matched.dim(0), t = matched.dim(1);
  const bool shared = boxes && boxes.shape().rank() == 2;
  require_tensor("match_boxes: boxes", boxes, shared ? Shape{t, 4} : Shape{n, t, 4}, DType::f32);
  require_optional("match_boxes: valid", valid, {n}, DType::i32);
  require_tensor("match_boxes: truth", truth, {n, truth.dim(1), 4}, DType::f32);
  require_tensor("match_boxes: counts", counts, {n}, DType::i32);
  if (options.inside_only) require_tensor("match_boxes: sizes", sizes, {n, 2}, DType::f32);
  DT_CHECK(options.negative <= options.positive, "match_boxes: boxes below ", options.negative,
           " are background and from ", options.positive, " on matched; expected the first to be no larger");
  if (matched.count() > 0) DT_DISPATCH(context, match_boxes)(boxes, valid, truth, counts, sizes, options, matched);
}

void sample_matches(Context& context, const SampleOptions& options, const Tensor& matched) {
  require_rank("sample_matches: matched [n, t]", matched, 2, DType::i32);
  DT_CHECK(options.positives >= 0 && options.positives <= options.total, "sample_matches: ", options.positives,
           " positives of ", options.total, " boxes in all");
  if (matched.count() > 0) DT_DISPATCH(context, sample_matches)(options, matched);
}

namespace cpu {
namespace {

constexpr int64_t kBlock = 256;

// Consecutive boxes in structure-of-arrays layout for vectorisation, with their matching state. Ignored boxes are empty
// and overlap nothing.
struct Block {
  float x1[kBlock], y1[kBlock], x2[kBlock], y2[kBlock], area[kBlock];
  bool ignored[kBlock];
  float best[kBlock];     // largest IoU so far
  int32_t truth[kBlock];  // its ground truth
  int32_t kept[kBlock];   // whether it is the maximum of some ground truth
  Box hull;               // bounding box of all of them
  int64_t first, count;

  float overlap(int64_t i, const Box& box, float box_size, float margin) const {
    return box_overlap({x1[i], y1[i], x2[i], y2[i]}, area[i], box, box_size, margin);
  }
};

// Arguments of a call; the blocks of all images form one range.
struct Matching {
  const MatchOptions& options;
  const Tensor &boxes, &valid, &truth, &counts, &sizes, &matched;
  const int64_t n = matched.dim(0), t = matched.dim(1), g = truth.dim(1), blocks = (t + kBlock - 1) / kBlock;
  const float margin = size_margin(options.plus_one);

  int64_t truths(int64_t image) const { return within(counts.data<int32_t>()[image], g); }
  Box truth_at(int64_t image, int64_t i) const { return box_at(truth.data<float>() + 4 * (image * g + i)); }
  // body(task, image, block) per block of each image.
  template <class Body>
  void for_each_block(Body&& body) const {
    parallel_ranges(
        n * blocks,
        [&](int64_t begin, int64_t end) {
          for (int64_t task = begin; task < end; ++task) body(task, task / blocks, task % blocks);
        },
        kBlock * (g + 4));
  }
  void read(int64_t image, int64_t number, Block& block) const;
  float visit(Block& block, int64_t image, int64_t i) const;
  void write(int64_t image, const Block& block) const;
};

void Matching::read(int64_t image, int64_t number, Block& block) const {
  block.first = number * kBlock;
  block.count = std::min(kBlock, t - block.first);
  const float* const from = boxes.data<float>() + 4 * ((boxes.shape().rank() == 2 ? 0 : image * t) + block.first);
  const float* const size = options.inside_only ? sizes.data<float>() + 2 * image : nullptr;
  const int64_t end = (valid ? within(valid.data<int32_t>()[image], t) : t) - block.first;
  constexpr Box kEmpty{INFINITY, INFINITY, -INFINITY, -INFINITY};
  block.hull = kEmpty;
  for (int64_t i = 0; i < kBlock; ++i) {
    const Box found = i < block.count ? box_at(from + 4 * i) : kEmpty;
    block.ignored[i] = i >= end || is_padding(found) || (size && !is_inside(found, size[0], size[1], margin));
    const Box box = block.ignored[i] ? kEmpty : found;
    block.x1[i] = box.x1, block.y1[i] = box.y1, block.x2[i] = box.x2, block.y2[i] = box.y2;
    block.area[i] = box_area(box, margin);
    block.best[i] = 0, block.truth[i] = 0, block.kept[i] = 0;
    block.hull = {smaller(block.hull.x1, box.x1), smaller(block.hull.y1, box.y1), larger(block.hull.x2, box.x2),
                  larger(block.hull.y2, box.y2)};
  }
}

// Matches the boxes of a block with ground truth i of the image. Returns the largest IoU.
float Matching::visit(Block& block, int64_t image, int64_t i) const {
  const Box box = truth_at(image, i);
  if (!(smaller(block.hull.x2, box.x2) - larger(block.hull.x1, box.x1) + margin > 0) ||
      !(smaller(block.hull.y2, box.y2) - larger(block.hull.y1, box.y1) + margin > 0))
    return 0;
  const float area = box_area(box, margin);
  const auto own = static_cast<int32_t>(i);
  int32_t top = 0;  // IoUs are non-negative: their bit patterns are ordered like integers
  for (int64_t j = 0; j < kBlock; ++j) {
    const float iou = block.overlap(j, box, area, margin);
    const bool better = iou > block.best[j];
    block.best[j] = better ? iou : block.best[j];
    block.truth[j] = better ? own : block.truth[j];
    top = std::max(top, std::bit_cast<int32_t>(iou));
  }
  return std::bit_cast<float>(top);
}

void Matching::write(int64_t image, const Block& block) const {
  int32_t* const to = matched.data<int32_t>() + image * t + block.first;
  const bool none = truths(image) == 0;
  for (int64_t i = 0; i < block.count; ++i) {
    const int32_t match = none ? kBackground : match_of(options, block.best[i], block.truth[i], block.kept[i] != 0);
    to[i] = block.ignored[i] ? kIgnored : match;
  }
}

// Marks boxes of a block whose IoU with ground truth i is `top`.
void mark_best(const Matching& m, int64_t image, int64_t i, float top, Block& block) {
  const Box box = m.truth_at(image, i);
  const float area = box_area(box, m.margin), margin = m.margin;
  for (int64_t j = 0; j < kBlock; ++j) block.kept[j] |= block.overlap(j, box, area, margin) == top ? 1 : 0;
}

// Second pass, after tops [n, blocks, g] holds the largest IoU of each block with each ground truth: revisits the few
// blocks that contain a ground truth's best box.
void keep_best(const Matching& m, Context& context, const float* tops) {
  const Scratch<float> best(context, m.n * m.g);
  for (int64_t image = 0; image < m.n; ++image)
    for (int64_t i = 0; i < m.truths(image); ++i) {
      float& top = best.data()[image * m.g + i];
      top = 0;
      for (int64_t b = 0; b < m.blocks; ++b) top = larger(top, tops[(image * m.blocks + b) * m.g + i]);
    }
  m.for_each_block([&](int64_t task, int64_t image, int64_t number) {
    const float *const own = tops + task * m.g, *const all = best.data() + image * m.g;
    const int64_t truths = m.truths(image);
    const auto holds_best = [&](int64_t i) { return own[i] > 0 && own[i] == all[i]; };
    int64_t i = 0;
    while (i < truths && !holds_best(i)) ++i;
    if (i == truths) return;
    Block block;
    m.read(image, number, block);
    for (int64_t j = 0; j < truths; ++j) m.visit(block, image, j);
    for (; i < truths; ++i)
      if (holds_best(i)) mark_best(m, image, i, all[i], block);
    m.write(image, block);
  });
}

// Ignores all but the `count` boxes of smallest keys.
void draw(uint64_t* keys, int64_t found, int64_t count, int32_t* matched) {
  if (found <= count) return;
  std::nth_element(keys, keys + count, keys + found);
  for (int64_t i = count; i < found; ++i) matched[static_cast<uint32_t>(keys[i])] = kIgnored;
}

void sample_image(const DrawKeys& draws, const SampleOptions& options, int64_t t, uint64_t* keys, int32_t* matched) {
  // Positives grow from the front of `keys`, background from the end.
  int64_t positives = 0, background = t;
  for (int64_t first = 0; first < t; first += 4) {
    const Philox::Block words = draws.block(first / 4);
    for (int64_t i = first; i < std::min(first + 4, t); ++i) {
      const uint64_t key = DrawKeys::key(words[static_cast<size_t>(i - first)], i);
      if (matched[i] >= 0)
        keys[positives++] = key;
      else if (matched[i] == kBackground)
        keys[--background] = key;
    }
  }
  draw(keys, positives, options.positives, matched);
  draw(keys + background, t - background, options.total - std::min<int64_t>(positives, options.positives), matched);
}

}  // namespace

void match_boxes(Context& context, const Tensor& boxes, const Tensor& valid, const Tensor& truth, const Tensor& counts,
                 const Tensor& sizes, const MatchOptions& options, const Tensor& matched) {
  const Matching m{options, boxes, valid, truth, counts, sizes, matched};
  const Scratch<float> tops(context, options.keep_best ? m.n * m.blocks * m.g : 0);
  m.for_each_block([&](int64_t task, int64_t image, int64_t number) {
    Block block;
    m.read(image, number, block);
    for (int64_t i = 0; i < m.truths(image); ++i) {
      const float top = m.visit(block, image, i);
      if (options.keep_best) tops.data()[task * m.g + i] = top;
    }
    m.write(image, block);
  });
  if (options.keep_best) keep_best(m, context, tops.data());
}

void sample_matches(Context& context, const SampleOptions& options, const Tensor& matched) {
  const int64_t n = matched.dim(0), t = matched.dim(1);
  const Scratch<uint64_t> keys(context, n * t);
  const StepScalars& scalars = *context.scalars();
  parallel_ranges(
      n,
      [&](int64_t begin, int64_t end) {
        for (int64_t image = begin; image < end; ++image) {
          const DrawKeys draws(scalars.seed, scalars.step, options.stream,
                               options.first_row + static_cast<uint64_t>(image));
          sample_image(draws, options, t, keys.data() + image * t, matched.data<int32_t>() + image * t);
        }
      },
      16 * t);
}

}  // namespace cpu
}  // namespace dtrain
