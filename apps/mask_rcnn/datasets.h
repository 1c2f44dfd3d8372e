// Data sets of a run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/detection/detection_task.h"
#include "apps/mask_rcnn/settings.h"
#include "apps/mask_rcnn/split_files.h"

namespace dtrain::mask_rcnn {

// The splits of a key; else of the preset, if one exists; else all whose names contain "train" or "val". Throws
// Error(Fault::data) if there is none.
std::vector<std::string> training_splits(const DataSettings& settings);
std::vector<std::string> validation_splits(const DataSettings& settings);

// All training splits as one data set. Appends notices about dropped images and objects.
std::shared_ptr<data::DetectionDataset> open_training(const Settings& settings, std::vector<std::string>& notices);
// Whether they resemble COCO's training split, by number of images and categories: the presets' schedules were made for
// it.
bool are_coco(const data::DetectionDataset& dataset);
// All evaluation splits, with ground truth. `training` is null without training; then the detector's categories are
// those recorded with settings.weights, if any. With training, the result may be empty, with a notice, if only the
// preset names splits. Throws Error(Fault::data) if the categories differ from the detector's, if no object has a mask
// and masks are evaluated, or if image files are missing.
std::vector<detection::ValidationSplit> open_validation(const Settings& settings,
                                                        const data::DetectionDataset* training,
                                                        std::vector<std::string>& notices);

// Number of images of all splits.
uint64_t images_in(const std::vector<detection::ValidationSplit>& splits);

// Annotations of a split for pictures, without objects that training ignores.
data::coco::Annotations read_shown(const DataSettings& settings, const std::string& split);

// Number of classes, including background.
int64_t classes_of(const data::DetectionDataset& dataset);

}  // namespace dtrain::mask_rcnn
