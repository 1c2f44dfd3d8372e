#include "apps/scale/validation.h"

#include <cmath>

#include <fmt/format.h>

#include "apps/scale/json.h"
#include "dtrain/core/error.h"

namespace dtrain::scale {

double predicted_efficiency(const PublishedCurve& curve) {
  const DeviceStep device = derive_layers(curve.rate);
  return predict(device, curve.options, curve.gpus, curve.batch).efficiency /
         predict(device, curve.options, curve.base_gpus, device.batch).efficiency;
}

std::vector<BusBandwidth> bus_bandwidths() {
  Network network{.gpus_per_host = 8,
                  .inside = find_preset(presets_inside(), "nvswitch-h200").level,
                  .between = {},
                  .collective = 10e-6,
                  .algorithm = Algorithm::ring};
  std::vector<BusBandwidth> all = {
      {1 << 20, 66, 0}, {4 << 20, 138, 0}, {8 << 20, 181, 0}, {16 << 20, 242, 0}, {32 << 20, 300, 0}};
  for (BusBandwidth& point : all)
    point.predicted = 1e-9 * 1.75 * point.bytes / all_reduce_seconds(network, 8, point.bytes);
  return all;
}

std::vector<MeasuredRun> read_runs(const std::string& path, double batch) {
  const JsonFile file(path);
  std::vector<MeasuredRun> runs;
  for (const JsonObject& object : file.root().objects("runs")) {
    const double ranks = object.number("ranks");
    MeasuredRun run{static_cast<int64_t>(ranks), object.number_if_any("batch").value_or(batch),
                    object.number("step_seconds"), object.number("exposed_seconds")};
    if (ranks < 1 || ranks > 1 << 20 || ranks != std::floor(ranks))
      throw Error(fmt::format("{}: runs[{}].ranks: expected a whole number from 1 to 1048576, found {}", path,
                              runs.size(), ranks));
    if (run.batch <= 0 || run.step_seconds <= 0)
      throw Error(fmt::format("{}: runs[{}]: expected batch and step_seconds above 0", path, runs.size()));
    runs.push_back(run);
  }
  return runs;
}

std::string validation_report() {
  std::string out = "Published efficiencies: images per second and GPU, over those at the base.\n\n";
  out += fmt::format("{:<56} {:>9} {:>9} {:>7}\n", "", "published", "predicted", "error");
  std::string notes;
  double sum = 0;
  int tests = 0;
  for (const PublishedCurve& curve : published_curves()) {
    const double predicted = predicted_efficiency(curve), error = predicted - curve.efficiency;
    const size_t number = static_cast<size_t>(&curve - published_curves().data()) + 1;
    out += fmt::format("{:>2} {:<53} {:>8.0f}% {:>8.1f}% {:>+7.1f}{}\n", number, curve.name, 100 * curve.efficiency,
                       100 * predicted, std::round(1000 * error) / 10 + 0.0, curve.fitted ? "  fitted" : "");
    notes += fmt::format("{:>2} {}. {}\n", number, curve.source, curve.assumptions);
    if (curve.fitted) continue;
    sum += std::abs(error);
    ++tests;
  }
  out += fmt::format("\nMean absolute error without what was fitted: {:.1f} points.\n\nSources and assumptions\n{}\n",
                     100 * sum / tests, notes);
  out +=
      "Bus bandwidth of an all-reduce in a host of 8 GPUs with NVSwitch (Mooncake#3484; 370 GB/s, 14 messages of "
      "1.4 us, 10 us a collective)\n";
  for (const BusBandwidth& point : bus_bandwidths())
    out += fmt::format("{:>6.0f} MiB  published {:>4.0f} GB/s, predicted {:>4.0f}, error {:>+5.0f} %\n",
                       point.bytes / (1 << 20), point.published, point.predicted,
                       100 * (point.predicted / point.published - 1));
  return out;
}

std::string comparison_table(const DeviceStep& device, const ScaleOptions& options,
                             const std::vector<MeasuredRun>& runs) {
  std::string out = fmt::format("{:>6} {:>7} {:>12} {:>12} {:>8} {:>16} {:>12}\n", "ranks", "batch", "step ms",
                                "predicted", "error", "exposed ms", "predicted");
  for (const MeasuredRun& run : runs) {
    const Prediction row = predict(device, options, run.ranks, run.batch);
    out += fmt::format("{:>6} {:>7.4g} {:>12.2f} {:>12.2f} {:>+7.1f}% {:>16.2f} {:>12.2f}\n", run.ranks, run.batch,
                       1e3 * run.step_seconds, 1e3 * row.step(), 100 * (row.step() / run.step_seconds - 1),
                       1e3 * run.exposed_seconds, 1e3 * row.exposed);
  }
  return out;
}

}  // namespace dtrain::scale
