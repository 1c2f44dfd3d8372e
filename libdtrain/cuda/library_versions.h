// Which libraries for GPUs this was compiled with, and which ones are loaded.
#pragma once

#include <vector>

#include "libdtrain/core/gpu_info.h"

namespace dtrain::cuda {

// Loads them all; one that cannot be says why.
std::vector<GpuLibrary> library_versions();

}  // namespace dtrain::cuda
