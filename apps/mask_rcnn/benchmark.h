// predict --benchmark: latency of a detector at batch 1, by stage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/cli/flags.h"
#include "apps/mask_rcnn/predictor.h"

namespace dtrain::mask_rcnn {

struct BenchmarkFlags {
  bool benchmark = false;
  int64_t num_batches = 20, num_warmup_batches = 3, image_height = 480, image_width = 640;

  void declare(cli::FlagSet& flags);
  // Throws Error for conflicting flags.
  void check(const cli::FlagSet& flags) const;
};

// Runs the detector on the images in turn, or on a synthetic image if none is given, one at a time, and prints
// latencies. Files are read beforehand. Throws Error(Fault::data) with the file name if an image cannot be decoded.
void run_benchmark(Predictor& predictor, const cli::Machine& machine, const BenchmarkFlags& flags,
                   const std::vector<std::string>& images, bool json);

}  // namespace dtrain::mask_rcnn
