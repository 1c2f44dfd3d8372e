// Live metrics: what a training does, for Prometheus to fetch over HTTP.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "apps/observers/step_figures.h"
#include "libdtrain/core/memory.h"

namespace dtrain::observers {

struct MetricsEndpointOptions {
  std::string address = "127.0.0.1";  // of an interface of this host, or 0.0.0.0 for all
  uint16_t port = 0;                  // 0: any that is free
  FigureOptions figures{};
  std::map<std::string, std::string> labels{};  // of dtrain_info: model, version, ...
  std::function<MemoryStats()> memory{};        // of the device
};

// Serves GET /metrics in Prometheus' text format, from threads of its own, from its construction on. Figures of steps
// are those of the last shown one; examples/monitoring lists all names.
class MetricsEndpoint final : public Observer {
 public:
  // Throws Error(Fault::resource) where it cannot listen there.
  explicit MetricsEndpoint(MetricsEndpointOptions options);
  ~MetricsEndpoint() override;

  // "http://127.0.0.1:9400/metrics"
  std::string url() const;

  void begun(const Begun& event) override;
  void stepping(uint64_t step) override;
  void stepped(const Stepped& event) override;
  void evaluated(const Evaluated& event) override;
  void saved(const Saved& event) override;
  void noticed(const Noticed& event) override;

 private:
  class Metrics;
  const std::string address_;
  std::function<MemoryStats()> memory_;
  StepFigures figures_;
  std::unique_ptr<Metrics> metrics_;
};

}  // namespace dtrain::observers
