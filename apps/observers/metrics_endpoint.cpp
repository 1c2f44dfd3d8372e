// The format and the server are prometheus-cpp's.
#include "apps/observers/metrics_endpoint.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/exposer.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include "libdtrain/core/error.h"

namespace dtrain::observers {
namespace {

using Labels = prometheus::Labels;

// A figure of StepFigures as a gauge. What has no row here is a gauge dtrain_metric with its name as a label.
struct FigureGauge {
  std::string_view figure;
  const char *name, *help;
  double scale = 1;
  Labels labels{};
};
const FigureGauge kGauges[] = {
    {"loss", "dtrain_loss", "Mean loss over the global batch, without the L2 term."},
    {"total_loss", "dtrain_total_loss", "Loss with the L2 term of weight decay."},
    {"learning_rate", "dtrain_learning_rate", "Learning rate of the step."},
    {"images_per_sec", "dtrain_images_per_second", "Throughput as the log shows it."},
    {"data_wait_ms", "dtrain_data_wait_seconds", "Wait for data per step.", 1e-3},
    {"data_wait_share", "dtrain_data_wait_ratio", "Share of the time that was spent waiting for data."},
    {"forward_ms", "dtrain_step_part_seconds", "Parts of a step.", 1e-3, {{"part", "forward"}}},
    {"backward_ms", "dtrain_step_part_seconds", "Parts of a step.", 1e-3, {{"part", "backward"}}},
    {"wait_for_sums_ms", "dtrain_step_part_seconds", "Parts of a step.", 1e-3, {{"part", "wait_for_sums"}}},
    {"update_ms", "dtrain_step_part_seconds", "Parts of a step.", 1e-3, {{"part", "update"}}},
    {"between_steps_ms", "dtrain_step_part_seconds", "Parts of a step.", 1e-3, {{"part", "between_steps"}}},
    {"model_flops_per_sec", "dtrain_model_flops_per_second", "Operations of the model per second, of one rank."},
    {"model_flops_utilization", "dtrain_model_flops_utilization_ratio", "Share of the device's peak."},
    {"seconds_left", "dtrain_remaining_seconds", "Time until the last step, by the mean of those so far."},
    {"loss_scale", "dtrain_loss_scale", "Loss scale of fp16."},
    {"skipped_updates", "dtrain_skipped_updates", "Updates left out so far to lower the loss scale."},
    {"slowest_rank", "dtrain_slowest_rank", "The rank that the others wait for."},
    {"slowest_rank_factor", "dtrain_slowest_rank_ratio", "Its time for its own part of a step, by the ranks' median."},
    {"all_reduce_ms", "dtrain_all_reduce_seconds", "Time in which sums over ranks were under way, per step.", 1e-3},
    {"all_reduce_exposed_ms", "dtrain_all_reduce_exposed_seconds", "The part that backward did not hide.", 1e-3},
    {"all_reduce_bytes", "dtrain_all_reduce_bytes", "Bytes summed over ranks per step."},
};

constexpr char kCheckpoints[] = "Checkpoints that this process has completed.";
constexpr char kNotices[] = "Lines for people about what does not end the run, such as a slow rank.";

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// From a millisecond to half an hour, each twice the one before.
std::vector<double> step_buckets() {
  std::vector<double> bounds = {0.001};
  while (bounds.back() < 1000) bounds.push_back(2 * bounds.back());
  return bounds;
}

// Each connection takes a thread until its request is there. Connections that say nothing are closed after 0.2 s, so
// that 224 of them at once delay Prometheus by 224 / 16 x 0.2 s = 2.8 s of the 10 s that it waits. Who opens more than
// 80 in a second keeps Prometheus out for as long.
std::vector<std::string> options_of(const std::string& address, uint16_t port) {
  return {"listening_ports",    fmt::format("{}:{}", address, port),
          "num_threads",        "16",
          "request_timeout_ms", "200",
          "enable_keep_alive",  "no"};
}

}  // namespace

class MetricsEndpoint::Metrics {
 public:
  Metrics(const std::string& address, uint16_t port) try : exposer_(options_of(address, port)) {
    exposer_.RegisterCollectable(registry_);
  } catch (const std::exception&) {
    throw Error(Fault::resource,
                fmt::format("cannot serve metrics at {}:{}: another program listens there, or this host has no such "
                            "address; give another --metrics_port or --metrics_address",
                            address, port));
  }

  int port() const { return exposer_.GetListeningPorts().at(0); }

  void set(const std::string& name, const std::string& help, double value, const Labels& labels = {}) {
    prometheus::BuildGauge().Name(name).Help(help).Register(*registry_).Add(labels).Set(value);
  }
  void raise(const std::string& name, const std::string& help, double by = 1) {
    prometheus::BuildCounter().Name(name).Help(help).Register(*registry_).Add({}).Increment(by);
  }
  void observe(const std::string& name, const std::string& help, double value) {
    prometheus::BuildHistogram().Name(name).Help(help).Register(*registry_).Add({}, step_buckets()).Observe(value);
  }

 private:
  std::shared_ptr<prometheus::Registry> registry_ = std::make_shared<prometheus::Registry>();
  prometheus::Exposer exposer_;
};

MetricsEndpoint::MetricsEndpoint(MetricsEndpointOptions options)
    : address_(std::move(options.address)),
      memory_(std::move(options.memory)),
      figures_(std::move(options.figures)),
      metrics_(std::make_unique<Metrics>(address_, options.port)) {
  const Labels labels(options.labels.begin(), options.labels.end());
  metrics_->set("dtrain_info", "What is run; always 1.", 1, labels);
}

MetricsEndpoint::~MetricsEndpoint() = default;

std::string MetricsEndpoint::url() const {
  return fmt::format("http://{}:{}/metrics", address_ == "0.0.0.0" ? "127.0.0.1" : address_, metrics_->port());
}

void MetricsEndpoint::begun(const Begun& event) {
  figures_.begun(event);
  const double now = unix_seconds();
  metrics_->set("dtrain_start_timestamp_seconds", "When this process began to train: a change is a restart.", now);
  metrics_->set("dtrain_start_step", "Steps that had been made before.", static_cast<double>(event.step));
  metrics_->set("dtrain_step", "Steps made.", static_cast<double>(event.step));
  metrics_->set("dtrain_steps", "Steps of the whole run.", static_cast<double>(figures_.options().total_steps));
  metrics_->set("dtrain_last_step_timestamp_seconds", "When a step was last done, or the run began.", now);
  metrics_->set("dtrain_checkpoint_timestamp_seconds", "When a checkpoint was last complete, or the run began.", now);
  metrics_->raise("dtrain_checkpoints_total", kCheckpoints, 0);
  metrics_->raise("dtrain_notices_total", kNotices, 0);
}

void MetricsEndpoint::stepping(uint64_t) { figures_.stepping(); }

void MetricsEndpoint::stepped(const Stepped& event) {
  metrics_->set("dtrain_step", "Steps made.", static_cast<double>(event.step));
  metrics_->set("dtrain_last_step_timestamp_seconds", "When a step was last done, or the run began.", unix_seconds());
  metrics_->observe("dtrain_step_duration_seconds", "Time from step to step.", event.seconds);
  const MetricsFile::Fields fields = figures_.stepped(event);
  if (fields.empty()) return;
  for (const auto& [name, value] : fields) {
    const auto is_named = [&name = name](const FigureGauge& gauge) { return gauge.figure == name; };
    const FigureGauge* gauge = std::find_if(std::begin(kGauges), std::end(kGauges), is_named);
    if (gauge != std::end(kGauges))
      metrics_->set(gauge->name, gauge->help, gauge->scale * value, gauge->labels);
    else
      metrics_->set("dtrain_metric", "Metrics of the training batch, and parts of the loss.", value, {{"name", name}});
  }
  for (size_t rank = 0; rank < event.rank_seconds.size(); ++rank)
    metrics_->set("dtrain_rank_step_seconds", "Time of each rank for its own part of a step.", event.rank_seconds[rank],
                  {{"rank", fmt::format("{}", rank)}});
  metrics_->set("dtrain_resident_memory_bytes", "Memory of this process.", resident_bytes());
  if (!memory_) return;
  const MemoryStats memory = memory_();
  const char* const name = "dtrain_device_memory_bytes";
  const char* const help = "Memory of the device for tensors.";
  metrics_->set(name, help, static_cast<double>(memory.in_use), {{"state", "in_use"}});
  metrics_->set(name, help, static_cast<double>(memory.peak_in_use), {{"state", "peak_in_use"}});
  metrics_->set(name, help, static_cast<double>(memory.reserved), {{"state", "reserved"}});
}

void MetricsEndpoint::evaluated(const Evaluated& event) {
  for (const MetricValue& value : event.result.values)
    metrics_->set("dtrain_evaluation", "Results of the last evaluation.", value.value, {{"name", value.name}});
  metrics_->set("dtrain_evaluation_step", "The step that it is about.", static_cast<double>(event.step));
  metrics_->set("dtrain_evaluation_duration_seconds", "How long it took.", event.result.seconds);
}

void MetricsEndpoint::saved(const Saved& event) {
  metrics_->set("dtrain_checkpoint_timestamp_seconds", "When a checkpoint was last complete, or the run began.",
                unix_seconds());
  metrics_->set("dtrain_checkpoint_step", "Its step.", static_cast<double>(event.report.step));
  metrics_->set("dtrain_checkpoint_duration_seconds", "How long it took to write.", event.report.seconds);
  metrics_->set("dtrain_checkpoint_bytes", "Its size.", static_cast<double>(event.report.bytes));
  metrics_->raise("dtrain_checkpoints_total", kCheckpoints);
}

void MetricsEndpoint::noticed(const Noticed&) { metrics_->raise("dtrain_notices_total", kNotices); }

}  // namespace dtrain::observers
