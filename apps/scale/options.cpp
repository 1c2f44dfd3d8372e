#include "apps/scale/options.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/cli/machine.h"
#include "apps/cli/values.h"
#include "dtrain/core/error.h"

namespace dtrain::scale {
namespace {

Level level_of(const Preset& preset, std::optional<double> gigabytes, std::optional<double> microseconds) {
  return {gigabytes ? 1e9 * *gigabytes : preset.level.bandwidth,
          microseconds ? 1e-6 * *microseconds : preset.level.latency};
}

}  // namespace

std::vector<int64_t> Options::gpu_counts() const {
  std::vector<int64_t> counts;
  for (const std::string& text : gpus) {
    try {
      counts.push_back(cli::parse_number<int64_t>(text, {1, 1 << 20}));
    } catch (const Error& error) {
      throw Error(fmt::format("--gpus: {}", error.what()));
    }
    hosts_of({.gpus_per_host = gpus_per_host, .inside = {}, .between = {}}, counts.back());
  }
  DT_CHECK(!counts.empty(), "--gpus: expected at least one number");
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

Network Options::network() const {
  const auto& names = algorithm_names();
  return {.gpus_per_host = gpus_per_host,
          .inside = level_of(find_preset(presets_inside(), inside), inside_gbs, inside_us),
          .between = level_of(find_preset(presets_between(), between), between_gbs, between_us),
          .collective = 1e-6 * collective_us,
          .algorithm = static_cast<Algorithm>(std::find(names.begin(), names.end(), algorithm) - names.begin())};
}

ScaleOptions Options::scale() const {
  return {.network = network(),
          .buckets = buckets.options(),
          .overlap = overlap,
          .wire_bytes = wire_precision == "fp32" ? 4.0 : 2.0,
          .jitter = jitter,
          .half_batch = half_batch.value_or(0)};
}

FailureModel Options::failures() const { return {3600 * gpu_mtbf_hours, checkpoint_seconds, restart_seconds}; }

DeviceStep Options::device_step() const {
  if (!layers.empty()) return read_layers(layers);
  return derive_layers({.model = model,
                        .device = device_name,
                        .images_per_second = *images_per_sec,
                        .batch = static_cast<double>(batch_size),
                        .update_seconds = 1e-3 * update_ms,
                        .classes = num_classes,
                        .image_size = image_size});
}

MeasureOptions Options::measurement() const {
  cli::Machine machine;
  machine.gpu = device == "gpu";
  machine.precision = cli::precision_of(precision);
  machine.threads = static_cast<int>(threads);
  return {model, machine, batch_size, image_size, num_classes, steps};
}

void check(const Options& o) {
  if (o.validate) return;
  if (o.measure) {
    DT_CHECK(o.batch_size > 0, "--measure needs --batch_size");
    DT_CHECK(o.device == "gpu" || o.precision == "fp32", "--precision=", o.precision, " needs --device=gpu");
    const std::string reason = o.device == "gpu" ? cli::why_no_gpu() : "";
    DT_CHECK(reason.empty(), "--device=gpu: ", reason);
    return;
  }
  DT_CHECK(!o.layers.empty() || o.images_per_sec,
           "expected --layers, or --images_per_sec with --batch_size, or --measure, or --validate; see --help");
  DT_CHECK(o.layers.empty() || !o.images_per_sec, "--layers and --images_per_sec: expected one of them");
  DT_CHECK(!o.layers.empty() || o.batch_size > 0, "--images_per_sec needs --batch_size");
  DT_CHECK(o.layers.empty() || o.batch_size == 0, "--batch_size goes with --images_per_sec or --measure; --layers has ",
           "its own");
  DT_CHECK(o.global_batch == 0 || o.half_batch,
           "--global_batch needs --half_batch, how the rate falls with the batch: ",
           "20.5 fits ResNet-50 on H100, see --validate; 0: not at all");
}

}  // namespace dtrain::scale
