// What NVIDIA's management library (NVML) knows of a GPU's health: errors of its memory, and what slows its clocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dtrain::info {

struct GpuHealth {
  std::string driver;                    // "580.65.06"
  std::optional<int> temperature;        // degrees Celsius
  std::optional<uint64_t> corrected;     // errors of memory since the driver was loaded; nothing without ECC
  std::optional<uint64_t> uncorrected;   // the same, which ECC could not mend
  bool remapping_pending = false;        // rows of memory are to be replaced when the GPU is reset
  bool remapping_failed = false;         // there is no spare row left
  std::optional<uint64_t> clocks_event;  // NVML's bits of reasons for clocks that are lower than they could be
};

// Of the GPU at `address` of the PCI bus, e.g. "0000:17:00", by the shared library `file`. What a GPU does not support
// is left out. Throws Error(Fault::resource) with the reason where there is no such library or GPU.
GpuHealth gpu_health(const std::string& address, const std::string& file = "libnvidia-ml.so.1");

// The reasons among `bits`, e.g. "the power limit"; `faults` only: those that a sound GPU in a sound machine does not
// have, that are heat and a lack of power.
std::vector<std::string> names_of_clocks_event(uint64_t bits, bool faults);

// Why the GPU should not be trained on, a phrase each.
std::vector<std::string> faults_of(const GpuHealth& health);

}  // namespace dtrain::info
