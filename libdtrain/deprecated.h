// Deprecated names, removed with the next minor version: docs/migration.md lists their replacements.
#pragma once

#include <string>
#include <vector>

#include "libdtrain/autograd/op_watch.h"
#include "libdtrain/autograd/quantized_layer.h"
#include "libdtrain/core/moment.h"
#include "libdtrain/distributed/communicator.h"
#include "libdtrain/ops/crop_runs.h"
#include "libdtrain/run/elastic.h"

namespace dtrain {

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

}  // namespace dtrain
