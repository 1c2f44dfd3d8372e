// Mixup (Zhang et al., 2017) and CutMix (Yun et al., 2019): how the images and labels of a batch are mixed.
#pragma once

#include <cstdint>
#include <memory>

#include "data/batch.h"
#include "data/image.h"

namespace dtrain::data {

// A batch is mixed with `probability`, in one of the two ways, by torchvision's rules: one draw holds for the whole
// batch, and each row is mixed with the one before it.
struct MixingOptions {
  double mixup_alpha = 0, cutmix_alpha = 0;  // shares are drawn from Beta(alpha, alpha); 0: not in this way
  double probability = 1;
  double cutmix_share = 0.5;  // the probability of CutMix, where both ways are open

  bool any() const { return (mixup_alpha > 0 || cutmix_alpha > 0) && probability > 0; }
};

// Within the box pixels are weight * own + (1 - weight) * the partner's; the label keeps `share`.
struct Mixture {
  float share = 1, weight = 1;
  Window box{};  // empty: nothing is mixed
};

// That of the batch after which `cursor` samples are consumed, over all ranks: the same on all of them. Throws Error
// where an option is out of range.
Mixture draw_mixture(const MixingOptions& options, int width, int height, uint64_t seed, uint64_t cursor);

// Adds to batches what mixes them: the fields "partners" (i32 []), "weights" and "shares" (f32 []) and "boxes" (i32
// [4]), as PixelMixing and SoftmaxCrossEntropyOptions take them.
class BatchMixer {
 public:
  // `distance`: a row is mixed with the one that stands so many before it, of the same rank's batch, or with the first
  // ones from its end; where a sample comes several times in a row that should be as many. `allocator` null: plain
  // pages.
  BatchMixer(const MixingOptions& options, uint64_t seed, int distance, std::shared_ptr<Allocator> allocator = nullptr);
  // The tensors are written anew by each call, and made once for all batches of one size.
  void add_to(Batch& batch);

 private:
  MixingOptions options_;
  uint64_t seed_;
  int64_t distance_;
  std::shared_ptr<Allocator> allocator_;
  Batch added_;
};

}  // namespace dtrain::data
