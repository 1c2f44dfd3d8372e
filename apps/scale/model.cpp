#include "apps/scale/model.h"

#include <algorithm>
#include <cmath>

#include "dtrain/core/error.h"

namespace dtrain::scale {

std::vector<Bucket> make_buckets(const std::vector<LayerTime>& layers, const BucketOptions& options) {
  // The arena has layers in forward order.
  std::vector<GradientRange> gradients;
  int64_t end = 0;
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    const int64_t begin = end;
    end += std::llround(layer->gradient_bytes / sizeof(float));
    gradients.push_back({.range = {begin, end}});
  }
  std::vector<Bucket> buckets;
  auto layer = layers.begin();
  auto gradient = gradients.rbegin();
  double now = 0;
  for (const Range& range : plan_buckets(gradients, end, options)) {
    Bucket bucket;
    for (; layer != layers.end() && gradient->range.begin >= range.begin; ++layer, ++gradient) {
      bucket.bytes += layer->gradient_bytes;
      bucket.ready = now += layer->backward_seconds;
    }
    buckets.push_back(bucket);
  }
  return buckets;
}

double finish_of(const std::vector<Bucket>& buckets, const std::vector<double>& seconds) {
  double end = 0;
  for (size_t i = 0; i < buckets.size(); ++i) end = std::max(end, buckets[i].ready) + seconds[i];
  return end;
}

double expected_maximum(int64_t n) {
  // Trapezoidal rule: converges exponentially, because the integrand and all its derivatives vanish at both ends.
  constexpr double kEnd = 9, kStep = 1.0 / 64;
  double sum = 0;
  for (double x = -kEnd; x <= kEnd; x += kStep) {
    const double power = std::pow(0.5 * std::erfc(-x / std::sqrt(2.0)), static_cast<double>(n));
    sum += x > 0 ? 1 - power : x < 0 ? -power : 0.5 - power;
  }
  return sum * kStep;
}

Prediction predict(const DeviceStep& device, const ScaleOptions& options, int64_t gpus, double batch) {
  DT_CHECK(batch > 0, "a batch of ", batch, " images on each GPU");
  const double growth = (batch + options.half_batch) / (device.batch + options.half_batch);
  const double backward = growth * device.backward_seconds();
  Prediction result;
  result.gpus = gpus;
  result.hosts = hosts_of(options.network, gpus);
  result.batch = batch;
  result.compute = growth * device.forward_seconds + backward + device.update_seconds;

  std::vector<Bucket> buckets = make_buckets(device.layers, options.buckets);
  std::vector<double> seconds;
  double largest = 0;
  for (Bucket& bucket : buckets) {
    bucket.ready = options.overlap ? growth * bucket.ready : backward;
    const double bytes = bucket.bytes * options.wire_bytes / 4;
    seconds.push_back(all_reduce_seconds(options.network, gpus, bytes));
    result.communication += seconds.back();
    largest = std::max(largest, bytes);
  }
  result.largest = choose_algorithm(options.network, gpus, largest);
  result.exposed = std::max(0.0, finish_of(buckets, seconds) - backward);
  result.straggler = options.jitter * result.compute * expected_maximum(gpus);
  result.efficiency = batch / result.step() / (device.batch / device.seconds());
  return result;
}

}  // namespace dtrain::scale
