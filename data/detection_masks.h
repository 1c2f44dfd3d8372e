// Object masks as run lengths at the size of the resized image.
#pragma once

#include <cstdint>
#include <vector>

#include "dtrain/data/coco/annotations.h"
#include "dtrain/data/detection_geometry.h"

namespace dtrain::data {

// Appends the ends of the runs of the object's mask, column by column, in the format of dtrain/ops/crop_masks.h: the
// first run is of zeros, the last ends at the last pixel of placement.to. Polygons are rasterised by COCO's rules, at
// the new size or as Placement::resizes_masks states; RLE masks are resampled to the nearest pixel; an object without
// segmentation has no runs. Throws Error(Fault::data) for an invalid mask or one of another size than placement.from.
void append_runs(const coco::Annotation& object, const Placement& placement, std::vector<int32_t>& ends);

// Upper bound on the runs that append_runs appends for sizes up to placement.to.
uint64_t most_runs(const coco::Annotation& object, const Placement& placement);

}  // namespace dtrain::data
