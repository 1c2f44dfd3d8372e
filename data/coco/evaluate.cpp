#include "dtrain/data/coco/evaluate.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <unordered_map>

#include "data/coco/match.h"
#include "dtrain/core/error.h"

namespace dtrain::data::coco {
namespace {

// Parallel for: calls body(i) for i < count.
template <class Body>
void for_each(size_t count, int threads, Body body) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i; (i = next++) < count;) body(i);
  };
  std::vector<std::future<void>> helpers;
  for (size_t i = 1; i < std::min(count, static_cast<size_t>(threads)); ++i)
    helpers.push_back(std::async(std::launch::async, work));
  work();
  for (std::future<void>& helper : helpers) helper.get();
}

void check(const EvaluationOptions& options) {
  const auto ascends = [](const auto& values) { return std::is_sorted(values.begin(), values.end()); };
  DT_CHECK(!options.iou_thresholds.empty() && options.iou_thresholds.size() <= 64,
           "evaluation: ", options.iou_thresholds.size(), " IoU thresholds, expected 1 to 64");
  for (const double threshold : options.iou_thresholds)
    DT_CHECK(threshold > 0 && threshold <= 1, "evaluation: an IoU threshold of ", threshold);
  DT_CHECK(!options.recall_thresholds.empty() && ascends(options.recall_thresholds),
           "evaluation: recall thresholds are missing or not in ascending order");
  DT_CHECK(!options.max_detections.empty() && ascends(options.max_detections) && options.max_detections[0] > 0,
           "evaluation: max_detections are missing, 0 or not in ascending order");
  DT_CHECK(!options.areas.empty(), "evaluation: no ranges of areas");
  DT_CHECK(options.threads >= 1, "evaluation: ", options.threads, " threads");
}

// Mask of a detection without RLE: its polygons or, with `of_box`, its whole box. Nothing without either. Corners far
// outside of the image set no pixels.
std::optional<Rle> drawn_mask(const Detection& detection, const AnnotatedImage& image, bool of_box) {
  Polygons polygons = detection.polygons;
  if (polygons.empty() && of_box && detection.box) {
    const BoundingBox& box = *detection.box;
    const double right = box.x + box.width, bottom = box.y + box.height;
    polygons = {{box.x, box.y, box.x, bottom, right, bottom, right, box.y}};
  }
  if (polygons.empty()) return {};
  check_mask_size(image.height, image.width);
  std::erase_if(polygons, [](std::vector<double>& polygon) {
    if (polygon.size() % 2 != 0) polygon.pop_back();
    return polygon.size() < 6 ||
           !std::ranges::all_of(polygon, [](double at) { return std::abs(at) <= kMaxCoordinate; });
  });
  if (polygons.empty()) return Rle{image.height, image.width, {static_cast<uint32_t>(image.height * image.width)}};
  return from_polygons(polygons, image.height, image.width);
}

// Detections of one category in all images, by descending score.
class Ranking {
 public:
  Ranking(const EvaluationOptions& options, std::span<const Match* const> matches);

  // Fills in the curves of the category.
  void accumulate(size_t category, DetectionMetrics& evaluation) const;

 private:
  struct Entry {
    const Match* match;
    uint32_t rank;  // within its image
  };
  struct Found {
    uint64_t right, wrong;  // cumulative true and false positives at a true positive
  };
  // `found` is a scratch buffer.
  void add_curve(size_t area, size_t limit, size_t iou_threshold, uint64_t truths, std::vector<Found>& found,
                 PrecisionRecall& curves) const;
  void add_steps(std::span<const Found> found, uint64_t truths, PrecisionRecall& curves) const;

  const EvaluationOptions& options_;
  std::span<const Match* const> matches_;
  std::vector<Entry> entries_;
};

Ranking::Ranking(const EvaluationOptions& options, std::span<const Match* const> matches)
    : options_(options), matches_(matches) {
  for (const Match* match : matches)
    for (uint32_t rank = 0; rank < match->scores.size(); ++rank) entries_.push_back({match, rank});
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.match->scores[a.rank] > b.match->scores[b.rank]; });
}

void Ranking::accumulate(size_t category, DetectionMetrics& evaluation) const {
  const size_t areas = options_.areas.size();
  const std::span<uint64_t> truths(evaluation.truths.data() + category * areas, areas);
  for (size_t area = 0; area < areas; ++area)
    for (const Match* match : matches_) truths[area] += match->truths[area];
  if (std::ranges::all_of(truths, [](uint64_t count) { return count == 0; })) return;
  PrecisionRecall& curves = evaluation.curves[category];
  const size_t count = areas * options_.max_detections.size() * options_.iou_thresholds.size();
  curves.recall.reserve(count);
  curves.ends.reserve(count);
  std::vector<Found> found;
  for (size_t area = 0; area < areas; ++area)
    for (size_t limit = 0; limit < options_.max_detections.size(); ++limit)
      for (size_t t = 0; t < options_.iou_thresholds.size(); ++t)
        add_curve(area, limit, t, truths[area], found, curves);
}

void Ranking::add_curve(size_t area, size_t limit, size_t iou_threshold, uint64_t truths, std::vector<Found>& found,
                        PrecisionRecall& curves) const {
  found.clear();
  uint64_t right = 0, wrong = 0;
  for (const Entry& entry : truths == 0 ? std::span<const Entry>() : std::span(entries_)) {
    if (entry.rank >= options_.max_detections[limit]) continue;
    const Match::Bits bits = entry.match->bits[area * entry.match->scores.size() + entry.rank];
    if (bits.ignored >> iou_threshold & 1) continue;
    if (bits.matched >> iou_threshold & 1)
      found.push_back({++right, wrong});
    else
      ++wrong;
  }
  curves.recall.push_back(truths == 0 ? -1 : static_cast<double>(right) / static_cast<double>(truths));
  add_steps(found, truths, curves);
  curves.ends.push_back(curves.steps.size());
}

// Interpolated precision at a recall is the maximum at that recall or beyond; the maximum is at a true positive.
void Ranking::add_steps(std::span<const Found> found, uint64_t truths, PrecisionRecall& curves) const {
  constexpr double kSpacing = 2.220446049250313e-16;  // added by COCO's API against division by 0
  const auto begin = static_cast<std::ptrdiff_t>(curves.steps.size());
  size_t i = found.size();
  double best = 0;
  for (size_t r = options_.recall_thresholds.size(); r-- > 0;) {
    const auto reaches = [&](const Found& one) {
      return static_cast<double>(one.right) / static_cast<double>(truths) >= options_.recall_thresholds[r];
    };
    for (; i > 0 && reaches(found[i - 1]); --i) {
      const double right = static_cast<double>(found[i - 1].right), wrong = static_cast<double>(found[i - 1].wrong);
      best = std::max(best, right / (wrong + right + kSpacing));
    }
    if (best > (std::ssize(curves.steps) > begin ? curves.steps.back().precision : 0))
      curves.steps.push_back({static_cast<uint32_t>(r + 1), best});
  }
  std::reverse(curves.steps.begin() + begin, curves.steps.end());
}

}  // namespace

struct Evaluator::GroundTruth {
  std::vector<AnnotatedImage> images;
  std::vector<Category> categories;
  std::unordered_map<int64_t, uint32_t> image_of, category_of;  // by id
  std::vector<Truth> truths;
  std::vector<uint64_t> begins{0};  // per image, and the end

  std::span<const Truth> of(size_t image) const {
    return {truths.data() + begins[image], begins[image + 1] - begins[image]};
  }
};

Evaluator::Evaluator(const Annotations& truth, const EvaluationOptions& options)
    : options_(options), found_(truth.images.size()) {
  check(options_);
  DT_CHECK(truth.begins.size() == truth.images.size() + 1 && truth.begins.back() == truth.annotations.size(),
           "evaluation: annotations that are not in the order of their images");
  auto all = std::make_shared<GroundTruth>();
  all->images = truth.images;
  all->categories = truth.categories;
  for (const AnnotatedImage& image : truth.images) all->image_of.emplace(image.id, all->image_of.size());
  for (const Category& category : truth.categories) all->category_of.emplace(category.id, all->category_of.size());
  const bool masks = options_.compare == EvaluationOptions::Compare::masks;
  std::vector<const Annotation*> compared;
  for (size_t image = 0; image < truth.images.size(); ++image) {
    for (const Annotation& annotation : truth.of(image))
      if (!masks || annotation.segmentation.index() != 0) compared.push_back(&annotation);
    all->begins.push_back(compared.size());
  }
  all->truths.resize(compared.size());
  const auto prepare = [&](size_t i) {
    const Annotation& annotation = *compared[i];
    const AnnotatedImage& image = truth.images[annotation.image];
    Truth& one = all->truths[i];
    one.category = annotation.category;
    one.crowd = annotation.is_crowd;
    one.never_matches = annotation.never_matches;
    one.area = annotation.area;
    one.box = annotation.box;
    if (masks) one.shape = Shape(mask_of(annotation, image.height, image.width));
  };
  for_each(all->truths.size(), options_.threads, prepare);
  truth_ = std::move(all);
}

Evaluator::Evaluator(const Evaluator& other) = default;
Evaluator::~Evaluator() = default;

Found Evaluator::found(const Detection& detection, const AnnotatedImage& image) const {
  const auto refuse = [&](const std::string& problem) {
    throw Error(Fault::data, concat("a detection of image ", image.id, ": ", problem));
  };
  const bool masks = options_.compare == EvaluationOptions::Compare::masks;
  Found one{.score = detection.score};
  if (!std::isfinite(one.score)) refuse(concat("its score is ", one.score));
  if (!detection.mask && !detection.box && detection.polygons.empty()) refuse("it has neither box nor mask");
  if (masks || !detection.box) {
    const std::optional<Rle> drawn = detection.mask ? std::nullopt : drawn_mask(detection, image, options_.area_of_box);
    const Rle* const mask = detection.mask ? &*detection.mask : drawn ? &*drawn : nullptr;
    if (!mask) refuse("it has no mask");
    // Sizes must match where masks are compared.
    if ((masks || image.width > 0) && (mask->height != image.height || mask->width != image.width))
      refuse(concat("a mask of ", mask->height, " x ", mask->width, " pixels, expected ", image.height, " x ",
                    image.width));
    one.shape = Shape(*mask);
    one.area = static_cast<double>(one.shape.area);
    one.box = one.shape.box;
  }
  if (detection.box) {
    one.box = *detection.box;
    if (!masks || options_.area_of_box) one.area = one.box.width * one.box.height;
  }
  if (!masks) one.shape = {};
  return one;
}

void Evaluator::add(std::span<const Detection> detections) {
  for (const Detection& detection : detections) {
    const auto image = truth_->image_of.find(detection.image_id);
    if (image == truth_->image_of.end())
      throw Error(Fault::data,
                  concat("a detection of image ",
                         detection.image_id < kFirstTextId ? std::to_string(detection.image_id) : "(a string as id)",
                         ", which is not one of the ground truth's ", found_.size()));
    Found one = found(detection, truth_->images[image->second]);
    const auto category = truth_->category_of.find(detection.category_id);
    if (category == truth_->category_of.end()) continue;
    one.category = category->second;
    found_[image->second].push_back(std::move(one));
  }
}

std::vector<std::vector<Match>> Evaluator::matches() const {
  const MatchOptions options{options_.compare == EvaluationOptions::Compare::masks, options_.iou_thresholds,
                             options_.areas, options_.max_detections.back()};
  std::vector<std::vector<Match>> all(found_.size());
  for_each(found_.size(), options_.threads,
           [&](size_t image) { all[image] = match(truth_->of(image), found_[image], options); });
  return all;
}

DetectionMetrics Evaluator::score() const {
  DetectionMetrics evaluation{options_, truth_->categories, {}, {}};
  const size_t categories = truth_->categories.size();
  evaluation.truths.assign(categories * options_.areas.size(), 0);
  evaluation.curves.resize(categories);

  const std::vector<std::vector<Match>> all = matches();
  std::vector<std::vector<const Match*>> by_category(categories);
  for (const std::vector<Match>& image : all)
    for (const Match& one : image) by_category[one.category].push_back(&one);
  for_each(categories, options_.threads,
           [&](size_t category) { Ranking(options_, by_category[category]).accumulate(category, evaluation); });
  return evaluation;
}

}  // namespace dtrain::data::coco
