#include "apps/ssd/data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/cli/stop_signals.h"
#include "apps/detection/splits.h"
#include "data/coco_categories.h"
#include "data/coco_layout.h"
#include "data/shard_files.h"
#include "dtrain/core/error.h"
#include "dtrain/data/coco/evaluate.h"
#include "dtrain/io/remote_path.h"
#include "dtrain/models/ssd300.h"

namespace dtrain::ssd {
namespace {

std::shared_ptr<const data::DetectionSource> open_annotated(const std::string& folder, bool training) {
  const std::string part = training ? "train" : "val";
  const std::vector<std::string> splits = detection::annotated_splits(folder, part);
  if (splits.size() != 1)
    throw Error(Fault::data, fmt::format("{}/annotations: several splits, {}; expected one whose name contains {}",
                                         folder, fmt::join(splits, ", "), part));
  using Use = data::coco::AnnotationOptions::Use;
  return data::open_coco(detection::annotations_in(folder, splits[0]), detection::images_in(folder, splits[0]),
                         {.use = training ? Use::training : Use::scoring, .masks = false, .stop = cli::stop_requested});
}

std::shared_ptr<const data::DetectionSource> open_source(const std::string& folder, bool training,
                                                         const data::CacheOptions& cache) {
  const std::string split = training ? "train" : "validation";
  const bool has_annotations = folder_exists(folder + "/annotations") || !data::coco_splits(folder).empty();
  const bool annotated = !data::has_shards(folder, split) && has_annotations;
  auto source = annotated ? open_annotated(folder, training) : data::open_detection_records(folder, split, cache);
  return data::with_coco_classes(std::move(source), folder);
}

std::shared_ptr<data::DetectionDataset> dataset_of(std::shared_ptr<const data::DetectionSource> source, bool training,
                                                   bool augments) {
  data::DetectionDatasetOptions options;
  options.training = training;
  options.stretch = data::ImageSize{models::kSsdSide, models::kSsdSide};
  options.masks = false;
  options.min_area = 0;
  options.object_crops = training && augments;
  options.flip_probability = augments ? 0.5f : 0.0f;
  if (augments) options.jitter = {.brightness = 0.125f, .contrast = 0.5f, .saturation = 0.5f, .hue = 0.05f};
  return std::make_shared<data::DetectionDataset>(std::move(source), options);
}

}  // namespace

std::shared_ptr<data::DetectionDataset> open_training(const std::string& folder, bool augments,
                                                      const data::CacheOptions& cache) {
  const auto source = open_source(folder, /*training=*/true, cache);
  auto dataset = dataset_of(source, /*training=*/true, augments);
  if (dataset->size() == 0)
    throw Error(Fault::data, fmt::format("{}: none of the {} training images has an object to train on; crowds and "
                                         "objects without area do not count",
                                         folder, source->size()));
  return dataset;
}

detection::ValidationSplit open_validation(const std::string& folder, const data::CacheOptions& cache) {
  const auto source = open_source(folder, /*training=*/false, cache);
  if (source->size() == 0) throw Error(Fault::data, folder + ": no validation images");
  return {"validation", dataset_of(source, /*training=*/false, /*augments=*/false),
          std::make_shared<data::coco::Annotations>(data::annotations_of(*source))};
}

std::vector<std::string> score_names() {
  std::vector<std::string> names;
  for (const char* name :
       {"AP", "AP50", "AP75", "APs", "APm", "APl", "ARmax1", "ARmax10", "ARmax100", "ARs", "ARm", "ARl"})
    names.push_back(fmt::format("COCO/{}", name));
  return names;
}

std::vector<MetricValue> score(const detection::ValidationSplit& split,
                               const std::vector<data::coco::Detection>& detections) {
  data::coco::Evaluator evaluator(*split.truth);
  evaluator.add(detections);
  const std::vector<data::coco::Statistic> statistics = evaluator.score().statistics();
  std::vector<MetricValue> values = {{"top_1_accuracy", statistics.front().value}, {"top_5_accuracy", 0}};
  for (size_t i = 0; const std::string& name : score_names()) values.push_back({name, statistics[i++].value});
  return values;
}

}  // namespace dtrain::ssd
