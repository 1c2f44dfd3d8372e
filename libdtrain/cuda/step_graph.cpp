// Instances of a captured step and their events.
#include "libdtrain/cuda/step_graph.h"

#include <algorithm>
#include <map>
#include <utility>

#include "libdtrain/cuda/conditional_node.h"

namespace dtrain::cuda {
namespace {

std::vector<cudaGraphNode_t> nodes_of(cudaGraph_t graph) {
  size_t count = 0;
  DT_CUDA(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  DT_CUDA(cudaGraphGetNodes(graph, nodes.data(), &count));
  return nodes;
}

cudaGraphNodeType type_of(cudaGraphNode_t node) {
  cudaGraphNodeType type{};
  DT_CUDA(cudaGraphNodeGetType(node, &type));
  return type;
}

// Event-record node of `graph` for each of `events`.
std::vector<cudaGraphNode_t> nodes_that_record(const std::vector<CudaEvent>& events, cudaGraph_t graph) {
  std::vector<cudaGraphNode_t> found;
  std::map<cudaEvent_t, cudaGraphNode_t> by_event;
  for (cudaGraphNode_t node : nodes_of(graph)) {
    if (type_of(node) != cudaGraphNodeTypeEventRecord) continue;
    cudaEvent_t event = nullptr;
    DT_CUDA(cudaGraphEventRecordNodeGetEvent(node, &event));
    by_event[event] = node;
  }
  for (const CudaEvent& event : events) found.push_back(by_event.at(event.get()));
  return found;
}

bool has_conditional_work(cudaGraph_t graph) {
  return std::ranges::any_of(nodes_of(graph), [](cudaGraphNode_t node) { return is_conditional(type_of(node)); });
}

}  // namespace

StepGraph::StepGraph(Graph recorded, const std::vector<CudaEvent>& stamps, std::shared_ptr<CachingAllocator> memory)
    : memory_(std::move(memory)),
      graph_(std::move(recorded)),
      stamping_(nodes_that_record(stamps, graph_.get())),
      single_(has_conditional_work(graph_.get())) {
  add_instance();
}

bool StepGraph::Instance::is_free() const {
  return std::ranges::all_of(stamps, [](const auto& stamp) { return stamp.use_count() == 1; });
}

StepGraph::Instance& StepGraph::free_instance() {
  const auto spare = std::ranges::find_if(instances_, &Instance::is_free);
  if (spare != instances_.end()) return *spare;
  if (!single_) return add_instance();
  renew_stamps(instances_.front());
  return instances_.front();
}

void StepGraph::renew_stamps(Instance& instance) {
  for (size_t i = 0; i < stamping_.size(); ++i) {
    instance.stamps[i] = make_event(/*timed=*/true);
    DT_CUDA(cudaGraphExecEventRecordNodeSetEvent(instance.exec.get(), stamping_[i], instance.stamps[i].get()));
  }
}

StepGraph::Instance& StepGraph::add_instance() {
  Instance instance;
  for (cudaGraphNode_t node : stamping_) {
    instance.stamps.push_back(make_event(/*timed=*/true));
    DT_CUDA(cudaGraphEventRecordNodeSetEvent(node, instance.stamps.back().get()));
  }
  cudaGraphExec_t exec = nullptr;
  // Node priorities keep the communication stream's; the default is the launch stream's for all nodes.
  DT_CUDA(cudaGraphInstantiate(&exec, graph_.get(), cudaGraphInstantiateFlagUseNodePriority));
  instance.exec.reset(exec);
  return instances_.emplace_back(std::move(instance));
}

std::vector<Event> StepGraph::launch(cudaStream_t stream) {
  Instance& instance = free_instance();
  DT_CUDA(cudaGraphLaunch(instance.exec.get(), stream));
  std::vector<Event> events;
  for (const auto& stamp : instance.stamps) events.push_back({stamp, {}});
  return events;
}

// Thread-local mode: CUDA calls of input pipeline threads are allowed and not captured.
Capture::Capture(cudaStream_t stream) : stream_(stream) {
  DT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
}

Capture::~Capture() {
  if (!active_) return;
  cudaGraph_t graph = nullptr;
  static_cast<void>(cudaStreamEndCapture(stream_, &graph));
  if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
  static_cast<void>(cudaGetLastError());  // clears the error, else the next launch would report it
}

Graph Capture::end() {
  cudaGraph_t graph = nullptr;
  active_ = false;
  DT_CUDA(cudaStreamEndCapture(stream_, &graph));
  return Graph(graph);
}

}  // namespace dtrain::cuda
