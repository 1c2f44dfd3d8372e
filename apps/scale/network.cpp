#include "apps/scale/network.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dtrain/core/error.h"

namespace dtrain::scale {
namespace {

// Fraction of the line rate that applications achieve: headers, flow control, reverse traffic.
constexpr double kShareOfLineRate = 0.9;

double line_rate(double gigabits) { return kShareOfLineRate * gigabits * 1e9 / 8; }

double ring_seconds(const Network& net, int64_t g, int64_t h, double bytes) {
  const auto n = static_cast<double>(g * h);
  const double hosts = h > 1 ? static_cast<double>(h) : 0;  // ring links between hosts
  const double latency = (hosts * net.between.latency + (n - hosts) * net.inside.latency) / n;
  const double bandwidth = h == 1   ? net.inside.bandwidth
                           : g == 1 ? net.between.bandwidth
                                    : std::min(net.inside.bandwidth, net.between.bandwidth);
  return 2 * (n - 1) * (latency + bytes / n / bandwidth);
}

// Ring over `count` members of one level.
double level_seconds(const Level& level, int64_t count, double bytes) {
  const auto n = static_cast<double>(count);
  return count == 1 ? 0 : 2 * (n - 1) * (level.latency + bytes / n / level.bandwidth);
}

double tree_seconds(const Network& net, int64_t g, int64_t h, double bytes) {
  const auto depth = [](int64_t n) { return std::ceil(std::log2(static_cast<double>(n))); };
  const double bandwidth = h == 1   ? net.inside.bandwidth
                           : g == 1 ? net.between.bandwidth
                                    : std::min(net.inside.bandwidth, net.between.bandwidth);
  return 2 * (depth(g) * net.inside.latency + depth(h) * net.between.latency) + 2 * bytes / bandwidth;
}

double seconds_of(const Network& net, Algorithm algorithm, int64_t g, int64_t h, double bytes) {
  switch (algorithm) {
    case Algorithm::ring:
      return ring_seconds(net, g, h, bytes);
    case Algorithm::hierarchical:
      return level_seconds(net.inside, g, bytes) + level_seconds(net.between, h, bytes);
    case Algorithm::tree:
      return tree_seconds(net, g, h, bytes);
    case Algorithm::automatic:
      break;
  }
  throw Error("an algorithm that has not been chosen has no time");
}

}  // namespace

const std::vector<Preset>& presets_inside() {
  static const std::vector<Preset> all = {
      {"nvswitch-h200", {370e9, 1.4e-6}, "H100 and H200 rings, nccl-tests#212; latency from Mooncake#3484, 18 us at 8"},
      {"nvls-h200", {480e9, 1.4e-6}, "H100 and H200 with in-switch reduction, nccl-tests#212 and #272"},
      {"nvswitch-a100", {230e9, 1.4e-6}, "p4d, nccl#527; nccl-tests#149 has 200 to 235"},
      {"nvswitch-v100", {120e9, 2e-6}, "assumed: 80 % of six NVLinks of 25 GB/s"},
      {"pcie3", {10e9, 5e-6}, "assumed: two thirds of 16 lanes of 985 MB/s"},
  };
  return all;
}

const std::vector<Preset>& presets_between() {
  static const std::vector<Preset> all = {
      {"roce25", {line_rate(25), 10e-6}, "one port of 25 Gb/s with RDMA; 90 % and the latency are assumed"},
      {"ethernet100", {line_rate(100), 30e-6}, "one port of 100 Gb/s over TCP; 90 % and the latency are assumed"},
      {"ib100", {line_rate(100), 10e-6}, "one EDR port; 90 % and the latency are assumed"},
      {"ib400", {line_rate(400), 14e-6}, "one NDR port; latency as ib3200"},
      {"efa400", {line_rate(400), 16e-6}, "p4d.24xlarge, 4 x 100 Gb/s; latency from two p6 hosts, dstack#3961, 50 us"},
      {"efa3200", {line_rate(3200), 16e-6}, "p5.48xlarge, 3200 Gb/s; latency as efa400"},
      {"ib3200", {line_rate(3200), 14e-6}, "8 NDR ports, DGX H100; latency from two hosts of 8, nccl#1244, 46 us"},
  };
  return all;
}

const Preset& find_preset(const std::vector<Preset>& presets, const std::string& name) {
  std::vector<std::string> names;
  for (const Preset& preset : presets) {
    if (preset.name == name) return preset;
    names.push_back(preset.name);
  }
  throw Error(fmt::format("no network is called '{}'; there are {}", name, fmt::join(names, ", ")));
}

int64_t hosts_of(const Network& network, int64_t gpus) {
  const int64_t g = network.gpus_per_host;
  DT_CHECK(gpus > 0 && g > 0, gpus, " GPUs in hosts of ", g, ": expected positive numbers");
  DT_CHECK(gpus <= g || gpus % g == 0, gpus, " GPUs do not fill hosts of ", g, ": expected a multiple of ", g);
  return gpus <= g ? 1 : gpus / g;
}

Algorithm choose_algorithm(const Network& network, int64_t gpus, double bytes) {
  if (network.algorithm != Algorithm::automatic) return network.algorithm;
  const int64_t h = hosts_of(network, gpus), g = gpus / h;
  Algorithm best = Algorithm::ring;
  for (const Algorithm other : {Algorithm::hierarchical, Algorithm::tree})
    if (seconds_of(network, other, g, h, bytes) < seconds_of(network, best, g, h, bytes)) best = other;
  return best;
}

double all_reduce_seconds(const Network& network, int64_t gpus, double bytes) {
  if (gpus == 1) return 0;
  const int64_t h = hosts_of(network, gpus);
  return network.collective + seconds_of(network, choose_algorithm(network, gpus, bytes), gpus / h, h, bytes);
}

const std::vector<std::string>& algorithm_names() {
  static const std::vector<std::string> names = {"auto", "ring", "hierarchical", "tree"};
  return names;
}

const std::string& name_of(Algorithm algorithm) { return algorithm_names()[static_cast<size_t>(algorithm)]; }

}  // namespace dtrain::scale
