// Bucketer: sums the gradient arena over the ranks in pieces, each as soon as the backward pass has filled it.
#pragma once

#include <vector>

#include "libdtrain/distributed/communicator.h"
#include "libdtrain/distributed/ring.h"

namespace dtrain {

struct BucketOptions {
  int64_t bytes = 25 << 20;
  // What is filled last is sent when nothing is left to compute beside it: it should be short.
  int64_t last_bytes = 1 << 20;
};

// Where a parameter's gradient is in the arena, in elements; only that of a trained one is computed.
struct GradientRange {
  Range range{};
  bool trained = true;
};

// The arena [0, total) in elements, cut between parameters into buckets in the order in which a backward pass fills
// them: from its end to its beginning, as parameters are registered in the order of the forward pass. `parameters`: by
// number, in that order.
std::vector<Range> plan_buckets(const std::vector<GradientRange>& parameters, int64_t total,
                                const BucketOptions& options);

// The order of the messages is that of the buckets and nothing else, so that ranks need not agree on it: a bucket that
// is full early waits for those before it.
class Bucketer {
 public:
  // `arena`: the gradients, f32. `parameters`: by number; `ready` will be called for the trained ones.
  Bucketer(Communicator& communicator, const Tensor& arena, std::vector<GradientRange> parameters,
           const BucketOptions& options);

  // Another cut, between two steps.
  void plan(const BucketOptions& options);
  // A backward pass begins whose gradients are to be summed. `at_the_end`: all of them by finish(), in the same order.
  void begin(bool at_the_end = false);
  // The gradient of a parameter is complete.
  void ready(int parameter);
  // The last bucket goes with `tail`, tensors that are summed too and never rounded; the compute queue waits for all
  // of it.
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
  std::vector<size_t> bucket_of_;  // by parameter
  std::vector<int> counts_;        // trained parameters of each bucket
  std::vector<int> missing_;       // in this backward pass
  size_t sent_ = 0;
  bool at_the_end_ = false;
};

}  // namespace dtrain
