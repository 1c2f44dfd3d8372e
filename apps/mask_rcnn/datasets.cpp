#include "apps/mask_rcnn/datasets.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/cli/stop_signals.h"
#include "apps/detection/match_categories.h"
#include "apps/detection/recorded_categories.h"
#include "apps/detection/splits.h"
#include "apps/mask_rcnn/coco_score.h"
#include "data/coco_categories.h"
#include "data/coco_images.h"
#include "dtrain/core/error.h"
#include "dtrain/io/remote_path.h"

namespace dtrain::mask_rcnn {
namespace {

// The splits of a key; else of the preset, if one exists; else all whose names contain `part`.
std::vector<std::string> splits_with(const DataSettings& settings, const std::vector<std::string>& listed, bool named,
                                     const std::string& part) {
  DT_CHECK(!settings.base_dir.empty(), "no data: give --data_dir DIR, a folder with annotations/instances_SPLIT.json");
  const auto is_there = [&](const std::string& split) { return file_exists(annotations_of(settings, split)); };
  return named || std::ranges::any_of(listed, is_there) ? listed : detection::annotated_splits(settings.base_dir, part);
}

// Empty if the splits are as configured.
std::string notice_of_splits(const Settings& settings, const char* key, const std::vector<std::string>& listed,
                             const std::vector<std::string>& found) {
  if (listed.empty() || found == listed) return {};
  return fmt::format("{}: {} has no {}, the split of --preset={}; using {}", key, settings.data.base_dir,
                     fmt::join(listed, ", "), settings.preset, fmt::join(found, ", "));
}

data::DetectionDatasetOptions dataset_options(const DataSettings& settings, bool training) {
  data::DetectionDatasetOptions options;
  options.training = training;
  options.resize = training ? settings.training_resize : settings.evaluation_resize;
  options.canvases = settings.canvases();
  options.flip_probability = settings.flip_probability;
  options.jitter = settings.jitter;
  options.keep_empty = settings.keep_empty;
  options.decoding.orientation = settings.orientation;
  return options;
}

data::coco::AnnotationOptions training_options(const DataSettings& settings) {
  return {.classes = settings.classes, .strict = settings.strict, .skip_ignored = settings.skips_ignored};
}

data::coco::AnnotationOptions truth_options(const DataSettings& settings, bool masks) {
  using Use = data::coco::AnnotationOptions::Use;
  return {.classes = settings.classes, .use = Use::scoring, .masks = masks, .strict = settings.strict};
}

// Opens a split with the categories `learnt`, in that order. Sets the class mapping in `options`.
std::shared_ptr<const data::DetectionSource> open_source(const DataSettings& settings, const std::string& split,
                                                         data::coco::AnnotationOptions& options,
                                                         const std::vector<data::coco::Category>* learnt,
                                                         std::vector<std::string>& notices) {
  const std::string path = annotations_of(settings, split), folder = images_of(settings, split);
  options.stop = cli::stop_requested;
  auto source = data::open_coco(path, folder, options);
  const std::vector<std::string> findings = source->notices();
  notices.insert(notices.end(), findings.begin(), findings.end());
  if (source->size() == 0)
    throw Error(Fault::data, fmt::format("{}: lists no images{}", path,
                                         findings.empty() ? "" : " that can be used: " + findings.front()));
  if (source->categories().empty()) throw Error(Fault::data, path + ": lists no categories");
  if (!learnt) return source;
  const detection::CategoryMatch match = detection::match_categories(source->categories(), *learnt, path);
  if (!match.notice.empty()) notices.push_back(match.notice);
  if (match.classes.empty()) return source;
  options.classes = match.classes;
  return data::open_coco(path, folder, options);
}

void require_files(const data::DetectionDataset& dataset, const std::string& path) {
  if (const std::vector<std::string> missing = dataset.missing_files(); !missing.empty())
    throw Error(Fault::data, fmt::format("{}: {} of {} image files are missing, such as {}", path, missing.size(),
                                         dataset.size(), missing.front()));
}

// No missing split was named explicitly.
bool lacks_validation(const DataSettings& settings) {
  return !settings.names_validation && !detection::has_annotated_split(settings.base_dir, "val");
}

}  // namespace

std::vector<std::string> training_splits(const DataSettings& settings) {
  return splits_with(settings, settings.training, settings.names_training, "train");
}

std::vector<std::string> validation_splits(const DataSettings& settings) {
  return splits_with(settings, settings.validation, settings.names_validation, "val");
}

std::shared_ptr<data::DetectionDataset> open_training(const Settings& settings, std::vector<std::string>& notices) {
  std::vector<std::shared_ptr<const data::DetectionSource>> sources;
  const std::vector<std::string> splits = training_splits(settings.data);
  if (std::string notice = notice_of_splits(settings, "DATA.TRAIN", settings.data.training, splits); !notice.empty())
    notices.push_back(std::move(notice));
  for (const std::string& split : splits) {
    data::coco::AnnotationOptions options = training_options(settings.data);
    const auto* const learnt = sources.empty() ? nullptr : &sources.front()->categories();
    sources.push_back(open_source(settings.data, split, options, learnt, notices));
  }
  auto dataset = std::make_shared<data::DetectionDataset>(data::join(sources), dataset_options(settings.data, true));
  if (settings.detector.masks && !dataset->notice_of_masks().empty()) notices.push_back(dataset->notice_of_masks());
  const std::string path = annotations_of(settings.data, splits.front());
  if (dataset->size() == 0)
    throw Error(
        Fault::data,
        fmt::format(
            "{}: none of its {} images has an object to train on; crowds and objects without area do not count{}{}",
            path, data::join(sources)->size(), notices.empty() ? "" : ": ", fmt::join(notices, "; ")));
  require_files(*dataset, path);
  return dataset;
}

bool are_coco(const data::DetectionDataset& dataset) {
  constexpr uint64_t kLeast = 100'000;
  return dataset.size() >= kLeast &&
         std::ranges::equal(dataset.categories(), data::coco_category_ids(), {}, &data::coco::Category::id);
}

std::vector<detection::ValidationSplit> open_validation(const Settings& settings,
                                                        const data::DetectionDataset* training,
                                                        std::vector<std::string>& notices) {
  std::vector<detection::ValidationSplit> splits;
  if (training != nullptr && lacks_validation(settings.data)) {
    notices.push_back(
        fmt::format("{}/annotations: no validation data, skipping evaluations; expected instances_*val*.json, or a "
                    "split set by DATA.VAL",
                    settings.data.base_dir));
    return splits;
  }
  std::vector<data::coco::Category> learnt = training ? training->categories()
                                             : settings.weights.empty()
                                                 ? std::vector<data::coco::Category>()
                                                 : detection::recorded_categories(settings.weights);
  const std::vector<std::string> names = validation_splits(settings.data);
  if (std::string notice = notice_of_splits(settings, "DATA.VAL", settings.data.validation, names); !notice.empty())
    notices.push_back(std::move(notice));
  for (const std::string& name : names) {
    const std::string path = annotations_of(settings.data, name);
    data::coco::AnnotationOptions options = truth_options(settings.data, settings.detector.masks);
    auto source = open_source(settings.data, name, options, learnt.empty() ? nullptr : &learnt, notices);
    if (learnt.empty()) learnt = source->categories();
    options.complete = data::complete_from(images_of(settings.data, name));  // of the same images as the source
    auto truth = data::coco::read_annotations(path, options);
    if (settings.detector.masks)
      if (std::string notice = check_masks(truth, path); !notice.empty()) notices.push_back(std::move(notice));
    splits.push_back({name, std::make_shared<data::DetectionDataset>(source, dataset_options(settings.data, false)),
                      std::make_shared<data::coco::Annotations>(std::move(truth))});
    require_files(*splits.back().images, path);
  }
  return splits;
}

data::coco::Annotations read_shown(const DataSettings& settings, const std::string& split) {
  data::coco::AnnotationOptions options = training_options(settings);
  options.skip_ignored = false;
  options.complete = data::complete_from(images_of(settings, split));
  return data::coco::read_annotations(annotations_of(settings, split), options);
}

uint64_t images_in(const std::vector<detection::ValidationSplit>& splits) {
  uint64_t images = 0;
  for (const detection::ValidationSplit& split : splits) images += split.images->size();
  return images;
}

int64_t classes_of(const data::DetectionDataset& dataset) {
  return static_cast<int64_t>(dataset.categories().size()) + 1;
}

}  // namespace dtrain::mask_rcnn
