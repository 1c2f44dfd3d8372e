// The engine's side of augmentation.py.
//   parity_augmentation apply RGB WIDTH HEIGHT RESULTS CHANGE:AMOUNT...   appends the changed bytes of the image RGB
//   parity_augmentation magnitudes BINS usual|wide WIDTH HEIGHT           prints the levels of each op, a line each
//   parity_augmentation policy imagenet|cifar10|svhn                      prints its changes, a line each
//   parity_augmentation mix RESULTS                                       mixes batches into a safetensors file
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>

#include "dtrain/data/auto_augment.h"
#include "dtrain/data/mixing.h"
#include "dtrain/ops/loss.h"
#include "dtrain/ops/mix_pixels.h"
#include "tests/files.h"
#include "tests/parity/tensors.h"

namespace dtrain {
namespace {

using Arguments = std::vector<std::string>;

data::ImageOp op_of(const std::string& name) {
  for (int i = 0; i < data::kImageOps; ++i)
    if (const auto op = static_cast<data::ImageOp>(i); data::name_of(op) == name) return op;
  throw Error(concat("no op ", name));
}

void change(const std::string& name, double amount, data::ImageEditor& editor, data::Image& image) {
  const auto factor = static_cast<float>(amount);
  if (name == "adjust_brightness")
    editor.scale_brightness(image, factor);
  else if (name == "adjust_contrast")
    editor.scale_contrast(image, factor);
  else if (name == "adjust_saturation")
    editor.scale_saturation(image, factor);
  else if (name == "adjust_sharpness")
    editor.scale_sharpness(image, factor);
  else if (name == "adjust_hue")
    editor.move_hue(image, amount);
  else
    editor.apply(op_of(name), amount, image);
}

void apply(const Arguments& arguments) {
  const std::string bytes = read_file(arguments.at(2));
  const int width = std::stoi(arguments.at(3)), height = std::stoi(arguments.at(4));
  std::ofstream out(arguments.at(5), std::ios::binary);
  data::ImageEditor editor;
  for (size_t i = 6; i < arguments.size(); ++i) {
    data::Image image(width, height);
    DT_CHECK(bytes.size() == size_t{3} * static_cast<size_t>(width * height), bytes.size(), " bytes of an image");
    std::copy(bytes.begin(), bytes.end(), image.pixels.begin());
    const size_t colon = arguments[i].find(':');
    change(arguments[i].substr(0, colon), std::stod(arguments[i].substr(colon + 1)), editor, image);
    out.write(reinterpret_cast<const char*>(image.pixels.data()), static_cast<std::streamsize>(bytes.size()));
  }
}

void print_magnitudes(const Arguments& arguments) {
  const int bins = std::stoi(arguments.at(2)), width = std::stoi(arguments.at(4)), height = std::stoi(arguments.at(5));
  for (int i = 0; i < data::kImageOps; ++i) {
    const auto op = static_cast<data::ImageOp>(i);
    std::printf("%s %d", std::string(data::name_of(op)).c_str(), data::is_signed(op));
    for (int bin = 0; bin < bins; ++bin)
      std::printf(" %.9g", data::magnitude_of(op, bin, bins, arguments.at(3) == "wide", width, height));
    std::printf("\n");
  }
}

void print_policy(const Arguments& arguments) {
  const std::map<std::string, data::AugmentPolicy> policies{{"imagenet", data::AugmentPolicy::imagenet},
                                                            {"cifar10", data::AugmentPolicy::cifar10},
                                                            {"svhn", data::AugmentPolicy::svhn}};
  for (const data::PolicyChange& change : data::policy_changes(policies.at(arguments.at(2))))
    std::printf("%s %g %d\n", std::string(data::name_of(change.op)).c_str(), static_cast<double>(change.probability),
                change.bin);
}

// Mixes batches of 4 images of 7 x 5 pixels: inputs, drawn parameters and results.
void mix(const Arguments& arguments) {
  constexpr int64_t kRows = 4, kHeight = 7, kWidth = 5, kClasses = 6;
  const auto context = parity_context("cpu");
  TensorFile results;
  RandomStream random(1, 2);
  for (uint64_t number = 0; number < 24; ++number) {
    data::Batch batch = data::make_batch(
        {.fields = {{.name = "images", .shape = {kHeight, kWidth, 3}}, {.name = "labels", .dtype = DType::i32}}},
        kRows);
    const Tensor logits = context->empty({kRows, kClasses});
    for (float& level : batch["images"].span<float>()) level = random.uniform(0, 255);
    for (float& logit : logits.span<float>()) logit = random.uniform(-3, 3);
    for (int32_t& label : batch["labels"].span<int32_t>()) label = static_cast<int32_t>(random.below(kClasses));
    batch.cursor = number * kRows;
    data::BatchMixer({.mixup_alpha = 0.8, .cutmix_alpha = 1}, 3, 1).add_to(batch);
    const PixelNormalization normalization{{120, 110, 100}, {0.02f, 0.015f, 0.01f}};
    const Tensor mixed =
        mix_pixels(*context, batch["images"], normalization,
                   {.partners = batch["partners"], .weights = batch["weights"], .boxes = batch["boxes"]});
    Tape tape(*context);
    const Classification loss =
        softmax_cross_entropy(tape, tape.constant(logits), batch["labels"],
                              {.label_smoothing = 0.1f, .partners = batch["partners"], .shares = batch["shares"]});
    const std::string key = std::to_string(number) + ".";
    results.add(*context, key + "images", normalize_pixels(*context, batch["images"], normalization));
    results.add(*context, key + "labels", batch["labels"]);
    results.add(*context, key + "logits", logits);
    results.add(*context, key + "shares", batch["shares"]);
    results.add(*context, key + "boxes", batch["boxes"]);
    results.add(*context, key + "weights", batch["weights"]);
    results.add(*context, key + "mixed", mixed);
    results.add(*context, key + "loss", loss.loss.value);
  }
  results.write(arguments.at(2));
}

int run(const Arguments& arguments) {
  const std::map<std::string, std::function<void(const Arguments&)>> commands{
      {"apply", apply}, {"magnitudes", print_magnitudes}, {"policy", print_policy}, {"mix", mix}};
  commands.at(arguments.at(1))(arguments);
  return 0;
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  try {
    return dtrain::run({argv, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "parity_augmentation: %s\n", error.what());
    return 1;
  }
}
