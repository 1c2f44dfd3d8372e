// BatchFeed: brings batches from host memory to where a step reads them, while earlier steps run.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "libdtrain/core/context.h"

namespace dtrain {

// What a step reads has fixed addresses, so that a captured step can be replayed. A batch goes through a copy queue of
// its own into one of two staging buffers, and from there, within the device and in the order of the steps, to where
// the step reads it. On a CPU a batch is read where it is.
class BatchFeed {
 public:
  // `batches`: those of one step, one per micro-step.
  explicit BatchFeed(Context& context, int batches = 1);
  ~BatchFeed();
  BatchFeed(const BatchFeed&) = delete;
  BatchFeed& operator=(const BatchFeed&) = delete;

  // Queues the copy of the next batch, whose tensors are in host memory, best that of Context::host_allocator(). Throws
  // Error where shapes or types are not those of the first call. Returns what the step reads: valid for what is queued
  // before the call after the next `batches` - 1.
  //
  // `make`, for a GPU, queues on Stream::copy what writes the first tensor, before the others are copied. The first one
  // of the batch then gives no more than shape and type.
  using Make = std::function<void(const Tensor& to)>;
  const std::vector<Tensor>& put(const std::vector<Tensor>& batch, const Make& make = {});
  // Waits until the tensors last put may be changed: before a loader is asked for its next batch.
  void wait_until_copied() { context_->wait(copied_); }

 private:
  struct Staging {
    std::vector<Tensor> tensors;
    Event read;  // by the copy to the step's tensors
  };
  void allocate(const std::vector<Tensor>& batch);

  CheckedRef<Context> context_;
  std::array<Staging, 2> staging_;
  std::vector<std::vector<Tensor>> batches_;
  size_t count_ = 0;  // calls of put
  Event copied_;
};

}  // namespace dtrain
