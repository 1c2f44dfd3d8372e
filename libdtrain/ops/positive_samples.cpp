#include "libdtrain/ops/positive_samples.h"

#include <algorithm>
#include <vector>

#include "dtrain/core/dispatch.h"

namespace dtrain {
namespace {

void check_samples(const RoiSamples& samples, int64_t images, const char* what) {
  const int64_t r = samples.classes.count();
  DT_CHECK(images > 0 && r % images == 0, what, ": ", r, " regions of ", images, " images");
  DT_CHECK(samples.rois.shape() == (Shape{r, 4}) && samples.images.count() == r && samples.truth.count() == r, what,
           ": regions ", samples.rois.shape(), ", images ", samples.images.shape(), " and truth ",
           samples.truth.shape(), " for classes ", samples.classes.shape());
}

}  // namespace

void region_weights(Context& context, const RoiSamples& samples, int64_t images, MeanOver mean, const Tensor& weights) {
  check_samples(samples, images, "region_weights");
  DT_CHECK(weights.shape() == samples.classes.shape() && weights.dtype() == DType::f32, "region_weights: weights ",
           weights.shape(), " of ", weights.dtype(), " for regions ", samples.classes.shape());
  DT_DISPATCH(context, region_weights)(samples, images, mean, weights);
}

void gather_positives(Context& context, const RoiSamples& samples, int64_t images, MeanOver mean,
                      const PositiveSamples& positives) {
  check_samples(samples, images, "gather_positives");
  const int64_t m = positives.weights.count();
  DT_CHECK(positives.rois.shape() == (Shape{m, 4}) && positives.images.count() == m && positives.classes.count() == m &&
               positives.truth.count() == m,
           "gather_positives: outputs for ", positives.rois.shape(), " regions, ", positives.images.count(),
           " images, ", positives.classes.count(), " classes, ", positives.truth.count(), " truths and ", m,
           " weights; expected equally many");
  DT_DISPATCH(context, gather_positives)(samples, images, mean, positives);
}

void images_of_places(Context& context, const Tensor& counts, const Tensor& images) {
  DT_CHECK(counts.count() > 0 && images.count() % counts.count() == 0 && counts.dtype() == DType::i32 &&
               images.dtype() == DType::i32,
           "images_of_places: counts ", counts.shape(), " of ", counts.dtype(), " and images ", images.shape(), " of ",
           images.dtype(), "; expected [n] and [n * p] of i32");
  DT_DISPATCH(context, images_of_places)(counts, images);
}

namespace cpu {
namespace {

// Weight of a region of each image in a mean over the regions counted by `counts`.
template <class Counts>
std::vector<float> weights_of_images(const RoiSamples& samples, int64_t images, MeanOver mean, const Counts& counts) {
  const int64_t s = samples.classes.count() / images;
  const int32_t* const classes = samples.classes.data<int32_t>();
  std::vector<int64_t> regions(static_cast<size_t>(images));
  for (int64_t image = 0; image < images; ++image)
    regions[image] = std::count_if(classes + image * s, classes + (image + 1) * s, counts);
  int64_t all = 0;
  for (const int64_t count : regions) all += count;
  std::vector<float> weights;
  for (const int64_t count : regions)
    weights.push_back(1.0f / static_cast<float>(std::max<int64_t>(mean == MeanOver::batch ? all : images * count, 1)));
  return weights;
}

}  // namespace

void region_weights(Context&, const RoiSamples& samples, int64_t images, MeanOver mean, const Tensor& weights) {
  const std::vector<float> of = weights_of_images(samples, images, mean, [](int32_t k) { return k >= 0; });
  const int64_t s = samples.classes.count() / images;
  const int32_t* const classes = samples.classes.data<int32_t>();
  float* const weight = weights.data<float>();
  for (int64_t i = 0; i < weights.count(); ++i) weight[i] = classes[i] > 0 ? of[i / s] : 0;
}

void gather_positives(Context&, const RoiSamples& samples, int64_t images, MeanOver mean,
                      const PositiveSamples& positives) {
  const std::vector<float> of = weights_of_images(samples, images, mean, [](int32_t k) { return k > 0; });
  const int64_t s = samples.classes.count() / images, m = positives.weights.count();
  const auto classes = samples.classes.span<int32_t>();
  int64_t row = 0;
  for (int64_t i = 0; i < samples.classes.count() && row < m; ++i) {
    if (classes[i] <= 0) continue;
    std::copy_n(samples.rois.data<float>() + 4 * i, 4, positives.rois.data<float>() + 4 * row);
    positives.images.data<int32_t>()[row] = samples.images.data<int32_t>()[i];
    positives.classes.data<int32_t>()[row] = classes[i];
    positives.truth.data<int32_t>()[row] = samples.truth.data<int32_t>()[i];
    positives.weights.data<float>()[row++] = of[i / s];
  }
  std::fill(positives.rois.data<float>() + 4 * row, positives.rois.data<float>() + 4 * m, 0.0f);
  std::fill(positives.weights.data<float>() + row, positives.weights.data<float>() + m, 0.0f);
  for (const Tensor* numbers : {&positives.images, &positives.classes, &positives.truth})
    std::fill(numbers->data<int32_t>() + row, numbers->data<int32_t>() + m, -1);
}

void images_of_places(Context&, const Tensor& counts, const Tensor& images) {
  const int64_t places = images.count() / counts.count();
  int32_t* const image = images.data<int32_t>();
  for (int64_t i = 0; i < images.count(); ++i)
    image[i] = i % places < counts.data<int32_t>()[i / places] ? static_cast<int32_t>(i / places) : -1;
}

}  // namespace cpu
}  // namespace dtrain
