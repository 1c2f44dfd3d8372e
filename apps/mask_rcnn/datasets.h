// The data sets of a run, from the folder that the settings name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/detection/detection_task.h"
#include "apps/mask_rcnn/settings.h"

namespace dtrain::mask_rcnn {

// Those that a key names, those of the preset where one of them is there, else all with "train" or "val" in their
// names. Throws Error(Fault::data) where there is none.
std::vector<std::string> training_splits(const DataSettings& settings);
std::vector<std::string> validation_splits(const DataSettings& settings);

// The file of a split's annotations, and the folder of its images: that of its name or, for minival2014,
// valminusminival2014 and val2017_100 without one, that in which TensorPack finds them.
std::string annotations_of(const DataSettings& settings, const std::string& split);
std::string images_of(const DataSettings& settings, const std::string& split);

// All splits that are trained on, as one. What people are told of what is left out of them is added to `notices`.
std::shared_ptr<data::DetectionDataset> open_training(const Settings& settings, std::vector<std::string>& notices);
// Whether they are the images of COCO's training split, about as many and of its categories: what the lengths of the
// presets were made for.
bool are_coco(const data::DetectionDataset& dataset);
// All splits that are evaluated, with their truth. `training` is null where nothing is trained, and then
// the detector learnt what settings.weights have recorded, if anything; else there may be none,
// where the settings name none but the preset's and the folder has none, and `notices` says so. Throws
// Error(Fault::data) where their categories are not those that the detector learns, masks are to be scored and no
// object has one, or files of images are missing.
std::vector<detection::ValidationSplit> open_validation(const Settings& settings,
                                                        const data::DetectionDataset* training,
                                                        std::vector<std::string>& notices);

// Images of all splits.
uint64_t images_in(const std::vector<detection::ValidationSplit>& splits);

// The annotations of a split as pictures show them: without what training data leaves out.
data::coco::Annotations read_shown(const DataSettings& settings, const std::string& split);

// Classes of the data, with the background.
int64_t classes_of(const data::DetectionDataset& dataset);

}  // namespace dtrain::mask_rcnn
