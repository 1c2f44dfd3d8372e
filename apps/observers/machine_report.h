// Description of the machine for logs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace dtrain::observers {

// JSON in the form of the model garden's benchmark log: cpu_info (num_cores, cpu_info, mhz_per_cpu), gpu_info (count
// and, if `gpu` is a GPU, its model), memory_total and memory_available in bytes. Omits unknown values.
nlohmann::ordered_json machine_report(int gpus, int gpu);

}  // namespace dtrain::observers
