#include "apps/mask_rcnn/datasets.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "libdtrain/core/error.h"

namespace dtrain::mask_rcnn {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBefore = "instances_", kAfter = ".json";

// Splits with annotations whose names contain `part`, sorted.
std::vector<std::string> splits_with(const DataSettings& settings, const std::string& part) {
  DT_CHECK(!settings.base_dir.empty(), "no data: give --data_dir DIR, a folder with annotations/instances_SPLIT.json");
  std::vector<std::string> splits;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(settings.base_dir + "/annotations", failure)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kBefore) || !name.ends_with(kAfter)) continue;
    const std::string split = name.substr(kBefore.size(), name.size() - kBefore.size() - kAfter.size());
    if (split.find(part) != split.npos) splits.push_back(split);
  }
  if (splits.empty())
    throw Error(Fault::data, fmt::format("{}/annotations: no file instances_*{}*.json{}", settings.base_dir, part,
                                         failure ? ": " + failure.message() : ""));
  std::ranges::sort(splits);
  return splits;
}

data::DetectionOptions dataset_options(const DataSettings& settings, bool training) {
  data::DetectionOptions options;
  options.training = training;
  options.resize = training ? settings.training_resize : settings.evaluation_resize;
  options.canvases = settings.canvases();
  options.flip_probability = settings.flip_probability;
  options.jitter = settings.jitter;
  options.keep_empty = settings.keep_empty;
  return options;
}

std::shared_ptr<data::DetectionDataset> open(const DataSettings& settings, const std::string& split, bool training) {
  return std::make_shared<data::DetectionDataset>(
      data::open_coco(annotations_of(settings, split), images_of(settings, split), settings.classes),
      dataset_options(settings, training));
}

}  // namespace

std::string annotations_of(const DataSettings& settings, const std::string& split) {
  return fmt::format("{}/annotations/{}{}{}", settings.base_dir, kBefore, split, kAfter);
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

ValidationSplit open_validation(const DataSettings& settings, const std::string& split) {
  return {split, open(settings, split, false),
          std::make_shared<data::coco::Annotations>(
              data::coco::read_annotations(annotations_of(settings, split), {.classes = settings.classes}))};
}

int64_t classes_of(const data::DetectionDataset& dataset) {
  return static_cast<int64_t>(dataset.categories().size()) + 1;
}

}  // namespace dtrain::mask_rcnn
