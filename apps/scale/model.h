// The step on many GPUs: buckets, overlap, stragglers.
#pragma once

#include <vector>

#include "apps/scale/layers.h"
#include "apps/scale/network.h"
#include "libdtrain/distributed/bucketer.h"

namespace dtrain::scale {

// Gradients that are reduced together.
struct Bucket {
  double bytes = 0;  // in fp32
  double ready = 0;  // seconds from the beginning of backward until all of them are complete
};

// Those that plan_buckets() cuts a training's gradients into, here between whole layers, in the order of backward.
std::vector<Bucket> make_buckets(const std::vector<LayerTime>& layers, const BucketOptions& options);

// When the last bucket has been reduced, from the beginning of backward: buckets go one at a time, in order, each once
// it is ready and the one before is done.
double finish_of(const std::vector<Bucket>& buckets, const std::vector<double>& seconds);

// The mean of the largest of `n` draws from the normal distribution of mean 0 and deviation 1, with distribution
// function F: the integral of 1 - F(x)^n over x > 0 less that of F(x)^n over x < 0.
double expected_maximum(int64_t n);

struct ScaleOptions {
  Network network;
  BucketOptions buckets;
  bool overlap = true;    // false: reduced once backward has ended
  double wire_bytes = 4;  // per element of a gradient
  double jitter = 0.01;   // standard deviation of a rank's computing time, as a share of it
  double half_batch = 0;  // a GPU's rate at batch b is r b / (b + half_batch): a step takes (b + half_batch) / r
};

struct Prediction {
  int64_t gpus = 1, hosts = 1;
  double batch = 0;                     // per GPU
  double compute = 0;                   // seconds: forward, backward, update
  double communication = 0;             // seconds of all all-reduces
  double exposed = 0;                   // the part of them that backward does not hide
  double straggler = 0;                 // the wait for the slowest: jitter * compute * expected_maximum(gpus)
  double efficiency = 0;                // images per second and GPU, over those of the measured device
  Algorithm largest = Algorithm::ring;  // the largest bucket's

  double step() const { return compute + exposed + straggler; }
  double images_per_second() const { return batch * static_cast<double>(gpus) / step(); }
  double exposed_share() const { return exposed / step(); }
};

// The step of `device` on `gpus` with `batch` images on each. Forward and backward grow with the batch as said in
// ScaleOptions; the update does not.
Prediction predict(const DeviceStep& device, const ScaleOptions& options, int64_t gpus, double batch);

}  // namespace dtrain::scale
