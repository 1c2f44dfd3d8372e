// Input pipeline from TFRecords to samples on a GPU: images per second with host or GPU decoding, and the number of
// busy host cores. One line of JSON.
//   jpeg_decode_bench --records imagenet --decoder gpu --batch 256
// --repeat reuses the records of one batch, which isolates the GPU's share.
#include <time.h>

#include "apps/cli/environment.h"
#include "benchmarks/json.h"
#include "benchmarks/program.h"
#include "dtrain/data/augment.h"
#include "dtrain/data/imagenet.h"
#include "dtrain/data/loader.h"
#include "dtrain/ops/jpeg_decode.h"
#include "dtrain/train/batch_feed.h"

namespace dtrain {
namespace {

struct Options {
  std::string records, decoder = "gpu", preprocessing = "torchvision";
  int64_t batch = 256, workers = 0, size = 224;
  double seconds = 3;
  bool repeat = false;
};

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

class Bench {
 public:
  explicit Bench(const Options& o)
      : options_(o), context_(make_cuda_context(cli::with_environment())), feed_(*context_) {
    const bool on_gpu = o.decoder == "gpu";
    preset_.preset = o.preprocessing == "tf_cnn" ? data::Preset::tf_cnn : data::Preset::torchvision;
    preset_.height = preset_.width = static_cast<int>(o.size);
    auto dataset = std::make_shared<data::ImagenetDataset>(data::ImagenetOptions{.directory = o.records},
                                                           data::make_preprocess(preset_));
    loader_ = std::make_unique<data::Loader>(dataset, data::LoaderOptions{.batch = o.batch,
                                                                          .workers = static_cast<int>(o.workers),
                                                                          .defer_decoding = on_gpu,
                                                                          .allocator = context_->host_allocator()});
    if (on_gpu) decoder_ = std::make_unique<GpuJpegDecoder>(*context_);
  }

  void next() {
    feed_.wait_until_copied();
    if (!batch_ || !options_.repeat) batch_ = loader_->next();
    BatchFeed::Make make;
    if (decoder_) make = [&](const Tensor& images) { decode(images); };
    feed_.put(batch_->fields, make);
  }

  void finish() { context_->synchronize("the batches"); }
  data::LoaderStats stats() const { return loader_->stats(); }

 private:
  void decode(const Tensor& images) {
    for (const int64_t row : decoder_->decode(batch_->encoded, images)) loader_->decode(row);
    for (int64_t row = 0; row < images.dim(0); ++row)
      if (batch_->encoded[static_cast<size_t>(row)].jpeg.empty())
        context_->upload((*batch_)["images"].slice(row, row + 1).raw(), images.slice(row, row + 1), Stream::copy);
  }

  const Options options_;
  data::PreprocessOptions preset_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<data::Loader> loader_;
  BatchFeed feed_;
  std::unique_ptr<GpuJpegDecoder> decoder_;
  const data::Batch* batch_ = nullptr;
};

JsonObject measure(const Options& o) {
  Bench bench(o);
  for (int i = 0; i < 3; ++i) bench.next();
  bench.finish();
  const double wall = seconds_of(CLOCK_MONOTONIC), cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  int64_t batches = 0;
  double elapsed = 0;
  while (elapsed < o.seconds) {
    bench.next();
    ++batches;
    elapsed = seconds_of(CLOCK_MONOTONIC) - wall;
  }
  bench.finish();
  elapsed = seconds_of(CLOCK_MONOTONIC) - wall;
  const data::LoaderStats stats = bench.stats();
  return {{"decoder", o.decoder},
          {"preprocessing", o.preprocessing},
          {"batch", o.batch},
          {"repeat", o.repeat},
          {"images_per_sec", static_cast<double>(batches * o.batch) / elapsed},
          {"host_cores", (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu) / elapsed},
          {"share_left_to_the_gpu",
           static_cast<double>(stats.deferred) / static_cast<double>(std::max<uint64_t>(1, stats.records))}};
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  using namespace dtrain;
  Options options;
  cli::FlagSet flags("jpeg_decode_bench", "--records FOLDER [flags]",
                     "Images per second from TFRecords to a GPU's memory.");
  flags.add("records", options.records, "folder of train-*-of-*");
  flags.add_choice("decoder", options.decoder, {"host", "gpu"}, "JPEG decoder");
  flags.add_choice("preprocessing", options.preprocessing, {"torchvision", "tf_cnn"}, "preprocessing preset");
  flags.add("batch", options.batch, "images per batch", kPositiveBatch);
  flags.add("size", options.size, "height and width of a sample in pixels", {1, cli::kImageSize.high});
  flags.add("workers", options.workers, "loader threads; 0: one per core", cli::kThreads);
  flags.add("seconds", options.seconds, "measuring time", cli::kNotNegative);
  flags.add("repeat", options.repeat, "reuse the first batch");
  return run_program(flags, argc, argv, [&] {
    require_flags(flags, {"records"});
    print_json(measure(options));
  });
}
