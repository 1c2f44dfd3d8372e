// Bucketer: all-reduce of the gradient arena in buckets, overlapped with the backward pass.
#pragma once

#include <vector>

#include "dtrain/distributed/communicator.h"
#include "dtrain/distributed/range.h"

namespace dtrain {

struct BucketOptions {
  int64_t bytes = 25 << 20;
  // The last bucket overlaps with no computation: keep it small.
  int64_t last_bytes = 1 << 20;
};

// Range of a parameter's gradient in the arena, in elements; frozen parameters have none computed.
struct GradientRange {
  Range range{};
  bool trained = true;
};

// Partitions the arena [0, total), in elements, into buckets at parameter boundaries, in backward order: from the end
// to the start, as parameters are registered in forward order. `parameters`: in registration order.
std::vector<Range> plan_buckets(const std::vector<GradientRange>& parameters, int64_t total,
                                const BucketOptions& options);

// Buckets are sent in fixed order, so that ranks need not agree on it: a bucket that is full early waits for its
// predecessors.
class Bucketer {
 public:
  // `arena`: gradients, f32. `parameters`: by index; ready() is called for the trainable ones.
  Bucketer(Communicator& communicator, const Tensor& arena, std::vector<GradientRange> parameters,
           const BucketOptions& options);

  // Changes the bucket sizes between steps.
  void plan(const BucketOptions& options);
  // Begins a backward pass whose gradients are reduced. `at_the_end`: without overlap, all in finish(), in the same
  // order.
  void begin(bool at_the_end = false);
  // The gradient of a parameter is complete.
  void ready(int parameter);
  // Sends the last bucket together with `tail`, tensors that are reduced in f32; the compute stream waits for all
  // buckets.
  void finish(std::vector<Tensor> tail);

  const std::vector<Range>& buckets() const { return buckets_; }
  Communicator& communicator() const { return communicator_; }

 private:
  void send_full();
  void send(size_t bucket, std::vector<Tensor> tail);

  Communicator& communicator_;
  Tensor arena_;
  std::vector<GradientRange> parameters_;
  std::vector<Range> buckets_;
  std::vector<size_t> bucket_of_;  // by parameter index
  std::vector<int> counts_;        // trainable parameters per bucket
  std::vector<int> missing_;       // incomplete gradients in this backward pass
  size_t sent_ = 0;
  bool at_the_end_ = false;
};

}  // namespace dtrain
