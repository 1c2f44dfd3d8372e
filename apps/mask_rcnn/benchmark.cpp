#include "apps/mask_rcnn/benchmark.h"

#include <sys/resource.h>

#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "apps/cli/output.h"
#include "apps/mask_rcnn/canvas.h"
#include "apps/mask_rcnn/latency.h"
#include "data/synthetic.h"
#include "dtrain/data/jpeg.h"

namespace dtrain::mask_rcnn {
namespace {

// Tiles of textured shapes as a JPEG, with the decoding cost of a photograph.
EncodedFile drawn_file(int64_t height, int64_t width) {
  Canvas canvas(static_cast<int>(width), static_cast<int>(height), {120, 120, 120});
  constexpr int kSide = 160;
  int tile = 0;
  for (int y = 0; y < canvas.height(); y += kSide)
    for (int x = 0; x < canvas.width(); x += kSide, ++tile)
      canvas.paste(
          data::draw_image(tile % data::kDrawnKinds, data::kDrawnKinds, kSide, 0, static_cast<uint64_t>(tile)).view(),
          x, y);
  return {fmt::format("a synthetic image of {} x {} pixels", width, height), data::encode_jpeg(canvas.image().view())};
}

std::vector<EncodedFile> files_of(const std::vector<std::string>& images, const BenchmarkFlags& flags) {
  std::vector<EncodedFile> files;
  for (const std::string& path : images) files.push_back({path, detection::read_image_file(path)});
  if (files.empty()) files.push_back(drawn_file(flags.image_height, flags.image_width));
  return files;
}

uint64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return uint64_t{1024} * static_cast<uint64_t>(usage.ru_maxrss);
}

// In milliseconds, to the microsecond.
nlohmann::ordered_json json_of(const PartTimes& part) {
  const Latency latency = latency_of(part.seconds);
  const auto milliseconds = [](double seconds) { return std::round(1e6 * seconds) / 1e3; };
  return {{"median", milliseconds(latency.median)},
          {"p90", milliseconds(latency.p90)},
          {"p99", milliseconds(latency.p99)},
          {"mean", milliseconds(latency.mean)}};
}

// Results of a benchmark, for both report formats.
struct Report {
  const Predictor& predictor;
  const cli::Machine& machine;
  const BenchmarkFlags& flags;
  const std::vector<EncodedFile>& files;
  const DetectionTimes& measured;

  double images_per_second() const { return 1 / latency_of(measured.whole.seconds).mean; }
  size_t tensor_bytes() const { return predictor.context().memory_stats().peak_in_use; }
};

nlohmann::ordered_json json_report(const Report& report) {
  nlohmann::ordered_json parts;
  for (const PartTimes& part : report.measured.parts) parts[part.key] = json_of(part);
  return {{"device", report.machine.device()},
          {"threads", report.predictor.context().threads()},
          {"precision", cli::name_of_precision(report.machine.precision)},
          {"images", report.files.size()},
          {"network_sizes", report.measured.network_sizes},
          {"warmup", report.flags.num_warmup_batches},
          {"runs", report.flags.num_batches},
          {"images_per_sec", report.images_per_second()},
          {"latency_ms", json_of(report.measured.whole)},
          {"parts_ms", parts},
          {"detections_per_image", report.measured.found},
          {"peak_tensor_bytes", report.tensor_bytes()},
          {"peak_resident_bytes", peak_resident_bytes()}};
}

std::string text_report(const Report& report) {
  const auto megabytes = [](auto bytes) { return static_cast<double>(bytes) / (1 << 20); };
  std::string text =
      fmt::format("Device:      {}, {} threads, {}\n", report.machine.device(), report.predictor.context().threads(),
                  cli::name_of_precision(report.machine.precision));
  text += fmt::format("Images:      {}\n", report.files.size() == 1 ? report.files.front().name
                                                                    : fmt::format("{} files", report.files.size()));
  text += fmt::format("Network:     {} pixels with padding\n", fmt::join(report.measured.network_sizes, ", "));
  text += fmt::format("Runs:        {} after {} to warm up, an image at a time\n\n", report.flags.num_batches,
                      report.flags.num_warmup_batches);
  text += latency_table(report.measured.parts, report.measured.whole);
  text += fmt::format("\nSpeed:       {:.2f} images/s\n", report.images_per_second());
  text += fmt::format("Found:       {:.1f} objects per image\n", report.measured.found);
  return text + fmt::format("Peak memory: {:.0f} MiB of tensors on the {}, {:.0f} MiB of this process\n",
                            megabytes(report.tensor_bytes()), report.machine.device(),
                            megabytes(peak_resident_bytes()));
}

}  // namespace

void BenchmarkFlags::declare(cli::FlagSet& flags) {
  flags.group("Benchmark");
  flags.add("benchmark", benchmark,
            "print latencies per image and per stage instead of detections; --json prints one object");
  flags.add("num_batches", num_batches, "timed runs of one image each", cli::kPositiveCount);
  flags.add("num_warmup_batches", num_warmup_batches, "untimed warm-up runs", cli::kCount);
  constexpr cli::Range<int64_t> kSide{8, 16384};
  flags.add("image_height", image_height, "height of the synthetic image that is used if no image is given", kSide);
  flags.add("image_width", image_width, "its width", kSide);
}

void BenchmarkFlags::check(const cli::FlagSet& flags) const {
  for (const char* name : {"num_batches", "num_warmup_batches", "image_height", "image_width"})
    DT_CHECK(benchmark || !flags.given(name), "--", name, " needs --benchmark");
  DT_CHECK(!benchmark || !flags.given("output"), "--benchmark and --output: at most one may be given");
}

void run_benchmark(Predictor& predictor, const cli::Machine& machine, const BenchmarkFlags& flags,
                   const std::vector<std::string>& images, bool json) {
  const std::vector<EncodedFile> files = files_of(images, flags);
  const DetectionTimes measured = time_detection(predictor, files, flags.num_warmup_batches, flags.num_batches);
  const Report report{predictor, machine, flags, files, measured};
  cli::patient_stdout() << (json ? json_report(report).dump() + "\n" : text_report(report)) << std::flush;
}

}  // namespace dtrain::mask_rcnn
