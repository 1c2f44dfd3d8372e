// Which kind of data set a folder holds.
#pragma once

#include <string>

#include "apps/dataset/annotated_source.h"

namespace dtrain::dataset {

// Whether `data` has labelled images rather than annotated objects, which any format of `flags` but COCO's implies.
bool is_labelled(const std::string& data, const AnnotationFlags& flags);

}  // namespace dtrain::dataset
