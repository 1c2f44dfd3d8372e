// BatchFeed: asynchronous upload of batches to the device, overlapped with earlier steps.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "dtrain/core/context.h"

namespace dtrain {

// A step reads fixed addresses, as captured steps must. Batches are uploaded on the copy stream into one of two staging
// buffers, then copied within the device, ordered with the steps. On a CPU batches are used in place.
class BatchFeed {
 public:
  // `batches`: per step, one per micro-step.
  explicit BatchFeed(Context& context, int batches = 1);
  ~BatchFeed();
  BatchFeed(const BatchFeed&) = delete;
  BatchFeed& operator=(const BatchFeed&) = delete;

  // Enqueues the upload of the next batch from host memory, preferably of Context::host_allocator(). Throws Error if
  // shapes or types differ from the first call. Returns the step's tensors: valid for work enqueued before the call
  // after the next `batches` - 1.
  //
  // `make`, for a GPU, enqueues on Stream::copy the work that writes the first tensor, before the others are copied;
  // the batch's first tensor then only gives shape and type.
  using Make = std::function<void(const Tensor& to)>;
  const std::vector<Tensor>& put(const std::vector<Tensor>& batch, const Make& make = {});
  // Waits until the tensors of the last put() may be changed: before a loader is asked for its next batch.
  void wait_until_copied() { context_->wait(copied_); }

 private:
  struct Staging {
    std::vector<Tensor> tensors;
    Event read;  // when the step's tensors have been copied from it
  };
  void allocate(const std::vector<Tensor>& batch);

  CheckedRef<Context> context_;
  std::array<Staging, 2> staging_;
  std::vector<std::vector<Tensor>> batches_;
  size_t count_ = 0;  // calls of put()
  Event copied_;
};

}  // namespace dtrain
