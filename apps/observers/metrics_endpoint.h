// Live metrics of a training: a Prometheus endpoint.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "apps/observers/step_figures.h"
#include "dtrain/core/memory.h"

namespace dtrain::observers {

struct MetricsEndpointOptions {
  std::string address = "127.0.0.1";  // listen address; 0.0.0.0: all interfaces
  uint16_t port = 0;                  // 0: any free port
  FigureOptions figures{};
  std::map<std::string, std::string> labels{};  // labels of dtrain_info: model, version, ...
  std::function<MemoryStats()> memory{};        // peak FLOP/s of the device
};

// Serves GET /metrics in Prometheus' text format from its own threads, from construction on. Step metrics are those of
// the last displayed step; examples/monitoring lists all names.
class MetricsEndpoint final : public Observer {
 public:
  // Throws Error(Fault::resource) if it cannot listen.
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
