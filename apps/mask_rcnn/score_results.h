// Flags of dtrain-mask-rcnn eval, and evaluation of results files without a model.
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
  std::string annotations, results, save_results, iou_type = "bbox", gallery, images;
  bool json = false;
  int64_t batch = 1, gallery_images = 12;

  void declare(cli::FlagSet& flags);
  // Throws Error for conflicting flags.
  void check() const;
};

// Gallery options of `values`, without title, notes and images.
EvaluationGallery gallery_of(const EvalFlags& values, const Settings& settings);

// Prints COCO metrics of `values.results` against `values.annotations`, and writes a gallery if requested. Returns the
// exit code. Throws Error(Fault::data) for invalid files.
int score_results(const EvalFlags& values, const cli::FlagSet& flags);

}  // namespace dtrain::mask_rcnn
