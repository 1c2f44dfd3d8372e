#include "apps/mask_rcnn/score_results.h"

#include <cmath>
#include <filesystem>
#include <iostream>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/cli/messages.h"
#include "apps/cli/output.h"
#include "apps/mask_rcnn/coco_score.h"
#include "apps/mask_rcnn/datasets.h"
#include "data/coco_images.h"
#include "libdtrain/core/cores.h"

namespace dtrain::mask_rcnn {
namespace {

void add_results(data::coco::Evaluator& evaluator, const std::vector<data::coco::Detection>& detections,
                 const std::string& path) {
  for (size_t i = 0; i < detections.size(); ++i) {
    try {
      evaluator.add(detections[i]);
    } catch (const Error& error) {
      throw Error(error.fault(), fmt::format("{}: at index {}: {}", path, i, error.what()));
    }
  }
}

void print_statistics(const EvalFlags& values, const std::vector<data::coco::Statistic>& statistics) {
  if (values.json) {
    nlohmann::ordered_json line = {{"iou_type", values.iou_type}, {"stats", nlohmann::json::array()}};
    for (const auto& one : statistics) {
      line["stats"].push_back(one.value);
      line["names"].push_back(one.name);
      if (!one.why_absent.empty()) line["why_absent"][one.name] = one.why_absent;
    }
    cli::patient_stdout() << line.dump() << std::endl;
    return;
  }
  for (const auto& one : statistics)
    cli::patient_stdout() << fmt::format(" {} = {:.3f}{}", one.title, one.value,
                                         one.why_absent.empty() ? "" : "   (" + one.why_absent + ")")
                          << std::endl;
}

// Faults found in a file, and notices about it.
void print_findings(const std::string& path, const data::coco::Findings& findings) {
  if (!findings.all().empty()) cli::print_message("note", path + ": " + findings.summary());
}

// Masks are evaluated, and detections have only boxes.
void add_box_masks(const std::vector<data::coco::Detection>& detections, const data::coco::EvaluationOptions& options,
                   data::coco::Findings& findings) {
  if (options.compare != data::coco::EvaluationOptions::Compare::masks || !options.area_of_box) return;
  for (size_t i = 0; i < detections.size(); ++i)
    if (!detections[i].mask && detections[i].polygons.empty())
      findings.add("detections without a mask", "evaluated as their full box, as in pycocotools",
                   fmt::format("detection at index {}", i));
}

// Whether a box can be drawn.
bool is_drawable(const data::coco::Detection& detection) {
  if (!detection.box) return true;
  const data::coco::BoundingBox& box = *detection.box;
  const auto near = [](double at) { return std::abs(at) <= 1e9; };
  return near(box.x) && near(box.y) && near(box.width) && near(box.height) && box.width >= 0 && box.height >= 0;
}

void write_gallery_of_results(const EvalFlags& values, const Settings& settings,
                              std::vector<data::coco::Detection> detections) {
  EvaluationGallery gallery = gallery_of(values, settings);
  gallery.title = "Evaluation of " + std::filesystem::path(values.results).filename().string();
  gallery.notes = {"Results: " + values.results, "Annotations: " + values.annotations};
  gallery.images = values.images;
  gallery.masks = values.iou_type == "segm";
  gallery.boxes = !gallery.masks;
  if (const auto hidden = std::erase_if(detections, [](const auto& one) { return !is_drawable(one); }); hidden > 0)
    cli::print_message("note",
                       fmt::format("{}: {} boxes with negative size or non-finite numbers are not in the gallery",
                                   values.results, hidden));
  const auto shown = data::coco::read_annotations(values.annotations, {.complete = data::complete_from(values.images)});
  std::unordered_set<int64_t> ids;
  for (const data::coco::AnnotatedImage& image : shown.images) ids.insert(image.id);
  std::erase_if(detections, [&](const auto& one) { return !ids.contains(one.image_id); });
  write_evaluation_gallery(gallery, shown, detections);
}

}  // namespace

void EvalFlags::declare(cli::FlagSet& flags) {
  model.declare(flags);
  flags.add("batch_size", batch, "images per chunk", cli::kPositiveCount);
  flags.add("save_results", save_results,
            "file for the detections of the model in COCO's results format; -SPLIT is appended to its name, as in "
            "TensorPack");
  flags.group("Results file");
  flags.add("annotations", annotations, "COCO annotations, for --results");
  flags.add("results", results, "detections in COCO's results format, evaluated instead of a model");
  flags.add_choice("iou_type", iou_type, {"bbox", "segm"}, "IoU of boxes or of masks");
  flags.add("json", json,
            R"(print one line: {"iou_type": T, "stats": [12 numbers], "names": [...]}; for each -1 among them )"
            R"("why_absent" has the reason)");
  flags.group("Gallery");
  flags.add("gallery", gallery,
            "folder for index.html with the images of lowest and highest F1, and the AP of each class");
  flags.add("gallery_images", gallery_images, "number of worst and of best images", cli::kPositiveCount);
  flags.add("images", images, "image folder, for a gallery of --results");
  machine.declare(flags);
}

void EvalFlags::check() const {
  cli::refuse(
      {{!results.empty() && annotations.empty(), "--results needs --annotations"},
       {results.empty() && model.load.empty(), "give --load WEIGHTS, or --annotations and --results; see --help"},
       {!results.empty() && !gallery.empty() && images.empty(),
        "--gallery of --results needs --images, the folder of the images"},
       {!save_results.empty() && !results.empty(), "--save_results is for --load; --results has a file already"},
       {!images.empty() && (results.empty() || gallery.empty()), "--images is for --gallery of --results"}});
}

EvaluationGallery gallery_of(const EvalFlags& values, const Settings& settings) {
  return {.folder = values.gallery,
          .orientation = settings.data.orientation,
          .visible_score = settings.visible_score,
          .most = values.gallery_images,
          .threads = usable_cores()};
}

int score_results(const EvalFlags& values, const cli::FlagSet& flags) {
  std::vector<std::string> notices;
  const Settings settings = values.model.settings(flags, notices);
  cli::print_notes(notices);
  if (!values.gallery.empty()) make_gallery_folder(values.gallery);
  const bool masks = values.iou_type == "segm";
  const auto truth = data::coco::read_annotations(
      values.annotations,
      {.use = data::coco::AnnotationOptions::Use::scoring, .masks = masks, .strict = settings.data.strict});
  print_findings(values.annotations, truth.findings);
  data::coco::EvaluationOptions options;
  if (masks) {
    if (const std::string notice = check_masks(truth, values.annotations); !notice.empty())
      cli::print_message("note", notice);
    options.compare = data::coco::EvaluationOptions::Compare::masks;
  }
  data::coco::Findings findings;
  const std::vector<data::coco::Detection> detections =
      data::coco::read_results(values.results, {.masks = masks, .findings = &findings});
  options.area_of_box = !detections.empty() && detections.front().box;
  add_box_masks(detections, options, findings);
  print_findings(values.results, findings);
  if (settings.data.strict) findings.refuse(values.results);
  data::coco::Evaluator evaluator(truth, options);
  add_results(evaluator, detections, values.results);
  print_statistics(values, evaluator.score().statistics());
  if (!values.gallery.empty()) write_gallery_of_results(values, settings, detections);
  return 0;
}

}  // namespace dtrain::mask_rcnn
