// Mapping of COCO's categories to classes, for data that lacks some of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dtrain/data/detection_source.h"

namespace dtrain::data {

// Ids of COCO's 80 categories, between 1 and 90, ascending.
std::span<const int64_t> coco_category_ids();

// Index of each category in coco_category_ids(). Throws Error(Fault::data) for an unknown category; `where` is the file
// or folder in the message.
std::vector<uint32_t> places_in_coco(const std::vector<coco::Category>& categories, const std::string& where);

// The same images with class = index of the category in coco_category_ids() + 1. Categories unknown to `source` have no
// name. Throws as places_in_coco() does.
std::shared_ptr<const DetectionSource> with_coco_classes(std::shared_ptr<const DetectionSource> source,
                                                         const std::string& where);

// Ground truth of a source for scoring, without masks. Throws Error(Fault::data) for an unreadable image and a
// duplicate image id.
coco::Annotations annotations_of(const DetectionSource& source);

}  // namespace dtrain::data
