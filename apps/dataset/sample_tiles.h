// Pictures of labelled images as a classifier is trained or evaluated on them.
#pragma once

#include <string>

#include "apps/cli/options/augment.h"
#include "apps/cli/options/input.h"
#include "apps/dataset/object_tiles.h"

namespace dtrain::dataset {

// The same flags as in dtrain-cnn-benchmarks.
struct SampleFlags {
  std::string data_name;
  int64_t image_size = 0;  // 0: 32 for CIFAR-10, else 224
  cli::PixelFlags pixels;
  cli::AugmentFlags augment;

  void declare(cli::FlagSet& flags);
  void check(const cli::FlagSet& flags) const;
};

// The first samples of a training with the seed, through the trainer's loader: cropped, resized and augmented, also
// mixed. Samples of validation are preprocessed as for an evaluation, in the order of the data. Small images are
// magnified by a whole factor to at most `selection.side`. Titles are class names. Bad images are left out, and named
// on stderr.
Tiles sample_tiles(const std::string& data, const SampleFlags& flags, const TileSelection& selection);

}  // namespace dtrain::dataset
