// Broadcast and checksums of the arenas.
#include "dtrain/train/replicas.h"

#include <algorithm>
#include <map>

#include "libdtrain/io/crc32c.h"

namespace dtrain {
namespace {

uint32_t checksum(Context& context, const Tensor& x, uint32_t crc) {
  if (context.is_cpu()) return crc32c(x.raw(), x.bytes(), crc);
  std::vector<std::byte> host(x.bytes());
  context.download(x, host.data(), "checksum of the parameters");
  return crc32c(host.data(), host.size(), crc);
}

}  // namespace

void broadcast_replica(ParameterStore& store, Communicator& communicator, int root, const Tensor& average) {
  communicator.broadcast(store.values(), root, "parameters");
  if (store.buffer_values().count() > 0) communicator.broadcast(store.buffer_values(), root, "running statistics");
  for (int i = 0; i < store.optimizer_states(); ++i)
    communicator.broadcast(store.optimizer_state(i), root, concat("optimizer state ", i));
  if (average) communicator.broadcast(average, root, "average of the parameters");
  communicator.join();
  store.context().synchronize("broadcast of the parameters");
  store.refresh_compute();
}

void check_replicas(ParameterStore& store, Group& group, uint64_t step) {
  Context& context = store.context();
  const uint32_t crc = checksum(context, store.buffer_values(), checksum(context, store.values(), 0));
  const std::vector<std::string> all = group.all_gather(std::to_string(crc), "checksum of the parameters");
  std::map<std::string, int> counts;
  for (const std::string& text : all) ++counts[text];
  if (counts.size() == 1) return;
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string others;
  for (int rank = 0; rank < group.size(); ++rank)
    if (all[static_cast<size_t>(rank)] != most->first) others += (others.empty() ? "" : ", ") + group.name(rank);
  const bool majority = 2 * most->second > group.size();
  throw Error(Fault::numeric, concat("the parameters after step ", step, " are not the same on all ranks: those of ",
                                     others, " differ from ", majority ? "the others'" : "the rest",
                                     "; suspect its memory or processor, and resume from the last checkpoint"));
}

}  // namespace dtrain
