#include "libdtrain/cuda/cudnn_version.h"

#include <cudnn_graph.h>

namespace dtrain::cuda {

int cudnn_version_built() { return CUDNN_VERSION; }
int cudnn_version_loaded() { return static_cast<int>(cudnnGetVersion()); }

}  // namespace dtrain::cuda
