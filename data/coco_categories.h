// COCO's categories as classes, in data that need not have objects of all of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/detection_source.h"

namespace dtrain::data {

// The ids of COCO's 80 categories, which are from 1 to 90, in ascending order.
std::span<const int64_t> coco_category_ids();

// The place of each of these categories in coco_category_ids(). Throws Error(Fault::data) for one that is not there;
// `where` says in which file or folder.
std::vector<uint32_t> places_in_coco(const std::vector<coco::Category>& categories, const std::string& where);

// The same images, whose classes less one are the places of their categories in coco_category_ids(). Categories that
// `source` does not know have no name. Throws as places_in_coco() does.
std::shared_ptr<const DetectionSource> with_coco_classes(std::shared_ptr<const DetectionSource> source,
                                                         const std::string& where);

// All that the source says of its images but their masks: what detections are scored against. Throws Error(Fault::data)
// where an image cannot be read or has the id of another one.
coco::Annotations annotations_of(const DetectionSource& source);

}  // namespace dtrain::data
