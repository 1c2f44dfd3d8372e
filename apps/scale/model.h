// Step-time model of many GPUs: buckets, overlap, stragglers.
#pragma once

#include <vector>

#include "apps/scale/layers.h"
#include "apps/scale/network.h"
#include "dtrain/distributed/bucketer.h"

namespace dtrain::scale {

// A gradient bucket.
struct Bucket {
  double bytes = 0;  // in fp32
  double ready = 0;  // seconds from the start of backward until the bucket is complete
};

// Buckets like those of plan_buckets(), but divided between whole layers, in backward order.
std::vector<Bucket> make_buckets(const std::vector<LayerTime>& layers, const BucketOptions& options);

// End of the last bucket's all-reduce, from the start of backward. Buckets are reduced one at a time, in order, each
// once it is ready and the previous one is done.
double finish_of(const std::vector<Bucket>& buckets, const std::vector<double>& seconds);

// Expected maximum of `n` standard normal draws with distribution function F: the integral of 1 - F(x)^n over x > 0
// minus the integral of F(x)^n over x < 0.
double expected_maximum(int64_t n);

struct ScaleOptions {
  Network network;
  BucketOptions buckets;
  bool overlap = true;    // false: all-reduce after backward
  double wire_bytes = 4;  // per gradient element on the wire
  double jitter = 0.01;   // relative standard deviation of a rank's compute time
  double half_batch = 0;  // throughput at batch b is r b / (b + half_batch), so a step takes (b + half_batch) / r
};

struct Prediction {
  int64_t gpus = 1, hosts = 1;
  double batch = 0;                     // per GPU
  double compute = 0;                   // seconds: forward, backward, update
  double communication = 0;             // all-reduce time in seconds
  double exposed = 0;                   // all-reduce time not overlapped by backward
  double straggler = 0;                 // waiting for the slowest rank: jitter * compute * expected_maximum(gpus)
  double efficiency = 0;                // images per second and GPU, relative to the measured device
  Algorithm largest = Algorithm::ring;  // of the largest bucket

  double step() const { return compute + exposed + straggler; }
  double images_per_second() const { return batch * static_cast<double>(gpus) / step(); }
  double exposed_share() const { return exposed / step(); }
};

// Step of `device` on `gpus` GPUs with `batch` images each. Forward and backward scale with the batch as in
// ScaleOptions; the update is constant.
Prediction predict(const DeviceStep& device, const ScaleOptions& options, int64_t gpus, double batch);

}  // namespace dtrain::scale
