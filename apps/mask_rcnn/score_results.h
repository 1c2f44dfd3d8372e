// What dtrain-mask-rcnn eval is told, and its half that scores a file of results without a model.
#pragma once

#include <cstdint>
#include <string>

#include "apps/cli/options/machine.h"
#include "apps/mask_rcnn/evaluation_gallery.h"
#include "apps/mask_rcnn/flags.h"

namespace dtrain::mask_rcnn {

struct EvalFlags {
  ModelFlags model;
  cli::MachineFlags machine;
  std::string annotations, results, iou_type = "bbox", gallery, images;
  bool json = false;
  int64_t batch = 1, gallery_images = 12;

  void declare(cli::FlagSet& flags);
  // Throws Error for flags that do not go together.
  void check() const;
};

// A gallery of `values.gallery`, without title, notes and images.
EvaluationGallery gallery_of(const EvalFlags& values, const Settings& settings);

// Prints COCO's statistics of `values.results` against `values.annotations`, and writes their gallery where one is
// asked for. Returns the exit code. Throws Error(Fault::data) for files that cannot be scored.
int score_results(const EvalFlags& values, const cli::FlagSet& flags);

}  // namespace dtrain::mask_rcnn
