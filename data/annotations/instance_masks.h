// Masks of VOC's SegmentationObject images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dtrain/data/coco/rle.h"
#include "dtrain/data/detection_geometry.h"

namespace dtrain::data::annotations {

// Masks of the objects 1, 2 ... of a PNG whose pixels are palette indices, grey levels or colours of VOC's palette: 0
// is background, 255 the outline of objects, which is in no mask. An absent object has an empty mask. Throws
// Error(Fault::data), with `path`, for an image of another size or with another colour.
std::vector<coco::Rle> read_instance_masks(const std::string& path, const ImageSize& size);
// The same for a file in memory; `where` replaces the path.
std::vector<coco::Rle> parse_instance_masks(std::span<const std::byte> png, const std::string& where,
                                            const ImageSize& size);

}  // namespace dtrain::data::annotations
