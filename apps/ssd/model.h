// SSD300 as in tf_cnn_benchmarks: its static properties, and the model on its device.
#pragma once

#include <string>

#include "apps/detection/detection_task.h"
#include "dtrain/models/classifier.h"
#include "dtrain/models/ssd300.h"
#include "dtrain/ops/pointwise.h"

namespace dtrain::ssd {

inline constexpr char kName[] = "ssd300", kDataset[] = "coco";

// Image size, classes and batch size, in the form of a classifier; schedule() has the learning rates.
models::ClassifierInfo info();

// Learning rate 0.001 per 32 images of the global batch `batch`, divided by 10 and 100 after the images of 160,000 and
// 200,000 batches of 32, with linear warm-up from 0 over five epochs of COCO.
Schedule schedule(int64_t batch);

class Model final : public detection::Model {
 public:
  // Registers the parameters; allocate the store next. `statistics`: communicator of synchronised batch norm; null:
  // per-rank statistics. The store outlives the model.
  Model(ParameterStore& store, Communicator* statistics);

  // Pixel normalisation; u8 pixels, unless synthetic.
  void normalize_by(const PixelNormalization& pixels) { pixels_ = pixels; }
  // Loads ResNet-34 weights into the backbone, see models::load_ssd_backbone(); returns their file.
  std::string load_backbone(const std::string& path);

  // Multiply-adds of the convolutions per image, forward.
  int64_t multiply_adds() const;

  Context& device() override { return store_.context(); }
  Loss loss(Tape& tape, const detection::DeviceBatch& batch) override;
  models::Detections detect(Tape& tape, const detection::DeviceBatch& batch) override;

  // Synthetic batch of `rows` noise images with random objects.
  detection::DeviceBatch synthetic_batch(int64_t rows, uint64_t seed);

 private:
  Var network_input(Tape& tape, const detection::DeviceBatch& batch) const;

  ParameterStore& store_;
  models::Ssd300 ssd_;
  PixelNormalization pixels_;
};

}  // namespace dtrain::ssd
