// Emulated conditional nodes: execution, order, and errors as in CUDA.
#include "tests/emulation/launcher.h"

namespace dtrain {
namespace {

__global__ void set_if_above(cudaGraphConditionalHandle handle, const int* value, int above) {
  cudaGraphSetConditional(handle, *value > above ? 1u : 0u);
}
__global__ void append_digit(int* p, int digit) { *p = 10 * *p + digit; }

// Appends 1, then 2 if *value is above 5, then 3.
class ConditionalNode : public testing::Test {
 protected:
  void SetUp() override {
    for (cudaStream_t* stream : {&stream_, &aside_})
      ASSERT_EQ(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override {
    for (cudaStream_t stream : {stream_, aside_}) EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }
  cudaError_t append(cudaStream_t stream, int digit) {
    return start(append_digit, {1, 1, 0, false, stream}, digits_.data(), digit);
  }
  cudaGraph_t capture(bool goes_on_after_the_node) {
    EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(append(stream_, 1), cudaSuccess);
    cudaStreamCaptureStatus status{};
    cudaGraph_t graph = nullptr;
    const cudaGraphNode_t* last = nullptr;
    size_t count = 0;
    EXPECT_EQ(cudaStreamGetCaptureInfo(stream_, &status, nullptr, &graph, &last, nullptr, &count), cudaSuccess);
    cudaGraphNodeParams parameters{};
    parameters.type = cudaGraphNodeTypeConditional;
    parameters.conditional.type = cudaGraphCondTypeIf;
    parameters.conditional.size = 1;
    EXPECT_EQ(cudaGraphConditionalHandleCreate(&parameters.conditional.handle, graph), cudaSuccess);
    EXPECT_EQ(start(set_if_above, {1, 1, 0, false, stream_}, parameters.conditional.handle, value_.data(), 5),
              cudaSuccess);
    EXPECT_EQ(cudaStreamGetCaptureInfo(stream_, &status, nullptr, &graph, &last, nullptr, &count), cudaSuccess);
    EXPECT_EQ(count, 1u);
    cudaGraphNode_t node = nullptr;
    EXPECT_EQ(cudaGraphAddNode(&node, graph, last, nullptr, count, &parameters), cudaSuccess);
    if (goes_on_after_the_node) {
      EXPECT_EQ(cudaStreamUpdateCaptureDependencies(stream_, &node, nullptr, 1, cudaStreamSetCaptureDependencies),
                cudaSuccess);
    }
    cudaGraph_t body = parameters.conditional.phGraph_out[0];
    EXPECT_EQ(cudaStreamBeginCaptureToGraph(aside_, body, nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal),
              cudaSuccess);
    EXPECT_EQ(append(aside_, 2), cudaSuccess);
    EXPECT_EQ(cudaStreamEndCapture(aside_, &body), cudaSuccess);
    EXPECT_EQ(body, parameters.conditional.phGraph_out[0]);
    EXPECT_EQ(append(stream_, 3), cudaSuccess);
    const cudaError_t error = cudaStreamEndCapture(stream_, &graph);
    EXPECT_EQ(error, goes_on_after_the_node ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
    return graph;
  }

  const DeviceArray<int> digits_{std::vector<int>{0}}, value_{std::vector<int>{0}};
  cudaStream_t stream_ = nullptr, aside_ = nullptr;
};

TEST_F(ConditionalNode, RunsItsBodyWhereTheGraphSaysSo) {
  cudaGraph_t graph = capture(true);
  cudaGraphExec_t exec = nullptr, second = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph), cudaSuccess);
  EXPECT_EQ(cudaGraphInstantiate(&second, graph), cudaErrorNotSupported) << "there may be one instance at a time";
  for (const int value : {0, 6, 5}) {
    ASSERT_EQ(cudaMemcpy(value_.data(), &value, sizeof value, cudaMemcpyHostToDevice), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  }
  EXPECT_EQ(digits_.values()[0], 13'123'13);
  ASSERT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphInstantiate(&second, graph), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(second), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(ConditionalNode, IsNotWaitedForUnlessTheStreamGoesOnAfterIt) { capture(false); }

}  // namespace
}  // namespace dtrain
