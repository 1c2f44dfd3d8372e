// What a run keeps of the older version that began it or named its metrics.
#pragma once

#include <string>
#include <vector>

#include "apps/mask_rcnn/training_job.h"

namespace dtrain::mask_rcnn {

// KEY=VALUE lines that preserve the conventions of a resumed checkpoint of an older version, see
// unrecorded_conventions(), with a notice. Empty for other runs. Collective.
std::vector<std::string> continued_conventions(const cli::TrainingFlags& flags, Group& group,
                                               std::vector<std::string>& notices);

// Version 0.2 named metrics after splits without TensorPack's prefix. A run that follows such a name (--keep_best,
// --early_stop_metric) keeps them all, with a notice.
void keep_former_names(TrainingSettings& settings, std::vector<std::string>& notices);

}  // namespace dtrain::mask_rcnn
