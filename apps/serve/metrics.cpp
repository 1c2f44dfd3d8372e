#include "apps/serve/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace dtrain::serve {
namespace {

using Bounds = prometheus::Histogram::BucketBoundaries;

Bounds powers_of_two(double first, int count) {
  Bounds bounds;
  for (int i = 0; i < count; ++i, first *= 2) bounds.push_back(first);
  return bounds;
}

}  // namespace

struct Metrics::Families {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& answers =
      prometheus::BuildCounter().Name("dtrain_serve_responses_total").Help("Responses by status.").Register(registry);
  prometheus::Histogram& seconds = prometheus::BuildHistogram()
                                       .Name("dtrain_serve_request_seconds")
                                       .Help("Time from the head of a request to its response.")
                                       .Register(registry)
                                       .Add({}, powers_of_two(0.001, 16));
  prometheus::Histogram& batches = prometheus::BuildHistogram()
                                       .Name("dtrain_serve_batch_images")
                                       .Help("Images per batch.")
                                       .Register(registry)
                                       .Add({}, powers_of_two(1, 8));
  prometheus::Histogram& batch_seconds = prometheus::BuildHistogram()
                                             .Name("dtrain_serve_batch_seconds")
                                             .Help("Compute time of a batch.")
                                             .Register(registry)
                                             .Add({}, powers_of_two(0.001, 16));
  prometheus::Gauge& waiting =
      prometheus::BuildGauge().Name("dtrain_serve_waiting_images").Help("Queued images.").Register(registry).Add({});
  prometheus::Gauge& version = prometheus::BuildGauge()
                                   .Name("dtrain_serve_model_version")
                                   .Help("Step of the served checkpoint; 0: a file of weights; -1: none yet.")
                                   .Register(registry)
                                   .Add({});
  prometheus::Counter& failures = prometheus::BuildCounter()
                                      .Name("dtrain_serve_failed_checkpoints_total")
                                      .Help("Checkpoints that failed to load.")
                                      .Register(registry)
                                      .Add({});
};

Metrics::Metrics() : families_(std::make_unique<Families>()) { families_->version.Set(-1); }
Metrics::~Metrics() = default;

void Metrics::answered(int status, double seconds) {
  families_->answers.Add({{"status", std::to_string(status)}}).Increment();
  families_->seconds.Observe(seconds);
}

void Metrics::computed(size_t images, double seconds) {
  families_->batches.Observe(static_cast<double>(images));
  families_->batch_seconds.Observe(seconds);
}

void Metrics::reloaded(uint64_t version) { families_->version.Set(static_cast<double>(version)); }
void Metrics::failed_to_reload() { families_->failures.Increment(); }

std::string Metrics::text(size_t waiting) {
  families_->waiting.Set(static_cast<double>(waiting));
  return prometheus::TextSerializer().Serialize(families_->registry.Collect());
}

}  // namespace dtrain::serve
