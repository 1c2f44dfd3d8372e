#pragma once

#include "apps/dataset/writing.h"
#include "data/shrink.h"

namespace dtrain::dataset {

// Writes downscaled copies of the images below common.input to the same relative paths below common.output. Writes all
// images to a temporary folder and checks the destinations before moving the first, so that failures leave the output
// unchanged. Locks the output. common.on_bad_image sets the handling of undecodable images. Returns the exit code;
// throws Error(Fault::data) for bad images that are not skipped.
int resize_files(const CommonFlags& common, const data::ShrinkOptions& options);

}  // namespace dtrain::dataset
