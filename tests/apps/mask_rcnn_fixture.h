// A small detector and generated shapes, for tests of dtrain-mask-rcnn.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tests/apps/program.h"
#include "tests/testing.h"

namespace dtrain {

using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;

inline Words joined_words(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A small backbone and small heads.
inline const Words kSmallDetector = {"BACKBONE.BOTTLENECK=False",    "BACKBONE.RESNET_NUM_BLOCKS=[1,1,1,1]",
                                     "BACKBONE.FREEZE_AT=0",         "BACKBONE.NORM=BN",
                                     "BACKBONE.FREEZE_AFFINE=False", "FPN.NUM_CHANNEL=16",
                                     "FPN.FRCNN_FC_HEAD_DIM=32",     "MRCNN.HEAD_DIM=16",
                                     "FRCNN.BATCH_PER_IM=16",        "RPN.BATCH_PER_IM=32"};

// Data in COCO format: plain rectangles on grey, in two categories with non-consecutive ids.
class MaskRcnn : public testing::Test {
 protected:
  static constexpr int kImages = 6, kSide = 64;

  void SetUp() override;

  std::string path(const std::string& name) const { return (scratch_ / name).string(); }
  Words train_words(const std::string& run, int steps) const {
    return joined_words(
        {"train", "--data_dir=" + path("data"), "--train_dir=" + path(run), "--device=cpu", "--batch_size=2",
         "--display_every=1", "--save_model_steps=2", "--num_batches=" + std::to_string(steps), "--config",
         "PREPROC.TRAIN_SHORT_EDGE_SIZE=64", "PREPROC.TEST_SHORT_EDGE_SIZE=64", "PREPROC.MAX_SIZE=96",
         "TRAIN.BASE_LR=0.02", "TRAIN.WARMUP=2"},
        kSmallDetector);
  }
  std::string weights(const std::string& run, int step) const {
    return path(run) + "/checkpoints/step-" + std::to_string(step) + "/model.safetensors";
  }

  TempDirectory scratch_;
};

}  // namespace dtrain
