#pragma once

#include "apps/dataset/writing.h"
#include "data/shrink.h"

namespace dtrain::dataset {

// Writes the images below common.input, made smaller, to the same names below common.output. All are made, and their
// folders found writable, before the first is moved to its place: what fails until then leaves the output as it was. No
// two processes write to one output at a time. What cannot be decoded is treated as common.on_bad_image says. Returns
// the exit code; throws Error(Fault::data) for bad images that are not to be skipped.
int resize_files(const CommonFlags& common, const data::ShrinkOptions& options);

}  // namespace dtrain::dataset
