// Names to models, presets to functions.
#include "apps/cli/vision.h"

#include <fmt/format.h>

#include "data/cifar.h"
#include "libdtrain/core/nearest.h"

namespace dtrain::cli {
namespace {

data::TfResize tf_resize(const std::string& name) {
  if (name == "nearest") return data::TfResize::nearest;
  if (name == "bicubic") return data::TfResize::bicubic;
  if (name == "area") return data::TfResize::area;
  if (name == "crop") return data::TfResize::crop;
  return name == "round_robin" ? data::TfResize::round_robin : data::TfResize::bilinear;
}

data::Preset preset(const std::string& preprocessing) {
  return preprocessing == "torchvision" ? data::Preset::torchvision : data::Preset::tf_cnn;
}

}  // namespace

const models::ClassifierInfo& find_model(const std::string& name, const std::string& dataset) {
  if (const models::ClassifierInfo* found = models::find_classifier(name, dataset)) return *found;
  const std::vector<std::string> names = models::classifier_names();
  const auto meant = nearest(name, names);
  throw Error(fmt::format("--model={}: unknown{}; known are {}", name,
                          meant ? fmt::format(", did you mean {}?", *meant) : "", fmt::join(names, ", ")));
}

bool Pixels::are_cifar() const { return dataset == "cifar10" && preset(preprocessing) == data::Preset::tf_cnn; }

data::PreprocessOptions Pixels::options(bool training) const {
  data::PreprocessOptions options;
  options.preset = preset(preprocessing);
  options.training = training;
  options.height = options.width = size;
  options.resize = tf_resize(resize_method);
  options.distort_color = distortions;
  options.distort_in_yiq = distort_in_yiq;
  options.use_boxes = !ml_perf;
  return options;
}

data::MakePreprocess Pixels::make(bool training) const {
  return are_cifar() ? data::make_cifar_preprocess({training, size, size}) : data::make_preprocess(options(training));
}

data::MakeDefer Pixels::make_defer(bool training) const {
  DT_CHECK(!are_cifar(), "CIFAR-10's images are PNGs and are augmented on the host: --jpeg_decoder=host");
  DT_CHECK(!distortions, "--distortions are made on the host: --jpeg_decoder=host");
  return data::make_defer(options(training));
}

data::DecodeOptions Pixels::decoding(bool training) const { return data::decode_options(options(training)); }

DType Pixels::dtype() const { return data::pixel_type(preset(preprocessing)); }

PixelNormalization Pixels::normalization() const {
  if (preprocessing == "torchvision") {
    const float mean[3] = {0.485f, 0.456f, 0.406f}, deviation[3] = {0.229f, 0.224f, 0.225f};
    PixelNormalization pixels;
    for (int c = 0; c < 3; ++c) {
      pixels.mean[c] = 255 * mean[c];
      pixels.scale[c] = 1 / (255 * deviation[c]);
    }
    return pixels;
  }
  if (ml_perf) return {{123.68f, 116.78f, 103.94f}, {1, 1, 1}};
  return {{127.5f, 127.5f, 127.5f}, {1 / 127.5f, 1 / 127.5f, 1 / 127.5f}};
}

}  // namespace dtrain::cli
