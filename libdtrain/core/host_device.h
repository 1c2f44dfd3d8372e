// DT_HD marks the per-element arithmetic that the CPU and the CUDA arm of an op share.
#pragma once

#ifdef __CUDACC__
#define DT_HD __host__ __device__
#else
#define DT_HD
#endif
