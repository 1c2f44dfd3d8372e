// Lookup of image files for COCO annotations with incomplete names or sizes.
#pragma once

#include <functional>
#include <string>

#include "dtrain/data/coco/annotations.h"

namespace dtrain::data {

// Implementation of coco::AnnotationOptions::complete. Looks for an image in `folder` under its stated name, or under
// the end of the name if its folders do not exist there; an image named by a URL also beside `folder`, in the folder
// named in the URL. Reads a missing size from the file's header. Throws Error(Fault::data) if there is no such file,
// another name has resolved to the same file, or the header is unreadable.
std::function<void(coco::AnnotatedImage&, const std::string&)> complete_from(const std::string& folder);

}  // namespace dtrain::data
