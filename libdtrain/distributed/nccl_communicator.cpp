// All-reduce and broadcast by NCCL, on the communication stream or in the compute stream; both can be captured in a
// CUDA graph.
#include <algorithm>
#include <deque>
#include <exception>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "libdtrain/cuda/wire_cast.h"
#include "libdtrain/distributed/nccl_watchdog.h"
#include "libdtrain/distributed/transports.h"

namespace dtrain {
namespace nccl {
namespace {

ncclDataType_t type_of(DType dtype) {
  return dtype == DType::f32 ? ncclFloat32 : dtype == DType::bf16 ? ncclBfloat16 : ncclFloat16;
}

// Rounded up to 16-byte accesses.
int64_t padded(int64_t count) { return (count + 7) / 8 * 8; }

std::string text_of_version(int version) {
  return concat(version / 10000, ".", version % 10000 / 100, ".", version % 100);
}

// Limit of blocks, and so multiprocessors, for overlapped all-reduce: 16 of 132. ResNet-50 moves 0.1 GB per step and
// needs no more; the kernels beside it do.
int blocks_beside(const cuda::Runtime& runtime) { return std::max(runtime.multiprocessors() / 8, 1); }

// Times between two points of a stream, read once both are past.
class Stopwatch {
 public:
  // Times begin() to end() on `stream`; adds to the fields that are not null.
  void begin(cudaStream_t stream) {
    begin_ = event();
    DT_CUDA(cudaEventRecord(begin_.get(), stream));
  }
  void end(cudaStream_t stream, std::vector<double CommunicatorTimes::*> parts) {
    spans_.push_back({std::move(begin_), event(), std::move(parts)});
    DT_CUDA(cudaEventRecord(spans_.back().end.get(), stream));
  }
  // Adds completed measurements to `times`.
  void collect(CommunicatorTimes& times) {
    for (; !spans_.empty() && is_past(spans_.front().end.get()); spans_.pop_front()) {
      Span& span = spans_.front();
      float milliseconds = 0;
      DT_CUDA(cudaEventElapsedTime(&milliseconds, span.begin.get(), span.end.get()));
      for (const auto part : span.parts) times.*part += static_cast<double>(milliseconds) / 1e3;
      spare_.push_back(std::move(span.begin));
      spare_.push_back(std::move(span.end));
    }
  }

 private:
  struct Span {
    cuda::CudaEvent begin, end;
    std::vector<double CommunicatorTimes::*> parts;
  };
  static bool is_past(cudaEvent_t event) {
    const cudaError_t status = cudaEventQuery(event);
    if (status == cudaErrorNotReady) return false;
    cuda::check(status, "cudaEventQuery");
    return true;
  }
  cuda::CudaEvent event() {
    if (spare_.empty()) return cuda::make_event(/*timed=*/true);
    cuda::CudaEvent last = std::move(spare_.back());
    spare_.pop_back();
    return last;
  }

  cuda::CudaEvent begin_;
  std::deque<Span> spans_;
  std::vector<cuda::CudaEvent> spare_;
};

class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(Group& group, Context& context, const CommunicatorOptions& options)
      : Communicator(group, options),
        context_(context),
        beside_(options.stream != Stream::compute),
        compute_(context.runtime().compute()),
        stream_(beside_ ? context.runtime().communication() : compute_),
        forked_(cuda::make_event()),
        joined_(cuda::make_event()),
        comm_(group, context.runtime(), options.algorithm, beside_ ? blocks_beside(context.runtime()) : 0),
        watchdog_(group, context, comm_) {
    // a single rank never waits and computes the same bits as without a communicator
    if (beside_ && group.size() > 1) context.runtime().hold_for_collectives(blocks_beside(context.runtime()));
  }
  // Waits for collectives on its memory before that is freed.
  ~NcclCommunicator() override {
    if (beside_) context_.runtime().hold_for_collectives(0);
    if (std::uncaught_exceptions() == 0) static_cast<void>(cudaStreamSynchronize(stream_));
  }

  void all_reduce(std::span<const Tensor> ranges, const std::string& what, bool exact) override;
  void broadcast(const Tensor& x, int root, const std::string& what) override;
  void join() override;
  void watch(const Event& end) override { watchdog_.add(end); }

  std::string describe() const override {
    return concat("NCCL ", text_of_version(cuda::nccl().version()), ", ", options_.algorithm, ", ",
                  name_of(options_.wire));
  }
  CommunicatorTimes take_times() override {
    stopwatch_.collect(times_);
    return std::exchange(times_, {});
  }

 private:
  // `work` enqueues collectives on stream_, ordered after the compute stream's current work.
  void beside(double bytes, const std::function<void()>& work);
  void sum_rounded(std::span<const Tensor> ranges, const std::string& what);
  void make_room(int64_t elements, const std::string& what);

  Context& context_;
  const bool beside_;  // on the communication stream
  const cudaStream_t compute_, stream_;
  cuda::CudaEvent forked_, joined_;
  bool under_way_ = false;
  Tensor scratch_;  // wire buffers for 16-bit wires
  CommunicatorTimes times_;
  Stopwatch stopwatch_;
  Comm comm_;
  GpuWatchdog watchdog_;
};

void NcclCommunicator::beside(double bytes, const std::function<void()>& work) {
  if (beside_) {
    DT_CUDA(cudaEventRecord(forked_.get(), compute_));
    DT_CUDA(cudaStreamWaitEvent(stream_, forked_.get(), 0));
    under_way_ = true;
  }
  // Captured steps are timed as a whole.
  if (context_.capturing()) return work();
  stopwatch_.begin(stream_);
  work();
  if (beside_)
    stopwatch_.end(stream_, {&CommunicatorTimes::busy});
  else
    stopwatch_.end(stream_, {&CommunicatorTimes::busy, &CommunicatorTimes::exposed});
  times_.bytes += bytes;
}

void NcclCommunicator::all_reduce(std::span<const Tensor> ranges, const std::string& what, bool exact) {
  double bytes = 0;
  for (const Tensor& range : ranges) {
    DT_CHECK(range.dtype() == DType::f32 && range.device() == context_.device(), "all_reduce of ", what,
             ": a tensor of ", range.dtype(), " on ", range.device(), ", expected f32 on ", context_.device());
    bytes += static_cast<double>(range.bytes());
  }
  if (bytes == 0) return;
  const bool rounds = !exact && options_.wire != DType::f32;
  if (rounds)
    make_room(std::accumulate(ranges.begin(), ranges.end(), int64_t{0},
                              [](int64_t sum, const Tensor& range) { return sum + padded(range.count()); }),
              what);
  beside(bytes, [&] {
    if (rounds) return sum_rounded(ranges, what);
    comm_.enqueue(what, [&](const cuda::Nccl& nccl, ncclComm_t comm) {
      for (const Tensor& range : ranges) {
        const ncclResult_t status = nccl.all_reduce(range.raw(), range.raw(), static_cast<size_t>(range.count()),
                                                    ncclFloat32, ncclSum, comm, stream_);
        if (status != ncclSuccess && status != ncclInProgress) return status;
      }
      return ncclSuccess;
    });
  });
}

// Ranges are padded to 16 bytes on the wire, so that the conversion is vectorised.
void NcclCommunicator::sum_rounded(std::span<const Tensor> ranges, const std::string& what) {
  std::vector<Tensor> parts;
  int64_t begin = 0;
  for (const Tensor& range : ranges) {
    parts.push_back(scratch_.slice(begin, begin + range.count()));
    cuda::round_to_wire(context_, stream_, range, parts.back());
    begin += padded(range.count());
  }
  comm_.enqueue(what, [&](const cuda::Nccl& nccl, ncclComm_t comm) {
    return nccl.all_reduce(scratch_.raw(), scratch_.raw(), static_cast<size_t>(begin), type_of(options_.wire), ncclSum,
                           comm, stream_);
  });
  for (size_t i = 0; i < parts.size(); ++i) cuda::copy_from_wire(context_, stream_, parts[i], ranges[i]);
}

// Zero-filled, so that padding never overflows.
void NcclCommunicator::make_room(int64_t elements, const std::string& what) {
  if (scratch_ && scratch_.count() >= elements) return;
  DT_CHECK(!context_.capturing(), "all_reduce of ", what, " while a step is captured: ", elements,
           " elements exceed all earlier all-reduces; run one of this size before the capture");
  DT_CUDA(cudaStreamSynchronize(stream_));  // the old buffer may still be in use
  scratch_ = context_.zeros({elements}, options_.wire);
}

void NcclCommunicator::broadcast(const Tensor& x, int root, const std::string& what) {
  DT_CHECK(x.device() == context_.device(), "broadcast of ", what, ": a tensor on ", x.device(), ", expected one on ",
           context_.device());
  DT_CHECK(0 <= root && root < size(), "broadcast of ", what, " from rank ", root, " of ", size());
  if (x.bytes() == 0) return;
  beside(0, [&] {
    comm_.enqueue(what, [&](const cuda::Nccl& nccl, ncclComm_t comm) {
      return nccl.broadcast(x.raw(), x.raw(), x.bytes(), ncclUint8, root, comm, stream_);
    });
  });
}

void NcclCommunicator::join() {
  if (!under_way_) return;
  under_way_ = false;
  DT_CUDA(cudaEventRecord(joined_.get(), stream_));
  const bool timed = !context_.capturing();
  if (timed) {
    stopwatch_.collect(times_);
    stopwatch_.begin(compute_);
  }
  DT_CUDA(cudaStreamWaitEvent(compute_, joined_.get(), 0));
  if (timed) stopwatch_.end(compute_, {&CommunicatorTimes::exposed});
}

}  // namespace
}  // namespace nccl

std::unique_ptr<Communicator> make_nccl_communicator(Group& group, Context& context,
                                                     const CommunicatorOptions& options) {
  DT_CHECK(!context.is_cpu(), "NCCL sums on GPUs, not on ", context.device());
  return std::make_unique<nccl::NcclCommunicator>(group, context, options);
}

}  // namespace dtrain
