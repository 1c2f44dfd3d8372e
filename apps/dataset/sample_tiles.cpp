#include "apps/dataset/sample_tiles.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/cli/messages.h"
#include "apps/cli/options/cache.h"
#include "apps/cli/vision.h"
#include "data/image_list.h"
#include "data/labelled_source.h"
#include "dtrain/core/context.h"
#include "dtrain/core/error.h"
#include "dtrain/data/catalog.h"
#include "dtrain/data/loader.h"
#include "dtrain/data/mixing.h"

namespace dtrain::dataset {
namespace {

bool is_training(const std::string& data, const std::string& split) {
  DT_CHECK(split.empty() || split == "train" || split == "validation" || split == "val", "--split=", split,
           ": expected train or validation for labelled images");
  const bool training = split.empty() ? data::has_labelled_images(data, true) : split == "train";
  if (!data::has_labelled_images(data, training))
    throw Error(Fault::data, concat(data, ": no split ", training ? "train" : "validation", " in it"));
  return training;
}

std::string dataset_name(const std::string& data, const SampleFlags& flags) {
  std::vector<std::string> notices;
  return flags.data_name.empty() ? data::dataset_at(data, notices).name : data::dataset_info(flags.data_name).name;
}

// A row of the network's input as levels, each pixel `factor` x `factor` pixels large.
data::Image levels_of(const Tensor& input, int64_t row, const PixelNormalization& scale, int factor) {
  const auto height = static_cast<int>(input.dim(1)), width = static_cast<int>(input.dim(2));
  const float* const values = input.data<float>() + row * input.dim(1) * input.dim(2) * 3;
  data::Image image(width * factor, height * factor);
  for (int y = 0; y < height * factor; ++y)
    for (int x = 0; x < width * factor; ++x)
      for (int c = 0; c < 3; ++c) {
        const float value = values[(int64_t{y / factor} * width + x / factor) * 3 + c];
        const float level = std::round(value / scale.scale[c] + scale.mean[c]);
        image.pixels[static_cast<size_t>((int64_t{y} * image.width + x) * 3 + c)] =
            static_cast<uint8_t>(std::clamp(level, 0.0f, 255.0f));
      }
  return image;
}

std::string name_of_label(const data::ClassNames& names, int32_t label) {
  const auto found = names.find(label);
  return found == names.end() ? fmt::format("class {}", label) : found->second;
}

// "dog, grass" of an image with several labels.
std::string title_of_targets(const Tensor& targets, int64_t row, const data::ClassNames& names) {
  std::vector<std::string> labels;
  for (int64_t label = 0; label < targets.dim(1); ++label)
    if (targets.data<float>()[row * targets.dim(1) + label] > 0)
      labels.push_back(name_of_label(names, static_cast<int32_t>(label)));
  return labels.empty() ? "no label" : fmt::format("{}", fmt::join(labels, ", "));
}

// "dog", or "dog 70 %, cat" of a mixed sample.
std::string title_of(const data::Batch& batch, int64_t row, const data::ClassNames& names) {
  if (const Tensor targets = batch.find("targets"); targets.defined()) return title_of_targets(targets, row, names);
  const auto* const labels = batch["labels"].data<int32_t>();
  const std::string own = name_of_label(names, labels[row]);
  const Tensor partners = batch.find("partners");
  if (!partners.defined()) return own;
  const float share = batch["shares"].data<float>()[row];
  const int32_t partner = partners.data<int32_t>()[row];
  if (share == 1 || partner < 0) return own;
  return fmt::format("{} {:.0f} %, {}", own, 100 * share, name_of_label(names, labels[partner]));
}

std::shared_ptr<data::Dataset> opened(const std::string& data, const data::Pixels& pixels, bool training,
                                      const SampleFlags& flags) {
  const bool is_list = data::labelled_format(data) == data::LabelledFormat::lists;
  return data::open_split(pixels, {.directory = data,
                                   .training = training,
                                   .augments = training,
                                   .classes = is_list ? 0 : INT32_MAX,
                                   .augmentation = flags.augment.sample(),
                                   .cache = cli::CacheFlags().options(),
                                   .multi_label = is_list && data::labels_of_lists(data).several > 0});
}

}  // namespace

void SampleFlags::declare(cli::FlagSet& flags) {
  flags.group("Labelled images");
  flags.add("data_name", data_name, "imagenet or cifar10; default: by the files and the path");
  flags.add("image_size", image_size, "width and height of a sample; 0: 32 for CIFAR-10, else 224", cli::kImageSize);
  pixels.declare(flags);
  augment.declare(flags);
}

void SampleFlags::check(const cli::FlagSet& flags) const {
  pixels.check(flags);
  augment.check(flags);
  DT_CHECK(augment.stages().empty(), "--progressive_resizing: expected --image_size, of one stage");
}

Tiles sample_tiles(const std::string& data, const SampleFlags& flags, const TileSelection& selection) {
  const bool training = is_training(data, selection.split);
  const std::string name = dataset_name(data, flags);
  const int64_t size = flags.image_size > 0 ? flags.image_size : name == "cifar10" ? 32 : 224;
  const data::Pixels pixels = flags.pixels.pixels(name, size);
  const std::shared_ptr<data::Dataset> dataset = opened(data, pixels, training, flags);
  const auto images = std::min<int64_t>(selection.images, static_cast<int64_t>(dataset->size()));
  data::Loader loader(dataset, {.batch = images,
                                .training = training,
                                .seed = static_cast<uint64_t>(selection.seed),
                                .repeats = training ? static_cast<int>(flags.augment.repeated_augmentation) : 1,
                                .skip_bad_records = true});
  data::Batch batch = *loader.next();
  const data::LoaderStats stats = loader.stats();
  for (const std::string& fault : stats.faults) cli::print_message("error", fault);
  if (const data::MixingOptions mixing = flags.augment.mixing(); training && mixing.any())
    data::BatchMixer(mixing, static_cast<uint64_t>(selection.seed),
                     static_cast<int>(flags.augment.repeated_augmentation))
        .add_to(batch);
  const PixelNormalization normalization = cli::normalization_of(pixels);
  const std::unique_ptr<Context> context = make_cpu_context();
  const Tensor input = cli::network_input(*context, batch, normalization, flags.augment.erased_value());
  const int factor = std::max(1, static_cast<int>(selection.side / std::max(input.dim(1), input.dim(2))));
  const data::ClassNames names = data::stored_class_names(data);
  Tiles result{.images = dataset->size(), .bad_images = stats.bad_records, .split = training ? "train" : "validation"};
  for (int64_t row = 0; row < images; ++row)
    if (batch.row_valid[static_cast<size_t>(row)])
      result.tiles.push_back({levels_of(input, row, normalization, factor), title_of(batch, row, names)});
  if (result.tiles.empty()) throw Error(Fault::data, data + ": no image that can be shown");
  return result;
}

}  // namespace dtrain::dataset
