// Region proposals in pixels of the image file.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "apps/detection/detections.h"
#include "dtrain/data/coco/annotations.h"

namespace dtrain::mask_rcnn {

struct Proposal {
  data::coco::BoundingBox box{};
  double score = 0;  // a probability
};

// Proposals of the only image in `found`, by descending score.
std::vector<Proposal> proposals_of(Context& context, const models::Proposals& found,
                                   const detection::ImagePlace& image);

// A proposal matched to an object.
struct CoveringProposal {
  size_t object = 0, proposal = 0;  // indices
  double iou = 0;                   // above 0
};

// The `most` proposals with the largest IoU for each non-crowd object, object by object, by descending IoU, then
// descending score.
std::vector<CoveringProposal> covering_proposals(std::span<const Proposal> proposals,
                                                 std::span<const data::coco::Annotation> objects, size_t most);

}  // namespace dtrain::mask_rcnn
