// Where the region proposal network saw objects, in pixels of the image's file.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "apps/detection/found.h"
#include "data/coco/annotations.h"

namespace dtrain::mask_rcnn {

struct Proposal {
  data::coco::Box box{};
  double score = 0;  // a probability
};

// Those of the only image of `found`, by descending score.
std::vector<Proposal> proposals_of(Context& context, const models::Proposals& found,
                                   const detection::ImagePlace& image);

// A proposal that covers an object well.
struct CoveringProposal {
  size_t object = 0, proposal = 0;  // indices
  double iou = 0;                   // above 0
};

// The `most` proposals of the largest IoU with each object that is no crowd, object by object, the best ones first; the
// proposal of the higher score goes before another one of the same IoU.
std::vector<CoveringProposal> covering_proposals(std::span<const Proposal> proposals,
                                                 std::span<const data::coco::Annotation> objects, size_t most);

}  // namespace dtrain::mask_rcnn
