// SSD300 as tf_cnn_benchmarks trains it: what is known of it before it is built, and the model on its device.
#pragma once

#include <string>

#include "apps/detection/detection_task.h"
#include "libdtrain/ops/pointwise.h"
#include "models/classifier.h"
#include "models/ssd300.h"

namespace dtrain::ssd {

inline constexpr char kName[] = "ssd300", kDataset[] = "coco";

// Sizes, classes and batch, as of a classifier; the learning rates are those of schedule().
models::ClassifierInfo info();

// A rate of 0.001 for each 32 images, which falls to its tenth and hundredth after as many images as 160,000 and
// 200,000 batches of 32 have, and grows from 0 in the time of five passes over COCO. `batch`: of all ranks.
Schedule schedule(int64_t batch);

class Model final : public detection::Model {
 public:
  // Registers the parameters; allocate the store next. `statistics` synchronises batch norms; null: each rank has its
  // own. The store outlives the model.
  Model(ParameterStore& store, Communicator* statistics);

  // How pixels become what the network reads; u8 pixels of the data set, unless they are synthetic.
  void normalize_by(const PixelNormalization& pixels) { pixels_ = pixels; }
  // The weights of a ResNet-34 into the backbone, as models::load_ssd_backbone() does; returns their file.
  std::string load_backbone(const std::string& path);

  // Of one forward pass of one image, in convolutions.
  int64_t multiply_adds() const;

  Context& device() override { return store_.context(); }
  Loss loss(Tape& tape, const detection::DeviceBatch& batch) override;
  models::Detections detect(Tape& tape, const detection::DeviceBatch& batch) override;

  // Images of noise with objects of random classes at random places: a batch of `rows`, which fits the model.
  detection::DeviceBatch synthetic_batch(int64_t rows, uint64_t seed);

 private:
  Var network_input(Tape& tape, const detection::DeviceBatch& batch) const;

  ParameterStore& store_;
  models::Ssd300 ssd_;
  PixelNormalization pixels_;
};

}  // namespace dtrain::ssd
