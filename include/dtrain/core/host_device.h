// DT_HD: host and device functions, for per-element arithmetic shared by CPU and CUDA kernels.
#pragma once

#ifdef __CUDACC__
#define DT_HD __host__ __device__
#else
#define DT_HD
#endif
