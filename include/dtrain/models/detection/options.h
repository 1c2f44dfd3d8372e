// Options of a two-stage detector, and conventions in which implementations differ.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "dtrain/models/resnet.h"
#include "dtrain/ops/anchors.h"
#include "dtrain/ops/boxes.h"
#include "dtrain/ops/match_boxes.h"

namespace dtrain::models {

// Selection of proposals by score, for training and for evaluation.
struct ProposalOptions {
  int per_level = 2000;  // top-k per level before non-maximum suppression
  int total = 2000;      // top-k per image after it
};

struct RpnOptions {
  AnchorOptions anchors{.ratios = {0.5f, 1, 2}};       // sizes and strides come from the levels
  std::vector<float> sizes = {32, 64, 128, 256, 512};  // one per level
  bool single_map = false;                             // a single map whose cells have anchors of all sizes
  int64_t channels = 0;                                // of the RPN's convolution; 0: channels of the maps
  // Anchor stride is floor(image size / map size), as in torchvision; it is less than the level's stride where the
  // stride does not divide the image.
  bool strides_of_maps = false;
  BoxCoder coder{};
  MatchOptions match{.positive = 0.7f, .negative = 0.3f, .keep_best = true};
  int batch = 256, positives = 128;  // anchors sampled per image
  // Losses are divided by `batch` per image (TensorPack), else by the number of sampled anchors.
  bool fixed_divisor = false;
  float beta = 1.0f / 9;  // smooth L1 threshold of the box loss
  ProposalOptions training{}, evaluation{1000, 1000};
  float min_side = 1e-3f;  // smaller proposals are dropped, in pixels
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
  int batch = 512, positives = 128;  // regions sampled per image
  float beta = 1.0f / 9;
};

struct MaskHeadOptions {
  int resolution = 14;
  int convolutions = 4;
  int64_t channels = 256;
  bool group_norm = false;
  bool norm_after_relu = false;  // ConvTower's
  bool soft_targets = false;     // targets are one bilinear sample per cell (TensorPack), else averages (torchvision)
};

struct DetectionOptions {
  float score_threshold = 0.05f, nms_threshold = 0.5f;
  float min_side = 1e-2f;
  int per_image = 100;
};

// C4: a detector without a pyramid (Ren et al. 2015 with He et al. 2015). Proposals and regions use the map of the
// backbone's third stage. The fourth stage is applied to each region; the box head reads its mean, the mask head all of
// it.
struct C4Options {
  int64_t rpn_channels = 1024;
  ProposalOptions training{12000, 2000}, evaluation{6000, 1000};
  int resolution = 14;  // of regions; the fourth stage halves it
};

// Box head of a cascade (Cai and Vasconcelos 2018), which refines the boxes of the head before.
struct CascadeStage {
  float iou = 0.5f;                               // IoU threshold of positive regions
  std::array<float, 4> weights = {10, 10, 5, 5};  // wx, wy, ww and wh of BoxCoder
};

struct DetectorOptions {
  int64_t classes = 91;  // including background, class 0
  bool masks = true;
  bool pyramid = true;  // false: C4Options override the options of RPN and heads
  bool cascade = false;
  ResNetOptions backbone{.blocks = {3, 4, 6, 3}, .bottleneck = true, .batch_norm = {.frozen = true}};
  // Frozen parts of the backbone: 0 none, 1 the stem, 2 also the first stage, and so on.
  int freeze_at = 2;
  bool freeze_norms = true;   // freezes gammas and betas of the backbone's batch norms
  int64_t channels = 256;     // of the pyramid
  bool pyramid_norm = false;  // group norm after each convolution of the pyramid
  bool aligned_rois = false;  // RoiAlignOptions::aligned
  // Losses of regions are averaged per image and then over images (AWS Mask R-CNN), so that they do not depend on the
  // assignment of images to ranks; else averaged over all regions of the batch.
  bool per_image_means = false;
  RpnOptions rpn{};
  BoxHeadOptions box{};
  MaskHeadOptions mask{};
  C4Options c4{};
  // Regions of the first head are sampled by BoxHeadOptions::match.
  std::vector<CascadeStage> stages = {{0.5f, {10, 10, 5, 5}}, {0.6f, {20, 20, 10, 10}}, {0.7f, {30, 30, 15, 15}}};
  DetectionOptions detection{};
};

}  // namespace dtrain::models
