// Objects of an "instances" file, one at a time: what is usable of each.
#pragma once

#include <optional>

#include "data/coco/record.h"

namespace dtrain::data::coco {

inline constexpr uint32_t kNone = UINT32_MAX;  // in place of an index

// An object whose image and category are known once the whole file is read.
struct PendingObject {
  Annotation annotation{};
  int64_t image_id = 0, category_id = 0;
  uint32_t index = 0;  // in the list
  bool has_id = true, has_area = false, has_box = false;

  bool is_resolved() const { return annotation.image != kNone && annotation.category != kNone; }
  // "annotation 123", or "annotation at index 4".
  std::string title() const;
};

inline constexpr std::string_view kLeftOut = "left out";

// What is left of the object; nothing where it is unusable. Findings get what is left out.
std::optional<PendingObject> take_object(Record& record, const AnnotationOptions& options, Findings& findings);

// What an error of the file `where` says, without the file.
std::string reason_of(const std::exception& error, const std::string& where);

}  // namespace dtrain::data::coco
