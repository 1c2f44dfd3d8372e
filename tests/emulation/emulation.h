// Controls of the CUDA emulation for tests and stand-ins of CUDA's libraries: a CUDA runtime over host memory, with
// which g++ compiles the engine's kernels and host code unchanged.
//
// Each thread of a block is a fiber that runs to its next barrier or warp collective, then another one does, in a
// configurable order; correct kernels give the same bits in every order. Blocks run sequentially, those of a
// cooperative launch up to their next grid barrier. Kernels must not spin on other threads' writes.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <set>

namespace emulation {

// Order of threads within a block and of blocks within a grid. Initially from DTRAIN_EMULATION_ORDER: forward
// (default), reverse or random.
enum class Order { forward, reverse, random };
void set_order(Order order);
Order order();

// When stream work runs: immediately, or as late as CUDA's rules allow, which reveals missing synchronisation; device
// memory then faults on host access. Initially from DTRAIN_EMULATION_STREAMS: eager (default) or deferred.
enum class Streams { eager, deferred };
void set_streams(Streams streams);
Streams streams();

// Enqueues work like a library call; captured if the stream is capturing. Sets the last error.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);
// Work that depends on another process: called repeatedly until it returns true, while other streams and non-blocking
// runtime calls proceed. It must be restartable, since a captured graph may be launched repeatedly.
cudaError_t enqueue_waiting(cudaStream_t stream, std::function<bool()> work);

// Event times now come from a clock that only advance_clock() advances, which work may call.
void stop_clock();
void advance_clock(double milliseconds);

// Maximum of resident blocks per multiprocessor, initially 32: other processes may share it.
void set_occupancy(size_t blocks);

// Changes the number of multiprocessors held by kernels that wait for other processes: cooperative kernels that do not
// fit into the rest wait, all others run.
void hold_multiprocessors(int count);

// Total device memory in bytes.
void set_device_memory(size_t bytes);

// Number of visible devices, initially one. All share one processor and memory.
void set_device_count(int count);
// Devices on which a context was created since the last call: by cudaSetDevice, allocation, deallocation and thread
// capture mode, on the thread's current device, initially 0.
std::set<int> new_device_contexts();

// Whether nvJPEG finds a hardware decoder; initially true.
void set_jpeg_engine(bool there_is_one);

}  // namespace emulation
