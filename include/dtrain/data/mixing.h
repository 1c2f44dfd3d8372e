// Mixup (Zhang et al. 2017) and CutMix (Yun et al. 2019) for batches.
#pragma once

#include <cstdint>
#include <memory>

#include "dtrain/data/batch.h"
#include "dtrain/data/image.h"

namespace dtrain::data {

// torchvision's rules: with `probability` a batch is mixed by one of the two methods; one draw holds for the whole
// batch, and each row is mixed with the row before it.
struct MixingOptions {
  double mixup_alpha = 0, cutmix_alpha = 0;  // of Beta(alpha, alpha) for the mixing ratio; 0 disables the method
  double probability = 1;
  double cutmix_share = 0.5;  // probability of CutMix if both methods are enabled

  bool any() const { return (mixup_alpha > 0 || cutmix_alpha > 0) && probability > 0; }
};

// Inside the box, pixels are weight * own + (1 - weight) * partner; the label weight of the own class is `share`.
struct Mixture {
  float share = 1, weight = 1;
  Window box{};  // empty: no mixing
};

// Mixture of the batch that ends at stream position `cursor`, equal on all ranks. Throws Error for an option out of
// range.
Mixture draw_mixture(const MixingOptions& options, int width, int height, uint64_t seed, uint64_t cursor);

// Adds mixing parameters to batches: "partners" (i32 []), "weights" and "shares" (f32 []) and "boxes" (i32 [4]), as
// PixelMixing and SoftmaxCrossEntropyOptions expect them.
class BatchMixer {
 public:
  // `distance`: a row is mixed with the row this far before it in the rank's batch, wrapping around; with repeated
  // augmentation use the number of repeats. Null `allocator`: pageable memory.
  BatchMixer(const MixingOptions& options, uint64_t seed, int distance, std::shared_ptr<Allocator> allocator = nullptr);
  // Overwrites tensors that are allocated once per batch size.
  void add_to(Batch& batch);

 private:
  MixingOptions options_;
  uint64_t seed_;
  int64_t distance_;
  std::shared_ptr<Allocator> allocator_;
  Batch added_;
};

}  // namespace dtrain::data
