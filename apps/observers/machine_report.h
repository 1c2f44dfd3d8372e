// What logs say of the machine.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace dtrain::observers {

// In the form of the model garden's benchmark log: cpu_info (num_cores, cpu_info, mhz_per_cpu), gpu_info (count and,
// where `gpu` is one, its model), memory_total and memory_available in bytes. What the system does not say is left out.
nlohmann::ordered_json machine_report(int gpus, int gpu);

}  // namespace dtrain::observers
