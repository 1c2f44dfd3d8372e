// Binary encoding of detections for messages between ranks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dtrain/data/coco/results.h"

namespace dtrain::data::coco {

// Appends a record with the ids, the score, the box and the mask of a detection; numbers are exact. Throws
// Error(Fault::numeric) for a number that is not finite, and Error for polygons, which no detector returns; `message`
// is unchanged then.
void append_detection(std::string& message, const Detection& detection);

// Decodes all records of a message, which may come from a rank that lies. Throws Error(Fault::data), "detection at
// index 7: ...", for a truncated or invalid record. Memory stays within a small multiple of the message.
std::vector<Detection> parse_detections(std::string_view message);

}  // namespace dtrain::data::coco
