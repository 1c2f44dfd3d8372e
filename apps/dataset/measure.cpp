// dtrain-data throughput: measures the input pipeline.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <exception>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/cli/command_line.h"
#include "apps/cli/messages.h"
#include "apps/cli/options/cache.h"
#include "apps/dataset/files.h"
#include "dtrain/data/catalog.h"
#include "dtrain/io/record_file.h"
#include "dtrain/io/remote_cache.h"
#include "libdtrain/core/cores.h"

namespace dtrain::dataset {
namespace {

// x / 127.5 - 1 as float, like the device's preprocessing.
template <class Pixel>
void normalize(const Pixel* pixels, std::vector<float>& out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(pixels[i]) * (1 / 127.5f) - 1;
}

// Framing errors already include their position.
void read(const data::Dataset& dataset, data::SampleReader& reader, const data::SampleKey& key,
          const data::Row& row) try {
  reader.read(key.sample, key, row);
} catch (const RecordError&) {
  throw;
} catch (const Error& error) {
  throw Error(error.fault(), concat(dataset.locate(key.sample).text(), ": ", error.what()));
}

struct Result {
  uint64_t images = 0;
  double seconds = 0, processor_seconds = 0;
};

// Of all threads of this process.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Reads records in shuffled order, repeatedly, for `seconds`.
Result measure(const data::Dataset& dataset, int64_t threads, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const double processor_start = processor_seconds();
  const auto end = start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::atomic<uint64_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::exception_ptr failure;
  auto work = [&] {
    try {
      const std::unique_ptr<data::SampleReader> reader = dataset.reader();
      const data::Batch batch = data::make_batch(dataset.layout(), 1);
      const Tensor& pixels = batch["images"];
      std::vector<float> normalized(static_cast<size_t>(pixels.count()));
      while (Clock::now() < end && !failed) {
        const uint64_t position = next++;
        const uint64_t sample = position * 2654435761u % dataset.size();
        read(dataset, *reader, {.seed = 0, .epoch = 0, .sample = sample, .position = position}, {batch, 0});
        if (pixels.dtype() == DType::u8)
          normalize(pixels.data<uint8_t>(), normalized);
        else
          normalize(pixels.data<float>(), normalized);
      }
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      failed = true;
    }
  };
  {
    std::vector<std::jthread> pool;
    for (int64_t i = 0; i < threads; ++i) pool.emplace_back(work);
  }
  if (failure) std::rethrow_exception(failure);
  return {next, std::chrono::duration<double>(Clock::now() - start).count(), processor_seconds() - processor_start};
}

}  // namespace

int throughput(const Arguments& argv) {
  int64_t threads = 1, image_size = 224;
  double seconds = 5;
  std::string split = "train", preprocessing = "torchvision";
  bool json = false;
  cli::CacheFlags cache;
  cli::FlagSet flags(argv.front(), "DIR [flags]",
                     "Measures the throughput of the input pipeline: reads, decodes, crops, resizes, flips and "
                     "normalises the images of a data set, and prints images per second.");
  flags.add("threads", threads, "worker threads", {1, 1024});
  flags.add("seconds", seconds, "duration of the measurement, after a warm-up of a fifth of it", {0.1, 3600});
  flags.add("image_size", image_size, "width and height of a sample", {8, 4096});
  flags.add_choice("split", split, {"train", "validation"}, "split to read; both are augmented as in training");
  flags.add_choice("preprocessing", preprocessing, data::preprocessing_names(), "preprocessing of samples");
  cache.declare(flags);
  cache.declare_remote(flags);
  flags.add("json", json, "print a final JSON line: images_per_sec, images_per_sec_per_core");
  const auto places = cli::read_command_line(flags, argv);
  if (!places) return 0;
  DT_CHECK(places->size() == 1, places->size(), " folders given, expected one; see --help");

  set_remote_cache(cache.remote_cache());
  const data::Pixels pixels{.preprocessing = preprocessing, .size = static_cast<int>(image_size)};
  const auto dataset = data::open_split(
      pixels,
      {.directory = places->front(), .training = split == "train", .classes = INT32_MAX, .cache = cache.options()});
  for (const std::string& fault : dataset->faults()) cli::print_message("warning", fault);
  measure(*dataset, threads, seconds / 5);
  const Result result = measure(*dataset, threads, seconds);
  const double rate = static_cast<double>(result.images) / result.seconds;
  const auto cores = static_cast<double>(std::min<int64_t>(threads, usable_cores()));
  fmt::print("{} images in {:.2f} s on {} threads: {:.1f} images/s, {:.1f} per core\n", result.images, result.seconds,
             threads, rate, rate / cores);
  if (const std::string text = cli::remote_cache_summary(remote_cache_stats()); !text.empty())
    cli::print_message("note", text);
  if (json)
    fmt::print("{}\n", nlohmann::ordered_json({{"images_per_sec", rate},
                                               {"images_per_sec_per_core", rate / cores},
                                               {"threads", threads},
                                               {"images", result.images},
                                               {"seconds", result.seconds},
                                               {"processor_seconds", result.processor_seconds}})
                           .dump());
  return 0;
}

}  // namespace dtrain::dataset
