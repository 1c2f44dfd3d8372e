#pragma once

#include "apps/dataset/writing.h"
#include "data/shrink.h"

namespace dtrain::dataset {

// Writes the images below common.input, made smaller, to the same names below common.output, all or none: a set that is
// not complete leaves the output as it was. What cannot be decoded is treated as common.on_bad_image says. Returns the
// exit code; throws Error(Fault::data) for bad images that are not to be skipped.
int resize_files(const CommonFlags& common, const data::ShrinkOptions& options);

}  // namespace dtrain::dataset
