// Emulated runtime API: errors, ordering guarantees, captures.
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>

#include "tests/emulation/launcher.h"

namespace dtrain {
namespace {

__global__ void add(int* p, int value) { atomicAdd(p, value); }
__global__ void double_it(int* p) { *p *= 2; }

struct OwnStream {
  OwnStream() { EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess); }
  ~OwnStream() { EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  cudaStream_t stream = nullptr;
};
struct OwnEvent {
  OwnEvent() { EXPECT_EQ(cudaEventCreate(&event), cudaSuccess); }
  ~OwnEvent() { EXPECT_EQ(cudaEventDestroy(event), cudaSuccess); }
  OwnEvent(const OwnEvent&) = delete;
  OwnEvent& operator=(const OwnEvent&) = delete;
  cudaEvent_t event = nullptr;
};
// Scope with deferred streams.
struct Deferred {
  Deferred() { emulation::set_streams(emulation::Streams::deferred); }
  ~Deferred() { emulation::set_streams(before); }
  emulation::Streams before = emulation::streams();
};

cudaError_t add_on(cudaStream_t stream, const DeviceArray<int>& sum, int value) {
  return start(add, {1, 1, 0, false, stream}, sum.data(), value);
}

TEST(Launch, RefusesWhatTheDeviceCannotRun) {
  const DeviceArray<int> sum(std::vector<int>{0});
  const auto launch = [&](const Shape3& shape) { return start(add, shape, sum.data(), 1); };
  EXPECT_EQ(launch({1, 1025}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch({1, dim3(32, 33)}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch({1, dim3(1, 1, 65)}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch({0, 32}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch({dim3(1, 65536), 32}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch({1, 0}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch({1, 1, (48 << 10) + 1}), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaFuncSetAttribute(add, cudaFuncAttributeMaxDynamicSharedMemorySize, (227 << 10) + 1),
            cudaErrorInvalidValue);
  EXPECT_EQ(sum.values()[0], 0);
  EXPECT_EQ(cudaFuncSetAttribute(add, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 << 10), cudaSuccess);
  EXPECT_EQ(launch({1, 1024, 227 << 10}), cudaSuccess);
  EXPECT_EQ(sum.values()[0], 1024);
}

TEST(Launch, LimitsACooperativeGridToWhatRunsAtOnce) {
  const DeviceArray<int> sum(std::vector<int>{0});
  int blocks = 0, multiprocessors = 0;
  ASSERT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 96, 20 << 10), cudaSuccess);
  ASSERT_EQ(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0), cudaSuccess);
  EXPECT_EQ(blocks, 10);  // 21 KiB each in 228 KiB
  const auto most = static_cast<unsigned>(blocks * multiprocessors);
  EXPECT_EQ(start(add, {most + 1, 96, 20 << 10, true}, sum.data(), 1), cudaErrorCooperativeLaunchTooLarge);
  EXPECT_EQ(start(add, {most, 96, 20 << 10, true}, sum.data(), 1), cudaSuccess);
  EXPECT_EQ(start(add, {most + 1, 96, 20 << 10}, sum.data(), 1), cudaSuccess);
}

TEST(Memory, RefusesCopiesThatLieAboutTheirEnds) {
  const DeviceArray<int> device(8);
  std::vector<int> host(9, 5);
  const size_t bytes = 8 * sizeof(int);
  EXPECT_EQ(cudaMemcpy(device.data(), host.data(), bytes, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), host.data(), bytes, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(device.data(), host.data(), bytes + 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(host.data(), 0, bytes), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(host.data()), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(device.data(), host.data(), bytes, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(device.values(), std::vector<int>(8, 5));
}

TEST(Memory, RunsOut) {
  size_t free = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  void* block = nullptr;
  emulation::set_device_memory(total - free + 1000);
  EXPECT_EQ(cudaMalloc(&block, 1001), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&block, 1000), cudaSuccess);
  EXPECT_EQ(cudaFree(block), cudaSuccess);
  emulation::set_device_memory(total);
}

TEST(Streams, RunAsLateAsTheyMayWhereDeferred) {
  const Deferred deferred;
  const DeviceArray<int> sum(std::vector<int>{1});
  const OwnStream first, second;
  const OwnEvent event;
  ASSERT_EQ(add_on(first.stream, sum, 2), cudaSuccess);
  ASSERT_EQ(start(double_it, {1, 1, 0, false, second.stream}, sum.data()), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(second.stream), cudaSuccess);
  EXPECT_EQ(sum.values()[0], 2);  // not synchronised with `first`
  EXPECT_EQ(cudaStreamQuery(first.stream), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(first.stream), cudaSuccess);
  EXPECT_EQ(sum.values()[0], 4);

  ASSERT_EQ(add_on(first.stream, sum, 2), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event.event, first.stream), cudaSuccess);
  ASSERT_EQ(add_on(first.stream, sum, 100), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(second.stream, event.event), cudaSuccess);
  ASSERT_EQ(start(double_it, {1, 1, 0, false, second.stream}, sum.data()), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event.event), cudaErrorNotReady);
  ASSERT_EQ(cudaStreamSynchronize(second.stream), cudaSuccess);
  EXPECT_EQ(sum.values()[0], 12);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(sum.values()[0], 112);
}

TEST(Streams, ReadPinnedMemoryWhenTheyComeToItAndPageableMemoryAtOnce) {
  const Deferred deferred;
  const DeviceArray<int> device(2);
  const OwnStream stream;
  int* pinned = nullptr;
  int pageable = 1;
  ASSERT_EQ(cudaMallocHost(&pinned, sizeof *pinned), cudaSuccess);
  *pinned = 1;
  ASSERT_EQ(cudaMemcpyAsync(device.data(), pinned, 4, cudaMemcpyHostToDevice, stream.stream), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(device.data() + 1, &pageable, 4, cudaMemcpyHostToDevice, stream.stream), cudaSuccess);
  *pinned = pageable = 2;
  ASSERT_EQ(cudaMemcpyAsync(&pageable, device.data(), 4, cudaMemcpyDeviceToHost, stream.stream), cudaSuccess);
  EXPECT_EQ(pageable, 2);
  EXPECT_EQ(device.values(), (std::vector<int>{2, 1}));
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST(StreamsDeathTest, FaultWhereTheHostTouchesDeviceMemory) {
  const Deferred deferred;
  const DeviceArray<int> device(std::vector<int>{1});
  const OwnStream stream;
  ASSERT_EQ(add_on(stream.stream, device, 1), cudaSuccess);
  EXPECT_DEATH(*device.data() = 3, "");
  EXPECT_EQ(device.values()[0], 1);
}

// Captures `work` on a stream; returns EndCapture's status and the graph.
template <class Work>
std::pair<cudaError_t, cudaGraph_t> capture(cudaStream_t stream, Work&& work,
                                            cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
  EXPECT_EQ(cudaStreamBeginCapture(stream, mode), cudaSuccess);
  work();
  cudaGraph_t graph = nullptr;
  const cudaError_t error = cudaStreamEndCapture(stream, &graph);
  return {error, graph};
}

TEST(Capture, RecordsAndRunsWhenLaunched) {
  const DeviceArray<int> sum(std::vector<int>{1});
  const OwnStream stream, other;
  const OwnEvent fork, join;
  const auto [error, graph] = capture(stream.stream, [&] {
    EXPECT_EQ(add_on(stream.stream, sum, 1), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(fork.event, stream.stream), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(other.stream, fork.event), cudaSuccess);
    EXPECT_EQ(start(double_it, {1, 1, 0, false, other.stream}, sum.data()), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(join.event, other.stream), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(stream.stream, join.event), cudaSuccess);
    EXPECT_EQ(cudaMemsetAsync(sum.data(), 0, 0, stream.stream), cudaSuccess);
  });
  ASSERT_EQ(error, cudaSuccess);
  size_t nodes = 0;
  EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 2u);
  EXPECT_EQ(sum.values()[0], 1);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  for (int launches = 0; launches < 3; ++launches) EXPECT_EQ(cudaGraphLaunch(exec, stream.stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream.stream), cudaSuccess);
  EXPECT_EQ(sum.values()[0], (((1 + 1) * 2 + 1) * 2 + 1) * 2);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(add_on(other.stream, sum, 1), cudaSuccess);  // no longer capturing
  EXPECT_EQ(cudaStreamSynchronize(other.stream), cudaSuccess);
  EXPECT_EQ(sum.values()[0], 23);
}

// Each of these calls fails and invalidates the capture.
TEST(Capture, IsInvalidatedByWhatWaitsForTheDevice) {
  const OwnStream stream, other;
  const OwnEvent recorded_outside;
  ASSERT_EQ(cudaEventRecord(recorded_outside.event, other.stream), cudaSuccess);
  void* block = nullptr;
  int pageable = 0;
  const DeviceArray<int> device(1);
  const std::pair<std::string, std::function<cudaError_t()>> calls[] = {
      {"cudaStreamSynchronize", [&] { return cudaStreamSynchronize(stream.stream); }},
      {"cudaStreamQuery", [&] { return cudaStreamQuery(stream.stream); }},
      {"cudaDeviceSynchronize", [&] { return cudaDeviceSynchronize(); }},
      {"cudaEventQuery", [&] { return cudaEventQuery(recorded_outside.event); }},
      {"cudaMalloc", [&] { return cudaMalloc(&block, 4); }},
      {"cudaFree", [&] { return cudaFree(nullptr); }},
      {"cudaMemcpy", [&] { return cudaMemcpy(device.data(), &pageable, 4, cudaMemcpyHostToDevice); }},
      {"cudaMemcpyAsync of pageable memory",
       [&] { return cudaMemcpyAsync(device.data(), &pageable, 4, cudaMemcpyHostToDevice, stream.stream); }},
  };
  for (const auto& [name, call] : calls) {
    SCOPED_TRACE(name);
    const auto [error, graph] = capture(stream.stream, [&, &refused = call] {
      EXPECT_EQ(refused(), cudaErrorStreamCaptureUnsupported);
      cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
      EXPECT_EQ(cudaStreamIsCapturing(stream.stream, &status), cudaSuccess);
      EXPECT_EQ(status, cudaStreamCaptureStatusInvalidated);
      EXPECT_EQ(add_on(stream.stream, device, 1), cudaErrorStreamCaptureInvalidated);
    });
    EXPECT_EQ(error, cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
  }
}

TEST(Capture, LeavesOtherThreadsAloneAsItsModeSays) {
  const OwnStream stream;
  const auto allocate_elsewhere = [] {
    cudaError_t result = cudaSuccess;
    std::thread([&] {
      void* block = nullptr;
      result = cudaMalloc(&block, 4);
      EXPECT_EQ(cudaFree(block), result);
    }).join();
    return result;
  };
  EXPECT_EQ(capture(stream.stream, [&] { EXPECT_EQ(allocate_elsewhere(), cudaErrorStreamCaptureUnsupported); }).first,
            cudaErrorStreamCaptureInvalidated);
  const auto [error, graph] = capture(
      stream.stream, [&] { EXPECT_EQ(allocate_elsewhere(), cudaSuccess); }, cudaStreamCaptureModeThreadLocal);
  EXPECT_EQ(error, cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  const auto [own_error, own_graph] = capture(stream.stream, [&] {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    void* block = nullptr;
    EXPECT_EQ(cudaMalloc(&block, 4), cudaSuccess);
    EXPECT_EQ(cudaFree(block), cudaSuccess);
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    EXPECT_EQ(mode, cudaStreamCaptureModeRelaxed);
  });
  EXPECT_EQ(own_error, cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(own_graph), cudaSuccess);
}

TEST(Capture, HoldsItsStreamsTogetherAndOthersOut) {
  const DeviceArray<int> sum(std::vector<int>{0});
  const OwnStream stream, other;
  const OwnEvent fork, outside;
  ASSERT_EQ(cudaEventRecord(outside.event, other.stream), cudaSuccess);
  EXPECT_EQ(capture(stream.stream,
                    [&] {
                      EXPECT_EQ(cudaEventRecord(fork.event, stream.stream), cudaSuccess);
                      EXPECT_EQ(cudaStreamWaitEvent(other.stream, fork.event), cudaSuccess);
                      EXPECT_EQ(add_on(other.stream, sum, 1), cudaSuccess);
                    })
                .first,
            cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(cudaEventSynchronize(fork.event), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaStreamWaitEvent(other.stream, fork.event), cudaErrorCapturedEvent);
  const auto [error, graph] = capture(stream.stream, [&] {
    EXPECT_EQ(cudaStreamWaitEvent(stream.stream, outside.event), cudaErrorStreamCaptureIsolation);
  });
  EXPECT_EQ(error, cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(sum.values()[0], 0);
}

TEST(Events, TellTheTimeBetweenThem) {
  const OwnEvent before, after;
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, before.event, after.event), cudaErrorInvalidResourceHandle);
  ASSERT_EQ(cudaEventRecord(before.event), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(after.event), cudaSuccess);
  ASSERT_EQ(cudaEventElapsedTime(&milliseconds, before.event, after.event), cudaSuccess);
  EXPECT_GE(milliseconds, 0);
}

TEST(Events, AreRecordedByEachLaunchOfAGraphThatHoldsThem) {
  const Deferred deferred;
  const OwnStream stream;
  const OwnEvent before, inside, other;
  float milliseconds = -1;
  EXPECT_EQ(cudaEventRecordWithFlags(inside.event, stream.stream, cudaEventRecordExternal), cudaErrorInvalidValue);
  const auto [error, graph] = capture(stream.stream, [&] {
    EXPECT_EQ(cudaEventRecordWithFlags(inside.event, stream.stream, cudaEventRecordExternal), cudaSuccess);
  });
  ASSERT_EQ(error, cudaSuccess);
  cudaGraphNode_t node = nullptr;
  size_t count = 1;
  ASSERT_EQ(cudaGraphGetNodes(graph, &node, &count), cudaSuccess);
  ASSERT_EQ(count, 1u);
  cudaGraphNodeType type{};
  EXPECT_EQ(cudaGraphNodeGetType(node, &type), cudaSuccess);
  EXPECT_EQ(type, cudaGraphNodeTypeEventRecord);
  cudaEvent_t event = nullptr;
  EXPECT_EQ(cudaGraphEventRecordNodeGetEvent(node, &event), cudaSuccess);
  EXPECT_EQ(event, inside.event);
  cudaGraphExec_t first = nullptr, second = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&first, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphEventRecordNodeSetEvent(node, other.event), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&second, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);

  ASSERT_EQ(cudaEventRecord(before.event, stream.stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream.stream), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, before.event, inside.event), cudaErrorInvalidResourceHandle);
  float last = 0;
  for (int launches = 0; launches < 2; ++launches) {
    ASSERT_EQ(cudaGraphLaunch(first, stream.stream), cudaSuccess);
    EXPECT_EQ(cudaEventElapsedTime(&milliseconds, before.event, inside.event), cudaErrorNotReady);
    ASSERT_EQ(cudaStreamSynchronize(stream.stream), cudaSuccess);
    EXPECT_EQ(cudaEventElapsedTime(&milliseconds, before.event, inside.event), cudaSuccess);
    EXPECT_GT(milliseconds, last);
    last = milliseconds;
  }
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, before.event, other.event), cudaErrorInvalidResourceHandle);
  ASSERT_EQ(cudaGraphLaunch(second, stream.stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream.stream), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, inside.event, other.event), cudaSuccess);
  for (cudaGraphExec_t exec : {first, second}) EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

}  // namespace
}  // namespace dtrain
