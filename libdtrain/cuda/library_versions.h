// Versions of the GPU libraries: of the build and as loaded.
#pragma once

#include <vector>

#include "dtrain/core/gpu_info.h"

namespace dtrain::cuda {

// Loads all of them; an entry that fails to load holds the reason.
std::vector<GpuLibrary> library_versions();

}  // namespace dtrain::cuda
