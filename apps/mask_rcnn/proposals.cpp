#include "apps/mask_rcnn/proposals.h"

#include <algorithm>
#include <cmath>

#include "data/coco/overlap.h"

namespace dtrain::mask_rcnn {

std::vector<Proposal> proposals_of(Context& context, const models::Proposals& found,
                                   const detection::ImagePlace& image) {
  std::vector<float> boxes(static_cast<size_t>(found.boxes.count())), logits(static_cast<size_t>(found.scores.count()));
  int32_t count = 0;
  context.download(found.boxes, boxes.data(), "proposals");
  context.download(found.scores, logits.data(), "proposals");
  context.download(found.counts, &count, "proposals");
  std::vector<Proposal> proposals;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const data::coco::PasteBox at = detection::box_in_file(boxes.data() + 4 * i, image);
    proposals.push_back({{at.x1, at.y1, at.x2 - at.x1, at.y2 - at.y1}, 1 / (1 + std::exp(-double{logits[i]}))});
  }
  return proposals;
}

std::vector<CoveringProposal> covering_proposals(std::span<const Proposal> proposals,
                                                 std::span<const data::coco::Annotation> objects, size_t most) {
  std::vector<CoveringProposal> all;
  for (size_t object = 0; object < objects.size(); ++object) {
    if (objects[object].is_crowd) continue;
    std::vector<CoveringProposal> own;
    for (size_t i = 0; i < proposals.size(); ++i)
      if (const double iou = data::coco::iou(proposals[i].box, objects[object].box, false); iou > 0)
        own.push_back({object, i, iou});
    std::ranges::stable_sort(own, std::greater<>(), &CoveringProposal::iou);
    own.resize(std::min(own.size(), most));
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

}  // namespace dtrain::mask_rcnn
