// Augmentation policies: selection and magnitude of ImageOps per sample.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dtrain/core/rng.h"
#include "dtrain/data/image_ops.h"

namespace dtrain::data {

// Ops, magnitudes and policies of torchvision.
enum class AugmentPolicy : uint8_t {
  none,
  rand_augment,     // RandAugment (Cubuk et al. 2019): `ops` of 14 ops, of equal magnitude
  trivial_augment,  // TrivialAugment Wide (Müller and Hutter 2021): one of 14 ops, of random magnitude
  // AutoAugment (Cubuk et al. 2018): one of 25 learned pairs of ops, each with a probability and a magnitude.
  imagenet,
  cifar10,
  svhn,
};

struct PolicyOptions {
  AugmentPolicy policy = AugmentPolicy::none;
  // rand_augment only: ops per image, and their magnitude on a scale of 0 to 30.
  int ops = 2, magnitude = 9;
};
inline constexpr int kMagnitudeBins = 31, kPolicyBins = 10;

struct Change {
  ImageOp op = ImageOp::identity;
  double magnitude = 0;
  bool operator==(const Change&) const = default;
};

// Draws the ops for a sample of width x height pixels, in order of application.
std::vector<Change> draw_changes(const PolicyOptions& options, int width, int height, RandomStream& random);

// Candidate ops of rand_augment and trivial_augment.
std::span<const ImageOp> drawn_ops();
// Unsigned magnitude of level `bin` of `bins`, as ImageOp expects it; 0 for an op without magnitude. `wide`: the ranges
// of trivial_augment.
double magnitude_of(ImageOp op, int bin, int bins, bool wide, int width, int height);
// Whether the magnitude is negated with probability 1/2.
bool is_signed(ImageOp op);

// Op of AutoAugment; `bin` is one of kPolicyBins, or -1 for an op without magnitude.
struct PolicyChange {
  ImageOp op;
  float probability;
  int bin;
};
inline constexpr size_t kPolicyPairs = 25;
// Sub-policies of imagenet, cifar10 or svhn: kPolicyPairs times two ops.
std::span<const PolicyChange> policy_changes(AugmentPolicy policy);

}  // namespace dtrain::data
