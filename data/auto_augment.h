// Policies of augmentation: which changes of ImageOp are made to a sample, and how strong they are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/image_ops.h"
#include "libdtrain/core/rng.h"

namespace dtrain::data {

// With the ops, magnitudes and policies of torchvision.
enum class AugmentPolicy : uint8_t {
  none,
  rand_augment,     // Cubuk et al., 2019: `ops` of 14 changes, of one magnitude
  trivial_augment,  // Müller and Hutter, 2021, the wide space: one of 14 changes, of a magnitude that is drawn
  // AutoAugment (Cubuk et al., 2018): one of 25 pairs of changes that were found for the data set, each with a
  // probability and a magnitude of its own.
  imagenet,
  cifar10,
  svhn,
};

struct PolicyOptions {
  AugmentPolicy policy = AugmentPolicy::none;
  // rand_augment only: changes per image, and their magnitude, one of 31 from 0 to 30.
  int ops = 2, magnitude = 9;
};
inline constexpr int kMagnitudeBins = 31, kPolicyBins = 10;

struct Change {
  ImageOp op = ImageOp::identity;
  double magnitude = 0;
  bool operator==(const Change&) const = default;
};

// The changes that one sample of width x height pixels undergoes, one after the other.
std::vector<Change> draw_changes(const PolicyOptions& options, int width, int height, RandomStream& random);

// The ops that rand_augment and trivial_augment draw from.
std::span<const ImageOp> drawn_ops();
// The magnitude of level `bin` of `bins`, as ImageOp takes it and without a sign; 0 for an op that has none. `wide`:
// those of trivial_augment.
double magnitude_of(ImageOp op, int bin, int bins, bool wide, int width, int height);
// Whether it is negated half of the time.
bool is_signed(ImageOp op);

// A change of AutoAugment; `bin` is one of kPolicyBins, -1 where the op has no magnitude.
struct PolicyChange {
  ImageOp op;
  float probability;
  int bin;
};
inline constexpr size_t kPolicyPairs = 25;
// The pairs of imagenet, cifar10 or svhn: kPolicyPairs times two changes.
std::span<const PolicyChange> policy_changes(AugmentPolicy policy);

}  // namespace dtrain::data
