// What a two-stage detector is made of, and the conventions of those that came before it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "libdtrain/ops/anchors.h"
#include "libdtrain/ops/boxes.h"
#include "libdtrain/ops/match_boxes.h"
#include "models/resnet.h"

namespace dtrain::models {

// How boxes are chosen by their scores, in training and in evaluation.
struct ProposalOptions {
  int per_level = 2000;  // candidates of each level before suppression
  int total = 2000;      // that are left of an image afterwards
};

struct RpnOptions {
  AnchorOptions anchors{.ratios = {0.5f, 1, 2}};       // sizes and strides follow from the levels
  std::vector<float> sizes = {32, 64, 128, 256, 512};  // one per level
  bool single_map = false;                             // all sizes are those of the anchors of each cell of one map
  int64_t channels = 0;                                // of its convolution; 0: as many as the maps have
  // Cells are as far apart as the image has whole pixels per row and column of a map, as torchvision has it, which is
  // less than the level's stride where that does not divide the image.
  bool strides_of_maps = false;
  BoxCoder coder{};
  MatchOptions match{.positive = 0.7f, .negative = 0.3f, .keep_best = true};
  int batch = 256, positives = 128;  // anchors per image that the losses are made of
  // The losses are divided by `batch` for each image, as TensorPack has it, or by how many anchors were drawn.
  bool fixed_divisor = false;
  float beta = 1.0f / 9;  // of the box loss
  ProposalOptions training{}, evaluation{1000, 1000};
  float min_side = 1e-3f;  // smaller proposals are dropped
  float nms_threshold = 0.7f;
};

struct BoxHeadOptions {
  int resolution = 7;
  int convolutions = 0;  // 3x3, before the linear layers
  int64_t channels = 256, features = 1024;
  int linear_layers = 2;
  bool group_norm = false;
  bool norm_after_relu = false;  // ConvTower's
  bool class_agnostic = false;   // one box for all classes, as in a cascade
  BoxCoder coder{.wx = 10, .wy = 10, .ww = 5, .wh = 5};
  MatchOptions match{.positive = 0.5f, .negative = 0.5f};
  int batch = 512, positives = 128;  // regions per image
  float beta = 1.0f / 9;
};

struct MaskHeadOptions {
  int resolution = 14;
  int convolutions = 4;
  int64_t channels = 256;
  bool group_norm = false;
  bool norm_after_relu = false;  // ConvTower's
  bool soft_targets = false;     // one bilinear sample per cell, as TensorPack's, else averaged as torchvision's
};

struct DetectionOptions {
  float score_threshold = 0.05f, nms_threshold = 0.5f;
  float min_side = 1e-2f;
  int per_image = 100;
};

// A detector without a pyramid: proposals and regions are of the map of the backbone's third stage, the fourth is
// applied to each region, and the heads read what it gives: boxes its mean, masks all of it (Ren et al. 2015 with He et
// al. 2015, known as C4).
struct C4Options {
  int64_t rpn_channels = 1024;
  ProposalOptions training{12000, 2000}, evaluation{6000, 1000};
  int resolution = 14;  // of regions, which the fourth stage halves
};

// One of the box heads of a cascade (Cai and Vasconcelos 2018), each of which refines the boxes of the one before.
struct CascadeStage {
  float iou = 0.5f;                               // a region is matched from here on
  std::array<float, 4> weights = {10, 10, 5, 5};  // BoxCoder's wx, wy, ww and wh
};

struct DetectorOptions {
  int64_t classes = 91;  // background included, which is class 0
  bool masks = true;
  bool pyramid = true;  // else C4: what C4Options states takes the place of what the options of the parts say
  bool cascade = false;
  ResNetOptions backbone{.blocks = {3, 4, 6, 3}, .bottleneck = true, .batch_norm = {.frozen = true}};
  // Parts of the backbone that are not trained: 0 none, 1 the stem, 2 the first stage too, and so on.
  int freeze_at = 2;
  bool freeze_norms = true;   // nor are the scales and shifts of its batch norms
  int64_t channels = 256;     // those of the pyramid
  bool pyramid_norm = false;  // a group norm follows each of its convolutions
  bool aligned_rois = false;  // RoiAlignOptions::aligned
  // Losses of regions are means within each image and then over the images, as AWS Mask R-CNN has them, so that they do
  // not depend on how images are spread over ranks; else means over the regions of the batch.
  bool per_image_means = false;
  RpnOptions rpn{};
  BoxHeadOptions box{};
  MaskHeadOptions mask{};
  C4Options c4{};
  // The regions of the first are drawn by BoxHeadOptions::match.
  std::vector<CascadeStage> stages = {{0.5f, {10, 10, 5, 5}}, {0.6f, {20, 20, 10, 10}}, {0.7f, {30, 30, 15, 15}}};
  DetectionOptions detection{};
};

}  // namespace dtrain::models
