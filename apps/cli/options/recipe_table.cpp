// Conventions at their default value are listed too, so that they are printed.
#include "apps/cli/options/recipe_table.h"

namespace dtrain::cli {
namespace {

const Part kBackground{"labels", {{"num_classes", "1001"}, {"label_offset", "0"}}};
const Part kNoBackground{"labels", {{"num_classes", "1000"}, {"label_offset", "-1"}}};

// tf_cnn_benchmarks, with its README's flags for ResNet-50 and the model's default learning rate.
const Recipe kTfCnn{"tf_cnn",
                    "each rank samples all files with its own seed",
                    {kBackground,
                     {"images", {{"preprocessing", "tf_cnn"}, {"resize_method", "bilinear"}, {"distortions", "false"}}},
                     {"network",
                      {{"model", "resnet50"},
                       {"resnet_padding", "same_pool"},
                       {"batch_norm_epsilon", "1e-5"},
                       {"batch_norm_decay", "0.9"},
                       {"zero_gamma", "false"},
                       {"conv_initializer", "variance_scaling"},
                       {"classifier_initializer", "truncated_normal"}}},
                     {"update",
                      {{"optimizer", "momentum"},
                       {"momentum", "0.9"},
                       {"weight_decay", "1e-4"},
                       {"weight_decay_on", "weights"},
                       {"label_smoothing", "0"},
                       {"fp16_loss_scale", "128"}}}}};

const Part kAwsNetwork{"network",
                       {{"model", "resnet50"},
                        {"bottleneck_stride", "3x3"},
                        {"resnet_padding", "same"},
                        {"batch_norm_epsilon", "1e-4"},
                        {"batch_norm_decay", "0.9"},
                        {"zero_gamma", "true"},
                        {"conv_initializer", "variance_scaling"},
                        {"classifier_initializer", "normal"}}};

// train_imagenet_resnet_hvd.py with the arguments of train.sh.
const Recipe kAws{"aws",
                  "files are split over the ranks",
                  {kNoBackground,
                   {"images", {{"preprocessing", "aws"}, {"distortions", "false"}}},
                   kAwsNetwork,
                   {"update",
                    {{"optimizer", "momentum"},
                     {"momentum", "0.9"},
                     {"weight_decay", "1e-4"},
                     {"weight_decay_on", "weights"},
                     {"label_smoothing", "0"},
                     {"fp16_loss_scale", "1024"}}},
                   {"rate",
                    {{"init_learning_rate", "0.1"},
                     {"lr_reference_batch", "256"},
                     {"lr_schedule", "polynomial"},
                     {"lr_power", "2"},
                     {"end_learning_rate", "1e-5"},
                     {"num_learning_rate_warmup_epochs", "10"},
                     {"warmup_learning_rate", "0.001"}}}}};

// train_imagenet_resnet_hvd.py with the arguments of train_more_aug.sh, for 128 and more GPUs. With LARC, its learning
// rate is not scaled with the batch.
const Recipe kAwsLarge{"aws-large",
                       "files are split over the ranks",
                       {kNoBackground,
                        {"images", {{"preprocessing", "aws"}, {"distortions", "true"}}},
                        kAwsNetwork,
                        {"update",
                         {{"optimizer", "momentum"},
                          {"momentum", "0.977"},
                          {"larc", "clip"},
                          {"larc_trust", "0.013"},
                          {"larc_joint_norm", "true"},
                          {"weight_decay", "5e-4"},
                          {"weight_decay_on", "weights"},
                          {"label_smoothing", "0"},
                          {"fp16_loss_scale", "256"}}},
                        {"rate",
                         {{"init_learning_rate", "3.7"},
                          {"lr_schedule", "linear_cosine"},
                          {"lr_periods", "0.47"},
                          {"lr_alpha", "0"},
                          {"lr_beta", "1e-5"},
                          {"num_learning_rate_warmup_epochs", "5"},
                          {"warmup_learning_rate", "0.001"}}}}};

const Part kMlPerfNetwork{"network",
                          {{"model", "resnet50"},
                           {"bottleneck_stride", "3x3"},
                           {"resnet_padding", "same_pool"},
                           {"batch_norm_epsilon", "1e-5"},
                           {"batch_norm_decay", "0.9"},
                           {"zero_gamma", "false"},
                           {"conv_initializer", "variance_scaling"},
                           {"classifier_initializer", "normal"}}};
const Part kMlPerfImages{"images", {{"preprocessing", "mlperf"}}};

// MLPerf's reference in Intel's version, with the model's default learning rate.
const Recipe kIntel{"intel",
                    "records are split over the ranks",
                    {kBackground,
                     kMlPerfImages,
                     kMlPerfNetwork,
                     {"update",
                      {{"optimizer", "heavy_ball"},
                       {"momentum", "0.9"},
                       {"weight_decay", "1e-4"},
                       {"weight_decay_on", "weights"},
                       {"label_smoothing", "0"},
                       {"fp16_loss_scale", "128"}}}}};

// The same with --enable_lars.
const Recipe kMlPerf{"mlperf",
                     "records are split over the ranks",
                     {kBackground,
                      kMlPerfImages,
                      kMlPerfNetwork,
                      {"update",
                       {{"optimizer", "lars"},
                        {"momentum", "0.9"},
                        {"lars_trust", "0.001"},
                        {"weight_decay", "1e-4"},
                        {"weight_decay_on", "weights"},
                        {"label_smoothing", "0"},
                        {"fp16_loss_scale", "128"}}},
                      {"rate", {{"lr_schedule", "mlperf_lars"}, {"lr_power", "2"}, {"end_learning_rate", "1e-4"}}}}};

// torchvision's references/classification with its defaults.
const Recipe kTorchvision{
    "torchvision",
    "samples are split over the ranks",
    {kNoBackground,
     {"images", {{"preprocessing", "torchvision"}}},
     {"network",
      {{"model", "resnet50"},
       {"bottleneck_stride", "3x3"},
       {"resnet_padding", "symmetric"},
       {"batch_norm_epsilon", "1e-5"},
       {"batch_norm_decay", "0.9"},
       {"zero_gamma", "false"},
       {"conv_initializer", "he_fan_out"},
       {"classifier_initializer", "uniform"}}},
     {"update",
      {{"optimizer", "heavy_ball"},
       {"momentum", "0.9"},
       {"weight_decay", "1e-4"},
       {"weight_decay_on", "all"},
       {"label_smoothing", "0"}}},
     {"rate", {{"piecewise_learning_rate_schedule", "0.1;30;0.01;60;0.001"}, {"lr_reference_batch", "256"}}}}};

}  // namespace

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> all = {kTfCnn, kAws, kAwsLarge, kIntel, kMlPerf, kTorchvision};
  return all;
}

}  // namespace dtrain::cli
