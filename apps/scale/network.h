// Cost model of all-reduce on a network of hosts, and network presets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::scale {

// Links of one kind. A message of b bytes takes latency + b / bandwidth; links are full duplex.
struct Level {
  double bandwidth = 0;  // bytes per second and direction: a GPU's inside a host, a whole host's between hosts
  double latency = 0;    // seconds per message
};

enum class Algorithm { automatic, ring, hierarchical, tree };

struct Network {
  int64_t gpus_per_host = 8;
  Level inside, between;
  double collective = 0;  // fixed overhead of a collective in seconds: launch and synchronisation
  Algorithm algorithm = Algorithm::automatic;
};

// A named level, with its source.
struct Preset {
  std::string name;
  Level level;
  std::string source;
};
const std::vector<Preset>& presets_inside();
const std::vector<Preset>& presets_between();
// Throws Error listing the names.
const Preset& find_preset(const std::vector<Preset>& presets, const std::string& name);

// Number of hosts for `gpus` GPUs. Throws Error if the last would be partly filled.
int64_t hosts_of(const Network& network, int64_t gpus);

// Seconds of an all-reduce of `bytes` on the wire over `gpus`; 0 for one. With a for latency, B for bandwidth, (i)nside
// and (b)etween, G GPUs in each of H hosts, N = G * H:
//   ring          2 (N - 1) a + 2 (N - 1) / N * bytes / B, a the mean over the ring's links, B the slowest
//                 link's (Patarasu and Yuan, 2009)
//   hierarchical  reduce-scatter and all-gather inside, and between them an all-reduce by rings over the hosts, whose
//                 GPUs share the host's links: 2 (G - 1) ai + 2 (G - 1) / G * bytes / Bi
//                 + 2 (H - 1) ab + 2 (H - 1) / H * bytes / Bb
//   tree          two binary trees with half of the bytes each, pipelined (Sanders, Speck and Traeff, 2009):
//                 2 (ceil(log2 G) ai + ceil(log2 H) ab) + 2 bytes / B, B the slowest link's
// each plus `collective`. `automatic` is the fastest of them.
double all_reduce_seconds(const Network& network, int64_t gpus, double bytes);
// Resolves `automatic` for this size.
Algorithm choose_algorithm(const Network& network, int64_t gpus, double bytes);

const std::vector<std::string>& algorithm_names();  // in the order of Algorithm
const std::string& name_of(Algorithm algorithm);

}  // namespace dtrain::scale
