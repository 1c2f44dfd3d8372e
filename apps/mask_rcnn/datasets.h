// The data sets of a run, from the folder that the settings name.
#pragma once

#include <memory>
#include <vector>

#include "apps/detection/detection_task.h"
#include "apps/mask_rcnn/settings.h"

namespace dtrain::mask_rcnn {

// The splits that are named, or those with annotations whose names contain "train" or "val". Throws Error(Fault::data)
// where there are none.
std::vector<std::string> training_splits(const DataSettings& settings);
std::vector<std::string> validation_splits(const DataSettings& settings);

// The file of a split's annotations, and the folder of its images.
std::string annotations_of(const DataSettings& settings, const std::string& split);
std::string images_of(const DataSettings& settings, const std::string& split);

std::shared_ptr<data::DetectionDataset> open_training(const DataSettings& settings);
// All splits that are evaluated, with their truth. `training` is null where nothing is trained. Throws
// Error(Fault::data) where their categories are not those that the detector learns, or masks are to be scored and an
// object has none.
std::vector<detection::ValidationSplit> open_validation(const Settings& settings,
                                                        const data::DetectionDataset* training);

// Classes of the data, with the background.
int64_t classes_of(const data::DetectionDataset& dataset);

}  // namespace dtrain::mask_rcnn
