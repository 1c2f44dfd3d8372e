// The image files that COCO's annotations are about, where the annotations do not say all of them.
#pragma once

#include <functional>
#include <string>

#include "data/coco/annotations.h"

namespace dtrain::data {

// What coco::AnnotationOptions::complete wants: looks for images in `folder`, under the name as it is stated or, for
// one with folders that are not there, under its end; one that is named by an address also beside `folder`, in the
// folder of the address. A size that is not stated is that of the file's header. Throws Error(Fault::data) where there
// is no such file, where another name has led to the same one, and where the header cannot be read.
std::function<void(coco::Image&, const std::string&)> complete_from(const std::string& folder);

}  // namespace dtrain::data
