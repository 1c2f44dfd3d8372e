#include "apps/mask_rcnn/datasets.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/detection/splits.h"
#include "apps/mask_rcnn/coco_score.h"
#include "libdtrain/core/error.h"

namespace dtrain::mask_rcnn {
namespace {

std::vector<std::string> splits_with(const DataSettings& settings, const std::string& part) {
  DT_CHECK(!settings.base_dir.empty(), "no data: give --data_dir DIR, a folder with annotations/instances_SPLIT.json");
  return detection::annotated_splits(settings.base_dir, part);
}

data::DetectionOptions dataset_options(const DataSettings& settings, bool training) {
  data::DetectionOptions options;
  options.training = training;
  options.resize = training ? settings.training_resize : settings.evaluation_resize;
  options.canvases = settings.canvases();
  options.flip_probability = settings.flip_probability;
  options.jitter = settings.jitter;
  options.keep_empty = settings.keep_empty;
  options.decoding.orientation = settings.orientation;
  options.decoding.tagged = settings.tagged;
  return options;
}

std::shared_ptr<data::DetectionDataset> open(const DataSettings& settings, const std::string& split, bool training) {
  const std::string path = annotations_of(settings, split);
  const auto source = data::open_coco(path, images_of(settings, split), settings.classes);
  const auto refuse = [&](const std::string& problem) { throw Error(Fault::data, path + ": " + problem); };
  if (source->size() == 0) refuse("lists no images");
  if (source->categories().empty()) refuse("lists no categories");
  auto dataset = std::make_shared<data::DetectionDataset>(source, dataset_options(settings, training));
  if (dataset->size() == 0)
    refuse(fmt::format("none of its {} images has an object to train on; crowds and objects without area are none",
                       source->size()));
  return dataset;
}

// A detector's classes are numbered in the order of the categories.
void check_categories(const std::vector<data::coco::Category>& found, const std::vector<data::coco::Category>& expected,
                      const std::string& path) {
  const auto described = [](const std::vector<data::coco::Category>& all, size_t i) {
    return i < all.size() ? fmt::format("{} ({})", all[i].id, all[i].name) : "missing";
  };
  for (size_t i = 0; i < std::max(found.size(), expected.size()); ++i)
    if (i >= found.size() || i >= expected.size() || found[i].id != expected[i].id)
      throw Error(Fault::data, fmt::format("{}: category {} of the detector is {}, expected {}: list the same "
                                           "categories in all splits, or choose them by DATA.CLASS_NAMES",
                                           path, i + 1, described(found, i), described(expected, i)));
}

}  // namespace

std::string annotations_of(const DataSettings& settings, const std::string& split) {
  return detection::annotations_in(settings.base_dir, split);
}

std::string images_of(const DataSettings& settings, const std::string& split) {
  return settings.base_dir + "/" + split;
}

std::vector<std::string> training_splits(const DataSettings& settings) {
  return settings.training.empty() ? splits_with(settings, "train") : settings.training;
}

std::vector<std::string> validation_splits(const DataSettings& settings) {
  return settings.validation.empty() ? splits_with(settings, "val") : settings.validation;
}

std::shared_ptr<data::DetectionDataset> open_training(const DataSettings& settings) {
  const std::vector<std::string> splits = training_splits(settings);
  DT_CHECK(splits.size() == 1, "training on several splits at once, ", fmt::format("{}", fmt::join(splits, ", ")),
           ": name one of them by DATA.TRAIN");
  return open(settings, splits[0], true);
}

std::vector<detection::ValidationSplit> open_validation(const Settings& settings,
                                                        const data::DetectionDataset* training) {
  std::vector<detection::ValidationSplit> splits;
  for (const std::string& name : validation_splits(settings.data)) {
    const std::string path = annotations_of(settings.data, name);
    auto truth = data::coco::read_annotations(path, {.classes = settings.data.classes});
    if (settings.detector.masks) require_masks(truth, path);
    splits.push_back(
        {name, open(settings.data, name, false), std::make_shared<data::coco::Annotations>(std::move(truth))});
    const data::DetectionDataset& learnt = training ? *training : *splits.front().images;
    check_categories(splits.back().images->categories(), learnt.categories(), path);
  }
  return splits;
}

int64_t classes_of(const data::DetectionDataset& dataset) {
  return static_cast<int64_t>(dataset.categories().size()) + 1;
}

}  // namespace dtrain::mask_rcnn
