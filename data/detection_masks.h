// Masks of objects as run lengths at the size that their image is resized to.
#pragma once

#include <cstdint>
#include <vector>

#include "data/coco/annotations.h"
#include "data/detection_geometry.h"

namespace dtrain::data {

// Appends where the runs of the object's mask end, column by column, as libdtrain/ops/crop_masks.h wants them: the
// first run is of zeros, the last ends at placement.to's last pixel. Polygons are filled by COCO's rules, at the new
// size or as Placement::resizes_masks says; run lengths are resampled to the nearest pixel; an object without either
// has no runs. Throws Error(Fault::data) where the mask is none or of another size than placement.from.
void append_runs(const coco::Annotation& object, const Placement& placement, std::vector<int32_t>& ends);

// No fewer runs than append_runs makes for an image that is resized to placement.to or smaller.
uint64_t most_runs(const coco::Annotation& object, const Placement& placement);

}  // namespace dtrain::data
