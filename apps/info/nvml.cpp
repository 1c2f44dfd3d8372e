// The few functions of NVML that are called, as its reference manual declares them: no header of it is needed.
#include "apps/info/nvml.h"

#include <dlfcn.h>

#include <array>

#include "dtrain/core/error.h"

namespace dtrain::info {
namespace {

constexpr int kSuccess = 0, kNotSupported = 3;
constexpr int kCorrected = 0, kUncorrected = 1, kSinceTheDriverWasLoaded = 0, kTemperatureOfTheChip = 0;

using Device = void*;

class Nvml {
 public:
  explicit Nvml(const std::string& file) : handle_(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) {
      const char* reason = dlerror();
      throw Error(Fault::resource, concat("NVML: ", reason != nullptr ? reason : file));
    }
    const int status = call<int()>("nvmlInit_v2");
    if (status != kSuccess) {
      const std::string reason = text_of(status);
      dlclose(handle_);
      throw Error(Fault::resource, concat("NVML does not start: ", reason));
    }
  }
  ~Nvml() {
    const auto shut_down = find<int()>("nvmlShutdown");
    if (shut_down != nullptr) shut_down();
    dlclose(handle_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // The status of the call; a library that is too old to have the function does not support it.
  template <class Function, class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    const auto function = find<Function>(name);
    return function == nullptr ? kNotSupported : function(arguments...);
  }
  // As above, false for what is not supported; throws for other failures.
  template <class Function, class... Arguments>
  bool get(const char* name, Arguments... arguments) const {
    const int status = call<Function>(name, arguments...);
    if (status != kSuccess && status != kNotSupported)
      throw Error(Fault::resource, concat("NVML: ", name, ": ", text_of(status)));
    return status == kSuccess;
  }

 private:
  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, name));
  }
  std::string text_of(int status) const {
    const auto text = find<const char*(int)>("nvmlErrorString");
    return text != nullptr ? text(status) : concat("status ", status);
  }

  void* handle_;
};

std::optional<uint64_t> memory_errors(const Nvml& nvml, Device device, int kind) {
  unsigned long long count = 0;
  using Get = int(Device, int, int, unsigned long long*);
  if (!nvml.get<Get>("nvmlDeviceGetTotalEccErrors", device, kind, kSinceTheDriverWasLoaded, &count)) return {};
  return count;
}

struct Reason {
  uint64_t bit;
  const char* name;
  bool fault;
};
constexpr std::array kReasons{
    Reason{0x1, "idleness", false},
    Reason{0x2, "the clocks that were set for applications", false},
    Reason{0x4, "the power limit", false},
    Reason{0x8, "a slowdown by the hardware", true},
    Reason{0x10, "the clocks of a group of GPUs", false},
    Reason{0x20, "the temperature, by the driver", true},
    Reason{0x40, "the temperature, by the hardware", true},
    Reason{0x80, "the machine's power brake", true},
    Reason{0x100, "the clocks that were set for the display", false},
};

}  // namespace

GpuHealth gpu_health(const std::string& address, const std::string& file) {
  const Nvml nvml(file);
  GpuHealth health;
  std::array<char, 96> version{};
  if (nvml.get<int(char*, unsigned)>("nvmlSystemGetDriverVersion", version.data(), unsigned{version.size()}))
    health.driver = version.data();
  Device device = nullptr;
  const std::string bus_id = address + ".0";
  if (!nvml.get<int(const char*, Device*)>("nvmlDeviceGetHandleByPciBusId_v2", bus_id.c_str(), &device))
    throw Error(Fault::resource, concat("NVML cannot look for the GPU at ", address));
  unsigned temperature = 0;
  if (nvml.get<int(Device, int, unsigned*)>("nvmlDeviceGetTemperature", device, kTemperatureOfTheChip, &temperature))
    health.temperature = static_cast<int>(temperature);
  health.corrected = memory_errors(nvml, device, kCorrected);
  health.uncorrected = memory_errors(nvml, device, kUncorrected);
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  using GetRows = int(Device, unsigned*, unsigned*, unsigned*, unsigned*);
  if (nvml.get<GetRows>("nvmlDeviceGetRemappedRows", device, &corrected, &uncorrected, &pending, &failed)) {
    health.remapping_pending = pending != 0;
    health.remapping_failed = failed != 0;
  }
  unsigned long long reasons = 0;
  using GetReasons = int(Device, unsigned long long*);
  if (nvml.get<GetReasons>("nvmlDeviceGetCurrentClocksEventReasons", device, &reasons) ||
      nvml.get<GetReasons>("nvmlDeviceGetCurrentClocksThrottleReasons", device, &reasons))  // its former name
    health.clocks_event = reasons;
  return health;
}

std::vector<std::string> names_of_clocks_event(uint64_t bits, bool faults) {
  std::vector<std::string> names;
  for (const Reason& reason : kReasons)
    if ((bits & reason.bit) != 0 && (reason.fault || !faults)) names.emplace_back(reason.name);
  return names;
}

std::vector<std::string> faults_of(const GpuHealth& health) {
  std::vector<std::string> faults;
  if (health.uncorrected.value_or(0) != 0)
    faults.push_back(concat(*health.uncorrected, " errors of its memory were not corrected: reset the GPU"));
  if (health.remapping_pending) faults.emplace_back("rows of its memory are to be replaced: reset the GPU");
  if (health.remapping_failed) faults.emplace_back("its memory has no spare rows left: replace the GPU");
  for (const std::string& name : names_of_clocks_event(health.clocks_event.value_or(0), true))
    faults.push_back(concat("its clocks are held back by ", name));
  return faults;
}

}  // namespace dtrain::info
