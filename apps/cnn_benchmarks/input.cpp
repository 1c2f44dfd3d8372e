// Opens data sets, configures loaders, and generates the synthetic batch.
#include "apps/cnn_benchmarks/input.h"

#include <utility>

#include "apps/cli/messages.h"
#include "apps/cli/progress.h"
#include "apps/cli/synthetic_batch.h"
#include "apps/ssd/data.h"
#include "data/labelled_source.h"
#include "dtrain/data/catalog.h"
#include "dtrain/data/class_names.h"
#include "dtrain/data/imagenet.h"
#include "dtrain/io/remote_cache.h"

namespace dtrain::cnn_benchmarks {
namespace {

// `cache` reports to a progress bar, shown if opening takes long.
data::CacheOptions cache_options(const Settings& settings, bool training, std::optional<cli::Progress>& progress) {
  data::CacheOptions cache = settings.flags.input.cache_options();
  if (settings.ranks.is_chief())
    cache.progress = [&progress, training](uint64_t opened, uint64_t files) {
      if (!progress) progress.emplace(training ? "training files" : "validation files", files);
      progress->update(opened);
    };
  return cache;
}

// With images of `size` pixels a side.
std::shared_ptr<data::Dataset> open_split(const Settings& settings, bool training, int64_t size,
                                          const std::function<void(const std::string&)>& notice = {}) {
  data::Pixels pixels = settings.pixels();
  pixels.size = static_cast<int>(size);
  if (settings.decodes_on_gpu()) {
    DT_CHECK(pixels.host_only().empty(), pixels.host_only(), ": --jpeg_decoder=host");
    DT_CHECK(!pixels.distortions, "--distortions run on the host and need --jpeg_decoder=host");
  }
  std::optional<cli::Progress> progress;
  return data::open_split(pixels, {.directory = settings.flags.input.data_dir,
                                   .training = training,
                                   // Inference preprocesses images as evaluation does.
                                   .augments = training && settings.mode != RunMode::forward_only,
                                   .classes = settings.options.classes,
                                   .label_offset = settings.flags.model.label_offset,
                                   .augmentation = settings.flags.augment.sample(),
                                   .cache = cache_options(settings, training, progress),
                                   .notice = notice,
                                   .multi_label = settings.multi_label});
}

void open_classification_data(const Settings& settings, Datasets& datasets) {
  datasets.class_names = data::names_by_output(data::stored_class_names(settings.flags.input.data_dir),
                                               settings.options.classes, settings.flags.model.label_offset);
  std::vector<std::string> notices;
  const auto notice = [&](const std::string& line) { notices.push_back(line); };
  if (settings.mode != RunMode::evaluation)
    datasets.training = open_split(settings, true, settings.stages.front().size, notice);
  if (settings.evaluates()) datasets.validation = open_split(settings, false, settings.options.image_size, notice);
  if (settings.ranks.is_chief()) cli::print_notes(notices);
}

void open_detection_data(const Settings& settings, Datasets& datasets) {
  const std::string& folder = settings.flags.input.data_dir;
  std::optional<cli::Progress> training, validation;
  if (settings.mode != RunMode::evaluation)
    datasets.training = datasets.objects =
        ssd::open_training(folder, settings.mode != RunMode::forward_only, cache_options(settings, true, training));
  if (datasets.objects && settings.ranks.is_chief()) cli::print_notes(datasets.objects->notices());
  if (!settings.evaluates()) return;
  datasets.scored = ssd::open_validation(folder, cache_options(settings, false, validation));
  datasets.validation = datasets.scored.images;
  if (settings.ranks.is_chief()) cli::print_notes(datasets.scored.images->notices());
}

data::Batch synthetic_batch(Context& context, const Settings& settings, const PixelNormalization& format,
                            int64_t rows) {
  const int64_t size = settings.options.image_size;
  const auto [images, labels] =
      cli::make_tf_cnn_batch(context, rows, size, settings.options.classes, settings.flags.run.seed());
  data::Batch batch{.layout = data::labelled_images({size, size, format.channels}, format.dtype), .valid = rows};
  batch.fields = {normalize_pixels(context, images, format), labels};
  batch.row_valid.assign(static_cast<size_t>(rows), 1);
  return batch;
}

}  // namespace

data::LoaderOptions loader_options(Context& context, const Settings& settings, bool training) {
  const Flags& f = settings.flags;
  data::LoaderOptions options;
  if (!context.is_cpu()) options.allocator = context.host_allocator();
  options.training = training;
  options.batch = training ? settings.shape.batch : settings.eval_batch;
  options.rank = settings.ranks.rank;
  options.ranks = settings.ranks.size;
  options.seed = f.run.seed();
  if (settings.trains()) options.repeats = static_cast<int>(f.augment.repeated_augmentation);
  options.workers = settings.input_workers;
  // One batch is in training, one is being filled, the rest are queued.
  options.slots = static_cast<int>(2 + f.input.datasets_prefetch_buffer_size);
  options.defer_decoding = settings.decodes_on_gpu();
  options.skip_bad_records = f.input.on_bad_record == "skip";
  options.bad_record_budget = static_cast<uint64_t>(f.input.bad_record_budget);
  return options;
}

Datasets open_datasets(const Settings& settings) {
  Datasets datasets;
  const data::DatasetInfo& info = data::dataset_info(settings.dataset);
  datasets.sizes = {info.training, info.validation};
  if (settings.synthetic()) return datasets;
  set_remote_cache(settings.flags.input.cache.remote_cache());
  if (settings.detects()) {
    open_detection_data(settings, datasets);
  } else {
    open_classification_data(settings, datasets);
  }
  if (datasets.training) datasets.sizes.training = datasets.training->size();
  if (datasets.validation) datasets.sizes.validation = datasets.validation->size();
  return datasets;
}

Input Input::training(Context& context, const Settings& settings, const Datasets& datasets,
                      const PixelNormalization& pixels, uint64_t cursor) {
  if (settings.synthetic()) {
    data::Batch batch = synthetic_batch(context, settings, pixels, settings.shape.batch);
    batch.cursor = cursor;
    return Input(std::move(batch), settings.ranks.size);
  }
  data::LoaderOptions options = loader_options(context, settings, true);
  options.cursor = cursor;
  options.report = datasets.report;
  std::vector<double> epochs;
  for (size_t i = 1; i < settings.stages.size(); ++i) epochs.push_back(settings.stages[i].epoch);
  const auto open = [&settings](size_t stage) { return open_split(settings, true, settings.stages[stage].size); };
  return {context, settings, {datasets.training, options, epochs, open, settings.shape.micro_steps}, options};
}

Input Input::validation(Context& context, const Settings& settings, const Datasets& datasets,
                        const PixelNormalization& pixels) {
  if (settings.synthetic())
    return Input(synthetic_batch(context, settings, pixels, settings.eval_batch), settings.ranks.size);
  const data::LoaderOptions options = loader_options(context, settings, false);
  return {context, settings, {datasets.validation, options}, options};
}

Input::Input(Context& context, const Settings& settings, data::StagedLoader loader, const data::LoaderOptions& options)
    : context_(&context), loader_(std::make_unique<data::StagedLoader>(std::move(loader))) {
  const bool training = options.training;
  if (training) feeds_batches_ = settings.shape.micro_steps;
  feed_ = std::make_unique<BatchFeed>(context, feeds_batches_);
  const data::MixingOptions mixing = settings.flags.augment.mixing();
  if (training && settings.trains() && mixing.any())
    mixer_.emplace(mixing, options.seed, options.repeats, options.allocator);
  if (!settings.decodes_on_gpu()) return;
  const data::DecodeOptions decoding = settings.pixels().decoding(training && settings.trains());
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
