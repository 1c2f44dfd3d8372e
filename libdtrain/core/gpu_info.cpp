#include "dtrain/core/gpu_info.h"

#include <array>

#include "dtrain/core/context.h"

namespace dtrain {
namespace {

struct Peak {
  const char* name;  // substring of the GPU's name
  double half, tf32, f32;
};

// NVIDIA data sheets, dense TFLOP/s. The first match counts.
constexpr std::array kPeaks{
    Peak{"GB200", 2500, 1250, 80},      Peak{"B200", 2250, 1125, 75},        Peak{"B100", 1750, 875, 60},
    Peak{"H200 NVL", 835.5, 417.5, 60}, Peak{"H200", 989.4, 494.7, 66.9},    Peak{"GH200", 989.4, 494.7, 66.9},
    Peak{"H100 PCIe", 756, 378, 51.2},  Peak{"H100 NVL", 835.5, 417.5, 60},  Peak{"H100", 989.4, 494.7, 66.9},
    Peak{"H20", 148, 74, 44},           Peak{"A100", 312, 156, 19.5},        Peak{"A800", 312, 156, 19.5},
    Peak{"A30", 165, 82, 10.3},         Peak{"L40S", 362, 183, 91.6},        Peak{"L40", 181, 90.5, 90.5},
    Peak{"L4", 121, 60, 30.3},          Peak{"RTX 4090", 165.2, 82.6, 82.6}, Peak{"Tesla T4", 65, 0, 8.1},
    Peak{"V100", 125, 0, 15.7},
};

}  // namespace

double peak_flops(const std::string& gpu, DType dtype, bool tf32) {
  for (const Peak& peak : kPeaks) {
    if (gpu.find(peak.name) == std::string::npos) continue;
    return 1e12 * (dtype != DType::f32 ? peak.half : tf32 ? peak.tf32 : peak.f32);
  }
  return 0;
}

#ifndef DTRAIN_WITH_CUDA
GpuInfo gpu_info(int) { throw Error("no GPU: built without CUDA; configure with -DDTRAIN_CUDA=ON"); }

GpuVersions gpu_versions() { return {}; }
#endif

}  // namespace dtrain
