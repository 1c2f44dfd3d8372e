// A detector on its device, with cached per-size data.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "apps/cli/machine.h"
#include "apps/detection/detection_task.h"
#include "apps/mask_rcnn/settings.h"
#include "dtrain/distributed/communicator.h"
#include "dtrain/models/detection/detector.h"
#include "dtrain/ops/pointwise.h"
#include "dtrain/train/weights.h"

namespace dtrain::mask_rcnn {

class Model final : public detection::Model {
 public:
  // Initialises the parameters; freezes them as configured. `gradients` false: inference only. `ranks`: for
  // synchronised batch norm, if configured; then construction is collective.
  Model(const Settings& settings, const cli::Machine& machine, uint64_t seed, bool gradients, Group* ranks = nullptr);
  Model(const Model&) = delete;

  Context& device() override { return *context; }
  Loss loss(Tape& tape, const detection::DeviceBatch& batch) override;
  models::Detections detect(Tape& tape, const detection::DeviceBatch& batch) override;

  // Loads parameters by name. Throws Error(Fault::checkpoint) if no tensor fits, or, with `complete`, if any
  // does not.
  WeightReport load(const std::string& path, bool complete);

  // Network input from images [n, h, w, 3] u8; pixels beyond sizes [n, 2] are padding.
  Var pixels(Tape& tape, const Tensor& images, const Tensor& sizes) const;
  // Created at first use.
  const models::Canvas& canvas(int64_t height, int64_t width);

  std::unique_ptr<Context> context;
  std::unique_ptr<Communicator> statistics;  // of synchronised batch norms
  ParameterStore store;
  models::Detector detector;

 private:
  PixelNormalization normalization_;
  std::map<std::pair<int64_t, int64_t>, models::Canvas> canvases_;
};

}  // namespace dtrain::mask_rcnn
