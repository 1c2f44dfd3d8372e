// The cuDNN that this was compiled with, and the one that is loaded.
#pragma once

namespace dtrain::cuda {

int cudnn_version_built();
int cudnn_version_loaded();

}  // namespace dtrain::cuda
