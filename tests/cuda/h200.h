// cuDNN's description of an H200, to query engines without one.
#pragma once

namespace dtrain::cuda {

inline constexpr const char* kH200 = R"({
  "deviceName": "NVIDIA H200", "deviceVer": 900, "driverVer": 13000, "cudaDeviceId": 0, "pciDeviceId": 0,
  "isTccDriver": 0, "multiProcessorCount": 132, "totalGlobalMem": 150754820096, "l2CacheSize": 62914560,
  "smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "warpSize": 32, "supportCoopLaunch": 1,
  "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "maxThreadsPerBlock": 1024,
  "maxThreadsPerSM": 2048, "maxCtasPerSM": 32, "regsPerBlock": 65536, "maxRegistersPerSM": 65536,
  "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024})";

}  // namespace dtrain::cuda
