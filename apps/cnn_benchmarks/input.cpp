// Opens data sets, configures loaders, and generates the synthetic batch.
#include "apps/cnn_benchmarks/input.h"

#include <utility>

#include "apps/cli/messages.h"
#include "apps/cli/progress.h"
#include "apps/cli/synthetic_batch.h"
#include "apps/ssd/data.h"
#include "data/catalog.h"
#include "data/class_names.h"
#include "data/imagenet.h"

namespace dtrain::cnn_benchmarks {
namespace {

// `cache` reports to a progress bar, shown if opening takes long.
data::CacheOptions cache_options(const Config& config, bool training, std::optional<cli::Progress>& progress) {
  data::CacheOptions cache = config.flags.input.cache_options();
  if (config.ranks.is_chief())
    cache.progress = [&progress, training](uint64_t opened, uint64_t files) {
      if (!progress) progress.emplace(training ? "training files" : "validation files", files);
      progress->update(opened);
    };
  return cache;
}

// With images of `size` pixels a side.
std::shared_ptr<data::Dataset> open_split(const Config& config, bool training, int64_t size) {
  data::Pixels pixels = config.pixels();
  pixels.size = static_cast<int>(size);
  if (config.decodes_on_gpu()) {
    DT_CHECK(pixels.host_only().empty(), pixels.host_only(), ": --jpeg_decoder=host");
    DT_CHECK(!pixels.distortions, "--distortions run on the host and need --jpeg_decoder=host");
  }
  std::optional<cli::Progress> progress;
  return data::open_split(pixels, {.directory = config.flags.input.data_dir,
                                   .training = training,
                                   // Inference preprocesses images as evaluation does.
                                   .augments = training && config.mode != RunMode::forward_only,
                                   .classes = config.options.classes,
                                   .label_offset = config.flags.model.label_offset,
                                   .augmentation = config.flags.augment.sample(),
                                   .cache = cache_options(config, training, progress)});
}

void open_detection_data(const Config& config, Datasets& datasets) {
  const std::string& folder = config.flags.input.data_dir;
  std::optional<cli::Progress> training, validation;
  if (config.mode != RunMode::evaluation)
    datasets.training = datasets.objects =
        ssd::open_training(folder, config.mode != RunMode::forward_only, cache_options(config, true, training));
  if (datasets.objects && config.ranks.is_chief()) cli::print_notes(datasets.objects->notices());
  if (!config.evaluates()) return;
  datasets.scored = ssd::open_validation(folder, cache_options(config, false, validation));
  datasets.validation = datasets.scored.images;
  if (config.ranks.is_chief()) cli::print_notes(datasets.scored.images->notices());
}

data::Batch synthetic_batch(Context& context, const Config& config, const PixelNormalization& format, int64_t rows) {
  const int64_t size = config.options.image_size;
  const auto [images, labels] =
      cli::make_tf_cnn_batch(context, rows, size, config.options.classes, config.flags.run.seed());
  data::Batch batch{.layout = data::labelled_images({size, size, format.channels}, format.dtype), .valid = rows};
  batch.fields = {normalize_pixels(context, images, format), labels};
  batch.row_valid.assign(static_cast<size_t>(rows), 1);
  return batch;
}

}  // namespace

data::LoaderOptions loader_options(Context& context, const Config& config, bool training) {
  const Flags& f = config.flags;
  data::LoaderOptions options;
  if (!context.is_cpu()) options.allocator = context.host_allocator();
  options.training = training;
  options.batch = training ? config.batch : config.eval_batch;
  options.rank = config.ranks.rank;
  options.ranks = config.ranks.size;
  options.seed = f.run.seed();
  if (config.trains()) options.repeats = static_cast<int>(f.augment.repeated_augmentation);
  options.workers = config.input_workers;
  // One batch is in training, one is being filled, the rest are queued.
  options.slots = static_cast<int>(2 + f.input.datasets_prefetch_buffer_size);
  options.defer_decoding = config.decodes_on_gpu();
  options.skip_bad_records = f.input.on_bad_record == "skip";
  options.bad_record_budget = static_cast<uint64_t>(f.input.bad_record_budget);
  return options;
}

Datasets open_datasets(const Config& config) {
  Datasets datasets;
  const data::DatasetInfo& info = data::dataset_info(config.dataset);
  datasets.sizes = {info.training, info.validation};
  if (config.synthetic()) return datasets;
  if (config.detects()) {
    open_detection_data(config, datasets);
  } else {
    datasets.class_names = data::names_by_output(data::read_class_names(config.flags.input.data_dir),
                                                 config.options.classes, config.flags.model.label_offset);
    if (config.mode != RunMode::evaluation) datasets.training = open_split(config, true, config.stages.front().size);
    if (config.evaluates()) datasets.validation = open_split(config, false, config.options.image_size);
  }
  if (datasets.training) datasets.sizes.training = datasets.training->size();
  if (datasets.validation) datasets.sizes.validation = datasets.validation->size();
  return datasets;
}

Input Input::training(Context& context, const Config& config, const Datasets& datasets,
                      const PixelNormalization& pixels, uint64_t cursor) {
  if (config.synthetic()) {
    data::Batch batch = synthetic_batch(context, config, pixels, config.batch);
    batch.cursor = cursor;
    return Input(std::move(batch), config.ranks.size);
  }
  data::LoaderOptions options = loader_options(context, config, true);
  options.cursor = cursor;
  options.report = datasets.report;
  std::vector<double> epochs;
  for (size_t i = 1; i < config.stages.size(); ++i) epochs.push_back(config.stages[i].epoch);
  const auto open = [&config](size_t stage) { return open_split(config, true, config.stages[stage].size); };
  return {context, config, {datasets.training, options, epochs, open, config.micro_steps}, options};
}

Input Input::validation(Context& context, const Config& config, const Datasets& datasets,
                        const PixelNormalization& pixels) {
  if (config.synthetic()) return Input(synthetic_batch(context, config, pixels, config.eval_batch), config.ranks.size);
  const data::LoaderOptions options = loader_options(context, config, false);
  return {context, config, {datasets.validation, options}, options};
}

Input::Input(Context& context, const Config& config, data::StagedLoader loader, const data::LoaderOptions& options)
    : context_(&context), loader_(std::make_unique<data::StagedLoader>(std::move(loader))) {
  const bool training = options.training;
  if (training) feeds_batches_ = static_cast<int>(config.micro_steps);
  feed_ = std::make_unique<BatchFeed>(context, feeds_batches_);
  const data::MixingOptions mixing = config.flags.augment.mixing();
  if (training && config.trains() && mixing.any())
    mixer_.emplace(mixing, options.seed, options.repeats, options.allocator);
  if (!config.decodes_on_gpu()) return;
  const data::DecodeOptions decoding = config.pixels().decoding(training && config.trains());
  decoder_ =
      std::make_unique<GpuJpegDecoder>(context, JpegDecodeOptions{.fancy_upsampling = decoding.fancy_upsampling});
}

// The host decodes, synchronously, images that the GPU decoder rejects.
void Input::decode(const data::Batch& batch, const Tensor& images) {
  for (const int64_t row : decoder_->decode(batch.encoded, images)) loader_->decode(row);
  for (int64_t row = 0; row < images.dim(0); ++row)
    if (batch.encoded[static_cast<size_t>(row)].jpeg.empty())
      context_->upload(batch["images"].slice(row, row + 1).raw(), images.slice(row, row + 1), Stream::copy);
}

const data::Batch* Input::next() {
  if (!loader_) {
    batch_.cursor += static_cast<uint64_t>(batch_.valid * ranks_);
    return &batch_;
  }
  feed_->wait_until_copied();  // the loader reuses that memory
  const data::Batch* loaded = loader_->next();
  if (loaded == nullptr) return nullptr;
  if (std::exchange(stage_, loader_->stage()) != loader_->stage())  // its tensors have other shapes
    feed_ = std::make_unique<BatchFeed>(*context_, feeds_batches_);
  BatchFeed::Make make;
  if (decoder_) make = [&](const Tensor& images) { decode(*loaded, images); };
  batch_ = *loaded;
  if (mixer_) mixer_->add_to(batch_);
  batch_.fields = feed_->put(batch_.fields, make);
  return &batch_;
}

std::optional<data::LoaderStats> Input::stats() const {
  return loader_ ? std::optional(loader_->stats()) : std::nullopt;
}

}  // namespace dtrain::cnn_benchmarks
