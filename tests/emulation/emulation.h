// What tests, and the stand-ins for CUDA's libraries, ask of the emulation: a CUDA runtime over host memory, against
// which the very kernels and host code of the engine are compiled by g++.
//
// Each thread of a block is a fiber. It runs to its next barrier or collective of its warp, then another one does; the
// order is a matter of choice, and right kernels give the same bits in every order. Blocks run one after the other,
// those of a cooperative launch up to their next grid barrier. A kernel must not spin until another thread has written.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <set>

namespace emulation {

// In which threads of a block, and blocks of a grid, take turns. At start it is that of DTRAIN_EMULATION_ORDER:
// forward (the default), reverse or random.
enum class Order { forward, reverse, random };
void set_order(Order order);
Order order();

// When what is queued on a stream runs: at once, or as late as CUDA's rules allow, which shows where a wait is missing;
// then device memory faults where the host touches it. At start it is that of DTRAIN_EMULATION_STREAMS: eager (the
// default) or deferred.
enum class Streams { eager, deferred };
void set_streams(Streams streams);
Streams streams();

// Queues work on a stream as a library's call would: recorded where the stream is captured. Sets the last error.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);
// Work that depends on another process: it returns false as long as it has to wait, and is called again later, while
// the streams go on as far as they may and calls of the runtime that do not wait return. Once done it may begin anew: a
// graph that recorded it is launched more than once.
cudaError_t enqueue_waiting(cudaStream_t stream, std::function<bool()> work);

// From now on events take their times from a clock that stands still but for advance_clock(), which work may call.
void stop_clock();
void advance_clock(double milliseconds);

// The most blocks of a kernel that a multiprocessor takes at a time, 32 at start: other processes may share it.
void set_occupancy(size_t blocks);

// So many multiprocessors more, or fewer, are held by kernels that wait for other processes: cooperative kernels that
// do not fit into the rest wait for those, all others run.
void hold_multiprocessors(int count);

// Bytes that the device has in all.
void set_device_memory(size_t bytes);

// How many devices the process is shown; one at start. They are one processor and one memory all the same.
void set_device_count(int count);
// Those on which a call has made a context since this was last called: cudaSetDevice does, and so does what allocates,
// frees or touches a thread's capture mode, on the device of its thread, which is 0 until that has set one.
std::set<int> new_device_contexts();

// Whether nvJPEG finds an engine for JPEGs, as it does at start.
void set_jpeg_engine(bool there_is_one);

}  // namespace emulation
