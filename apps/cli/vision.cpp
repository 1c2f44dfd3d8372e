#include "apps/cli/vision.h"

#include <algorithm>

#include <fmt/format.h>

#include "libdtrain/core/nearest.h"
#include "libdtrain/io/element_types.h"

namespace dtrain::cli {

const models::ClassifierInfo& find_model(const std::string& name, const std::string& dataset) {
  if (const models::ClassifierInfo* found = models::find_classifier(name, dataset)) return *found;
  if (const char* purpose = models::other_purpose(name))
    throw Error(
        fmt::format("--model={}: not an image classifier: {}; not supported by any program here", name, purpose));
  const std::vector<std::string> names = models::classifier_names();
  const auto meant = nearest(name, names);
  throw Error(fmt::format("--model={}: unknown{}; known are {}", name,
                          meant ? fmt::format(", did you mean {}?", *meant) : "", fmt::join(names, ", ")));
}

PixelNormalization normalization_of(const data::Pixels& pixels) {
  const data::PixelScale scale = pixels.scale();
  PixelNormalization normalization;
  std::ranges::copy(scale.mean, normalization.mean);
  std::ranges::copy(scale.scale, normalization.scale);
  return normalization;
}

Tensor network_input(Context& context, const data::Batch& batch, const PixelNormalization& normalization,
                     Erased value) {
  const PixelMixing mixing{.erased = batch.find(data::kErasedField),
                           .value = value,
                           .partners = batch.find("partners"),
                           .weights = batch.find("weights"),
                           .boxes = batch.find("boxes")};
  const bool plain = !mixing.erased && !mixing.partners;
  return plain ? normalize_pixels(context, batch["images"], normalization)
               : mix_pixels(context, batch["images"], normalization, mixing);
}

std::vector<float> download_f32(Context& context, const Tensor& x, const char* what) {
  std::vector<float> values(static_cast<size_t>(x.count()));
  if (x.dtype() == DType::f32) {
    context.download(x, values.data(), what);
    return values;
  }
  DT_CHECK(x.dtype() == DType::bf16 || x.dtype() == DType::f16, what, ": values of type ", x.dtype());
  std::string narrow(values.size() * size_of(x.dtype()), '\0');
  context.download(x, narrow.data(), what);
  return floats_of(x.dtype() == DType::bf16 ? "BF16" : "F16", narrow);
}

}  // namespace dtrain::cli
