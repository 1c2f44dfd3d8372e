// hwloc's objects to lines.
#include "apps/info/topology.h"

#include <hwloc.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include <fmt/format.h>

namespace dtrain::info {
namespace {

using Topology = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;

Topology read_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return {nullptr, hwloc_topology_destroy};
  Topology topology(raw, hwloc_topology_destroy);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  // The kernel says where devices are: nothing has to be opened on them. Debian's libpciaccess leaks what it finds.
  for (const char* component : {"pci", "cuda", "nvml", "opencl", "rsmi", "levelzero", "gl"})
    hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  if (hwloc_topology_load(raw) != 0) topology.reset();
  return topology;
}

std::string count(const Topology& topology, hwloc_obj_type_t type, const char* what) {
  const int number = std::max(0, hwloc_get_nbobjs_by_type(topology.get(), type));
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

std::string cores_text(hwloc_const_cpuset_t set) {
  std::array<char, 1024> text{};
  hwloc_bitmap_list_snprintf(text.data(), text.size(), set);
  return text.data();
}

constexpr unsigned kDisplayClass = 0x03, kNetworkClass = 0x02, kAcceleratorClass = 0x12;

// By their PCI class: graphics and accelerators, and what speaks to a network, with the name that the system gave it.
std::string name_of_device(hwloc_obj_t device) {
  const auto& pci = device->attr->pcidev;
  const unsigned kind = pci.class_id >> 8U;
  if (kind != kDisplayClass && kind != kNetworkClass && kind != kAcceleratorClass) return "";
  std::string name = kind == kNetworkClass ? "network" : "GPU";
  for (hwloc_obj_t child = device->io_first_child; child != nullptr; child = child->next_sibling)
    if (child->type == HWLOC_OBJ_OS_DEVICE && child->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK && child->name)
      name = child->name;
  return fmt::format("{} {:04x}:{:02x}:{:02x}.{:x}", name, pci.domain, pci.bus, pci.dev, pci.func);
}

// The devices by the NUMA node that they are near to; those that are near to several, or to none, by -1.
std::map<int, std::string> devices_by_node(const Topology& topology) {
  std::map<int, std::string> devices;
  for (hwloc_obj_t at = nullptr; (at = hwloc_get_next_pcidev(topology.get(), at)) != nullptr;) {
    const std::string name = name_of_device(at);
    if (name.empty()) continue;
    const hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topology.get(), at);
    const bool one = near != nullptr && hwloc_bitmap_weight(near->nodeset) == 1;
    devices[one ? hwloc_bitmap_first(near->nodeset) : -1] += ", " + name;
  }
  return devices;
}

}  // namespace

std::vector<std::string> topology_lines() {
  const Topology topology = read_topology();
  if (!topology) return {"hwloc cannot read it"};
  std::vector<std::string> lines = {fmt::format(
      "{}, {}, {}, {}", count(topology, HWLOC_OBJ_PACKAGE, "socket"), count(topology, HWLOC_OBJ_NUMANODE, "NUMA node"),
      count(topology, HWLOC_OBJ_CORE, "core"), count(topology, HWLOC_OBJ_PU, "thread"))};
  std::map<int, std::string> devices = devices_by_node(topology);
  for (hwloc_obj_t node = nullptr; (node = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_NUMANODE, node));)
    lines.push_back(fmt::format("  node {}: cores {}, {:.1f} GiB{}", node->os_index, cores_text(node->cpuset),
                                static_cast<double>(node->attr->numanode.local_memory) / (1U << 30U),
                                devices[static_cast<int>(node->os_index)]));
  if (devices.contains(-1)) lines.push_back("  near no single node: " + devices[-1].substr(2));
  return lines;
}

}  // namespace dtrain::info
