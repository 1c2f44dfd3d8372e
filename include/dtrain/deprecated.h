// Deprecated names, removed with the next minor version: docs/migration.md lists their replacements.
#pragma once

#include <string>
#include <vector>

#include "dtrain/autograd/op_observer.h"
#include "dtrain/autograd/quantized_layer.h"
#include "dtrain/core/event.h"
#include "dtrain/distributed/communicator.h"
#include "dtrain/ops/crop_masks.h"
#include "dtrain/run/elastic.h"

namespace dtrain {

using Moment [[deprecated("renamed: Event")]] = Event;
using Queue [[deprecated("renamed: Stream")]] = Stream;
using OpWatch [[deprecated("renamed: OpObserver")]] = OpObserver;
using RunImages [[deprecated("renamed: RleMasks")]] = RleMasks;
using ByteForm [[deprecated("renamed: QuantParams")]] = QuantParams;
using SumReport [[deprecated("renamed: AllReduceReport")]] = AllReduceReport;
using AskedFor [[deprecated("renamed: ExplicitSettings")]] = ExplicitSettings;

[[deprecated("call Communicator::all_reduce and join")]] inline void sum_over_ranks(Communicator& ranks,
                                                                                    const Tensor& x, const char* what) {
  ranks.all_reduce({&x, 1}, what);
  ranks.join();
}
[[deprecated("renamed: elastic_resume")]] inline std::vector<std::string> continue_as_trained(
    RunShape& shape, const ExplicitSettings& asked, const RunOptions& run, Group& group) {
  return elastic_resume(shape, asked, run, group);
}
[[deprecated("renamed: crop_masks")]] inline void crop_runs(Context& context, const RleMasks& masks, const Tensor& rois,
                                                            const Tensor& images, const Tensor& which,
                                                            const CropOptions& options, const Tensor& y) {
  crop_masks(context, masks, rois, images, which, options, y);
}
[[deprecated("renamed: ignore_unknown_masks")]] inline void mask_out_unknown_runs(
    Context& context, const RleMasks& masks, const Tensor& images, const Tensor& which, const Tensor& weights) {
  ignore_unknown_masks(context, masks, images, which, weights);
}

}  // namespace dtrain
