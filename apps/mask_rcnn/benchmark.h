// predict --benchmark: how long a detector takes for an image, and for what.
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
  // Throws Error for flags that do not go together.
  void check(const cli::FlagSet& flags) const;
};

// Detects objects in the images in turn, or in a drawn one where none is named, one at a time, and prints the times.
// The files are read beforehand. Throws Error(Fault::data), which names the image, where one cannot be decoded.
void run_benchmark(Predictor& predictor, const cli::Machine& machine, const BenchmarkFlags& flags,
                   const std::vector<std::string>& images, bool json);

}  // namespace dtrain::mask_rcnn
