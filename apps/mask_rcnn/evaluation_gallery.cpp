#include "apps/mask_rcnn/evaluation_gallery.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "apps/mask_rcnn/annotated_images.h"
#include "apps/mask_rcnn/image_ranking.h"
#include "apps/mask_rcnn/panels.h"
#include "dtrain/io/atomic_file.h"

namespace dtrain::mask_rcnn {
namespace {

using data::coco::Detection;
using data::coco::DetectionMetrics;
using data::coco::EvaluationOptions;
using Compare = EvaluationOptions::Compare;

const std::string kPictures = "pictures";

// "Box AP 41.2, AP50 63.0, AP75 44.9"
std::string summary_of(const DetectionMetrics& evaluation, const char* kind) {
  const auto percent = [](const data::coco::Statistic& one) {
    return one.value < 0 ? std::string("none") : fmt::format("{:.1f}", 100 * one.value);
  };
  const auto statistics = evaluation.statistics();
  return fmt::format("{} AP {}, AP50 {}, AP75 {}", kind, percent(statistics[0]), percent(statistics[1]),
                     percent(statistics[2]));
}

// Box and mask metrics, and the ranking of images.
struct Scores {
  std::optional<DetectionMetrics> boxes{}, masks{};
  std::vector<std::vector<data::coco::Match>> matches{};  // ranking criterion of each image
  std::vector<ImageOutcome> ranked{};
};

Scores scores_of(const EvaluationGallery& options, const data::coco::Annotations& truth,
                 const std::vector<Detection>& detections) {
  Scores scores;
  const auto evaluate = [&](Compare compare, bool ranks, std::optional<DetectionMetrics>& evaluation) {
    EvaluationOptions how;
    how.compare = compare;
    how.threads = options.threads;
    data::coco::Evaluator evaluator(truth, how);
    evaluator.add(detections);
    evaluation = evaluator.score();
    if (ranks) scores.matches = evaluator.matches();
  };
  if (options.boxes) evaluate(Compare::boxes, true, scores.boxes);
  if (options.masks) evaluate(Compare::masks, !options.boxes, scores.masks);
  scores.ranked = ranked_images(scores.matches, options.visible_score);
  return scores;
}

std::vector<ClassPrecision> classes_of(const Scores& scores) {
  const DetectionMetrics& any = scores.boxes ? *scores.boxes : *scores.masks;
  std::vector<ClassPrecision> classes;
  for (size_t i = 0; i < any.categories.size(); ++i) {
    ClassPrecision& row = classes.emplace_back();
    row.name = any.categories[i].name;
    row.objects = static_cast<int64_t>(any.truths[i * any.options.areas.size()]);
    if (scores.boxes) row.box_ap = scores.boxes->average_precision(i);
    if (scores.masks) row.mask_ap = scores.masks->average_precision(i);
  }
  return classes;
}

std::vector<std::string> notes_of(const EvaluationGallery& options, const Scores& scores, size_t images) {
  std::vector<std::string> notes = options.notes;
  if (scores.boxes) notes.push_back(summary_of(*scores.boxes, "Box"));
  if (scores.masks) notes.push_back(summary_of(*scores.masks, "Mask"));
  notes.push_back(
      fmt::format("Images are ranked by F1 = 2 found / (2 found + missed + false), over detections with a score of at "
                  "least {:.2f}. An object is found where a detection of its class has an IoU of at least 0.5 with its "
                  "{}. Other detections are labelled as false. Crowds do not count.",
                  options.visible_score, options.boxes ? "box" : "mask"));
  const size_t empty = images - scores.ranked.size();
  notes.push_back(fmt::format("{} of {} images are ranked{}.", scores.ranked.size(), images,
                              empty > 0 ? fmt::format("; {} have neither objects nor such detections", empty) : ""));
  return notes;
}

// Draws the pictures of the gallery.
class Pictures {
 public:
  Pictures(const EvaluationGallery& options, const data::coco::Annotations& truth,
           const std::vector<Detection>& detections, const Scores& scores)
      : options_(options), truth_(truth), scores_(scores) {
    for (const Detection& one : detections) detections_.emplace(one.image_id, &one);
  }

  GalleryImage card(const ImageOutcome& outcome) {
    const data::coco::AnnotatedImage& image = truth_.images[outcome.image];
    const data::Image pixels = read_annotated_image(options_.images, image, options_.orientation);
    const auto objects = annotated_objects(truth_, outcome.image, pixels.height, pixels.width);
    const data::Image both = side_by_side(
        std::vector<Panel>{{"Ground truth", drawn(pixels, objects)}, {"Results", drawn(pixels, results_of(outcome))}});
    const std::string name = kPictures + "/" + names_.take(image);
    write_png(options_.folder + "/" + name, both.view());
    return {relative_source(name), name,         both.width,     both.height,         image.file_name,
            outcome.f1(),          outcome.hits, outcome.misses, outcome.false_alarms};
  }

 private:
  // By descending score; stable.
  std::vector<const Detection*> detections_of(int64_t image) const {
    std::vector<const Detection*> own;
    const auto [first, last] = detections_.equal_range(image);
    for (auto one = first; one != last; ++one) own.push_back(one->second);
    std::ranges::stable_sort(own, std::greater<>(), [](const Detection* one) { return one->score; });
    return own;
  }

  // False positives are labelled "false". The matches of a category are in the same order.
  std::vector<DrawnObject> results_of(const ImageOutcome& outcome) const {
    const std::vector<data::coco::Match>& matches = scores_.matches[outcome.image];
    std::map<int64_t, size_t> ranks;  // of the next detection of each category
    std::vector<DrawnObject> all;
    for (const Detection* one : detections_of(truth_.images[outcome.image].id)) {
      const auto match = std::ranges::find_if(matches, [&](const data::coco::Match& own) {
        return truth_.categories[own.category].id == one->category_id;
      });
      const size_t rank = ranks[one->category_id]++;
      if (match == matches.end() || rank >= match->scores.size()) continue;
      const data::coco::Match::Bits bits = match->bits[rank];
      for (DrawnObject& object : found_objects(std::span(one, 1), truth_.categories, options_.visible_score)) {
        if (((bits.matched | bits.ignored) & 1) == 0) object.label += " (false)";
        all.push_back(std::move(object));
      }
    }
    return all;
  }

  const EvaluationGallery& options_;
  const data::coco::Annotations& truth_;
  const Scores& scores_;
  std::multimap<int64_t, const Detection*> detections_;
  PictureNames names_;
};

}  // namespace

void make_gallery_folder(const std::string& folder) { make_directories(system_files(), folder + "/" + kPictures); }

void write_evaluation_gallery(const EvaluationGallery& options, const data::coco::Annotations& truth,
                              const std::vector<Detection>& detections) {
  make_gallery_folder(options.folder);
  const Scores scores = scores_of(options, truth, detections);
  const Extremes extremes = extremes_of(scores.ranked, static_cast<size_t>(options.most));
  Gallery gallery{.title = options.title,
                  .notes = notes_of(options, scores, truth.images.size()),
                  .score_name = "F1",
                  .classes = classes_of(scores)};
  Pictures pictures(options, truth, detections, scores);
  for (const ImageOutcome& outcome : extremes.worst) gallery.worst.push_back(pictures.card(outcome));
  for (const ImageOutcome& outcome : extremes.best) gallery.best.push_back(pictures.card(outcome));
  write_gallery(options.folder, gallery);
}

}  // namespace dtrain::mask_rcnn
