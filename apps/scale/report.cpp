#include "apps/scale/report.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "dtrain/core/error.h"

namespace dtrain::scale {
namespace {

std::string duration(double seconds) {
  if (seconds < 120) return fmt::format("{:.3g} s", seconds);
  if (seconds < 7200) return fmt::format("{:.3g} min", seconds / 60);
  if (seconds < 200 * 3600) return fmt::format("{:.3g} h", seconds / 3600);
  return fmt::format("{:.0f} days", seconds / 86400);
}

// Decimals for small rates of CPUs.
std::string rate(double per_second) { return fmt::format("{:.{}f}", per_second, per_second < 100 ? 2 : 0); }

std::string describe(const Level& level) {
  return fmt::format("{:.4g} GB/s, {:.3g} us", level.bandwidth / 1e9, 1e6 * level.latency);
}

// Efficiency after stragglers, communication and failures.
double with_failures(const Study& study, const Prediction& row) {
  return row.efficiency * (1 - lost_share(study.failures, row.gpus, best_interval(study.failures, row.gpus)));
}

}  // namespace

Study make_study(DeviceStep device, const ScaleOptions& options, const FailureModel& failures,
                 const std::vector<int64_t>& gpus, int64_t global_batch) {
  Study study{std::move(device), options, failures, static_cast<double>(global_batch), {}, {}};
  for (const int64_t n : gpus) {
    study.weak.push_back(predict(study.device, options, n, study.device.batch));
    if (global_batch == 0) continue;
    DT_CHECK(n <= global_batch, "--global_batch=", global_batch, " leaves ", n, " GPUs less than an image each");
    Prediction row = predict(study.device, options, n, std::ceil(study.global_batch / static_cast<double>(n)));
    // The fullest rank determines the step time.
    const double filled = study.global_batch / (row.batch * static_cast<double>(n));
    row.batch *= filled;
    row.efficiency *= filled;
    study.strong.push_back(row);
  }
  return study;
}

std::vector<std::string> describe(const Study& study) {
  const DeviceStep& device = study.device;
  const ScaleOptions& o = study.options;
  const std::vector<Bucket> buckets = make_buckets(device.layers, o.buckets);
  return {
      fmt::format("{} on {}: {:.4g} images/s at batch {:.0f}; step {:.4g} ms: forward {:.4g}, backward {:.4g}, "
                  "update {:.4g}",
                  device.model, device.device, device.batch / device.seconds(), device.batch, 1e3 * device.seconds(),
                  1e3 * device.forward_seconds, 1e3 * device.backward_seconds(), 1e3 * device.update_seconds),
      fmt::format("{:.4g} MB of fp32 gradients in {} buckets, the last of {:.3g} MB; {:.0f} bytes each on the "
                  "wire{}",
                  1e-6 * device.gradient_bytes(), buckets.size(), 1e-6 * buckets.back().bytes, o.wire_bytes,
                  o.overlap ? "" : ", reduced after backward"),
      fmt::format("Hosts of {} GPUs; inside {}; between {} per host; {:.3g} us per collective; jitter {:.3g} %",
                  o.network.gpus_per_host, describe(o.network.inside), describe(o.network.between),
                  1e6 * o.network.collective, 100 * o.jitter),
      fmt::format("A GPU fails every {}; checkpoint {}, restart {}", duration(study.failures.gpu_mtbf),
                  duration(study.failures.checkpoint), duration(study.failures.restart))};
}

std::string table(const Study& study, const std::vector<Prediction>& rows) {
  std::string out = fmt::format("{:>6} {:>6} {:>7} {:>10} {:>10} {:>10} {:>9} {:>11} {:>11} {:>11} {:>14}  {}\n",
                                "GPUs", "hosts", "batch", "step ms", "compute", "exposed", "exposed%", "straggler",
                                "images/s", "efficiency", "with failures", "algorithm");
  for (const Prediction& row : rows)
    out += fmt::format(
        "{:>6} {:>6} {:>7.4g} {:>10.2f} {:>10.2f} {:>10.2f} {:>8.1f}% {:>11.2f} {:>11} {:>10.1f}% "
        "{:>13.1f}%  {}\n",
        row.gpus, row.hosts, row.batch, 1e3 * row.step(), 1e3 * row.compute, 1e3 * row.exposed,
        100 * row.exposed_share(), 1e3 * row.straggler, rate(row.images_per_second()), 100 * row.efficiency,
        100 * with_failures(study, row), row.gpus > 1 ? name_of(row.largest) : "-");
  return out;
}

std::string checkpoint_table(const Study& study) {
  std::string out = fmt::format("{:>6} {:>13} {:>16} {:>10} {:>10} {:>10} {:>8}\n", "GPUs", "a failure per",
                                "checkpoint every", "steps", "Young", "Daly", "lost");
  for (const Prediction& row : study.weak) {
    const double best = best_interval(study.failures, row.gpus);
    out += fmt::format(
        "{:>6} {:>13} {:>16} {:>10.0f} {:>10} {:>10} {:>7.2f}%\n", row.gpus, duration(study.failures.mtbf(row.gpus)),
        duration(best), best / row.step(), duration(young_interval(study.failures, row.gpus)),
        duration(daly_interval(study.failures, row.gpus)), 100 * lost_share(study.failures, row.gpus, best));
  }
  return out;
}

Plot make_plot(const Study& study) {
  Plot plot{
      fmt::format("{}: training on {} to {} GPUs", study.device.model, study.weak.front().gpus, study.weak.back().gpus),
      describe(study),
      {},
      "GPUs",
      {}};
  Panel efficiency{"Efficiency: images per second and GPU, relative to one GPU", 1, {}};
  Panel lost{"Losses as a share of the step (for failures: of the time)", 0, {}};
  Curve weak{fmt::format("weak, {:.0f} images per GPU", study.device.batch), {}, 0};
  Curve failures{"weak, with failures", {}, 1, true};
  Curve exposed{"exposed communication", {}, 0}, failed{"failures, checkpoints", {}, 1};
  Curve straggler{"waiting for the slowest", {}, 3};
  for (const Prediction& row : study.weak) {
    plot.x.push_back(static_cast<double>(row.gpus));
    weak.y.push_back(row.efficiency);
    failures.y.push_back(with_failures(study, row));
    exposed.y.push_back(row.exposed_share());
    straggler.y.push_back(row.straggler / row.step());
    failed.y.push_back(1 - failures.y.back() / row.efficiency);
  }
  efficiency.curves = {weak, failures};
  lost.curves = {exposed, straggler, failed};
  if (!study.strong.empty()) {
    Curve strong{fmt::format("strong, {:.0f} images in all", study.global_batch), {}, 2};
    Curve strong_exposed{"exposed, strong scaling", {}, 2, true};
    for (const Prediction& row : study.strong) {
      strong.y.push_back(row.efficiency);
      strong_exposed.y.push_back(row.exposed_share());
    }
    efficiency.curves.push_back(strong);
    lost.curves.push_back(strong_exposed);
  }
  plot.panels = {efficiency, lost};
  return plot;
}

nlohmann::ordered_json to_json(const Study& study) {
  const auto rows = [&](const std::vector<Prediction>& predictions) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const Prediction& row : predictions) {
      const double best = best_interval(study.failures, row.gpus);
      all.push_back({{"gpus", row.gpus},
                     {"hosts", row.hosts},
                     {"batch", row.batch},
                     {"step_seconds", row.step()},
                     {"compute_seconds", row.compute},
                     {"communication_seconds", row.communication},
                     {"exposed_seconds", row.exposed},
                     {"straggler_seconds", row.straggler},
                     {"images_per_sec", row.images_per_second()},
                     {"efficiency", row.efficiency},
                     {"efficiency_with_failures", with_failures(study, row)},
                     {"checkpoint_interval_seconds", best},
                     {"lost_share", lost_share(study.failures, row.gpus, best)}});
    }
    return all;
  };
  nlohmann::ordered_json json = {{"model", study.device.model}, {"device", study.device.device}};
  json["weak"] = rows(study.weak);
  if (!study.strong.empty()) json["strong"] = rows(study.strong);
  return json;
}

}  // namespace dtrain::scale
