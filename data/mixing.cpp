#include "dtrain/data/mixing.h"

#include <algorithm>
#include <cmath>

#include "dtrain/core/error.h"
#include "dtrain/core/rng.h"

namespace dtrain::data {
namespace {

// Box-Muller in double precision; the second deviate is discarded.
double normal(RandomStream& random) {
  const auto uniform = [&] { return static_cast<double>(random.next64() >> 11) * 0x1p-53; };
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(6.283185307179586 * uniform());
}

// Logarithm of a Gamma(shape, 1) deviate (Marsaglia and Tsang 2000), since deviates of small shapes underflow.
double log_gamma_deviate(double shape, RandomStream& random) {
  const auto uniform = [&] { return (static_cast<double>(random.next64() >> 11) + 0.5) * 0x1p-53; };
  if (shape < 1) return log_gamma_deviate(shape + 1, random) + std::log(uniform()) / shape;
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(random), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(uniform()) < 0.5 * x * x + d * (1 - v + std::log(v))) return std::log(d * v);
  }
}

double beta_deviate(double alpha, RandomStream& random) {
  const double a = log_gamma_deviate(alpha, random), b = log_gamma_deviate(alpha, random);
  return 1 / (1 + std::exp(b - a));
}

Mixture draw_cutmix(double alpha, int width, int height, RandomStream& random) {
  const double half = 0.5 * std::sqrt(1 - beta_deviate(alpha, random));
  const auto x = static_cast<int>(random.below(static_cast<uint32_t>(width)));
  const auto y = static_cast<int>(random.below(static_cast<uint32_t>(height)));
  const int across = static_cast<int>(half * width), down = static_cast<int>(half * height);
  const int left = std::max(x - across, 0), top = std::max(y - down, 0);
  const Window box{left, top, std::min(x + across, width) - left, std::min(y + down, height) - top};
  const double area = static_cast<double>(box.width) * box.height;
  return {static_cast<float>(1 - area / (static_cast<double>(width) * height)), 0, box};
}

}  // namespace

Mixture draw_mixture(const MixingOptions& options, int width, int height, uint64_t seed, uint64_t cursor) {
  DT_CHECK(options.mixup_alpha >= 0 && options.cutmix_alpha >= 0 && options.probability >= 0 &&
               options.probability <= 1 && options.cutmix_share >= 0 && options.cutmix_share <= 1,
           "mixing by mixup with alpha ", options.mixup_alpha, " or CutMix with alpha ", options.cutmix_alpha,
           ", probability ", options.probability, ", CutMix's ", options.cutmix_share);
  constexpr uint64_t kStream = 0x6d6978;
  const Philox::Block start = Philox::block(seed, kStream, cursor);
  RandomStream random(seed ^ kStream, uint64_t{start[0]} << 32 | start[1]);
  const bool mixes = static_cast<double>(random.uniform()) < options.probability;
  const bool second = static_cast<double>(random.uniform()) < options.cutmix_share;
  if (!mixes || !options.any()) return {};
  if (options.cutmix_alpha > 0 && (options.mixup_alpha == 0 || second))
    return draw_cutmix(options.cutmix_alpha, width, height, random);
  const auto share = static_cast<float>(beta_deviate(options.mixup_alpha, random));
  return {share, share, {0, 0, width, height}};
}

BatchMixer::BatchMixer(const MixingOptions& options, uint64_t seed, int distance, std::shared_ptr<Allocator> allocator)
    : options_(options), seed_(seed), distance_(distance), allocator_(std::move(allocator)) {
  DT_CHECK(distance > 0, "mixing of rows at distance ", distance, ": expected at least 1");
}

void BatchMixer::add_to(Batch& batch) {
  const Tensor& images = batch["images"];
  const int64_t rows = images.dim(0);
  if (added_.rows() != rows)
    added_ = make_batch({.fields = {{.name = "partners", .dtype = DType::i32},
                                    {.name = "weights"},
                                    {.name = "shares"},
                                    {.name = "boxes", .shape = {4}, .dtype = DType::i32}}},
                        rows, allocator_);
  const Mixture mixture =
      draw_mixture(options_, static_cast<int>(images.dim(2)), static_cast<int>(images.dim(1)), seed_, batch.cursor);
  const Window& box = mixture.box;
  for (int64_t row = 0; row < rows; ++row) {
    const Row out(added_, row);
    out.span<int32_t>(0)[0] = static_cast<int32_t>((row + rows - distance_ % rows) % rows);
    out.span<float>(1)[0] = mixture.weight;
    out.span<float>(2)[0] = mixture.share;
    std::ranges::copy(std::array{box.x, box.y, box.x + box.width, box.y + box.height}, out.span<int32_t>(3).begin());
  }
  batch.layout.fields.insert(batch.layout.fields.end(), added_.layout.fields.begin(), added_.layout.fields.end());
  batch.fields.insert(batch.fields.end(), added_.fields.begin(), added_.fields.end());
}

}  // namespace dtrain::data
