// Format and server are prometheus-cpp's.
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

#include "dtrain/core/error.h"

namespace dtrain::observers {
namespace {

using Labels = prometheus::Labels;

// Gauges of StepFigures values. Other values become the gauge dtrain_metric with the name as a label.
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
    {"images_per_sec", "dtrain_images_per_second", "Throughput, as in the log."},
    {"data_wait_ms", "dtrain_data_wait_seconds", "Time waiting for data, per step.", 1e-3},
    {"data_wait_share", "dtrain_data_wait_ratio", "Fraction of time spent waiting for data."},
    {"forward_ms", "dtrain_step_part_seconds", "Breakdown of the step time.", 1e-3, {{"part", "forward"}}},
    {"backward_ms", "dtrain_step_part_seconds", "Breakdown of the step time.", 1e-3, {{"part", "backward"}}},
    {"wait_for_sums_ms", "dtrain_step_part_seconds", "Breakdown of the step time.", 1e-3, {{"part", "wait_for_sums"}}},
    {"update_ms", "dtrain_step_part_seconds", "Breakdown of the step time.", 1e-3, {{"part", "update"}}},
    {"between_steps_ms", "dtrain_step_part_seconds", "Breakdown of the step time.", 1e-3, {{"part", "between_steps"}}},
    {"model_flops_per_sec", "dtrain_model_flops_per_second", "FLOP/s of the model, of one rank."},
    {"model_flops_utilization", "dtrain_model_flops_utilization_ratio",
     "Model FLOPs utilisation (MFU): fraction of the device's peak."},
    {"seconds_left", "dtrain_remaining_seconds", "Estimated remaining time, from the mean step time so far."},
    {"loss_scale", "dtrain_loss_scale", "Loss scale of fp16."},
    {"skipped_updates", "dtrain_skipped_updates", "Updates skipped so far to lower the loss scale."},
    {"slowest_rank", "dtrain_slowest_rank", "Slowest rank."},
    {"slowest_rank_factor", "dtrain_slowest_rank_ratio",
     "Step time of the slowest rank without waiting, relative to the median rank."},
    {"all_reduce_ms", "dtrain_all_reduce_seconds", "Time with all-reduces in progress, per step.", 1e-3},
    {"all_reduce_exposed_ms", "dtrain_all_reduce_exposed_seconds",
     "All-reduce time not overlapped by backward, per step.", 1e-3},
    {"all_reduce_bytes", "dtrain_all_reduce_bytes", "Bytes all-reduced per step."},
};

constexpr char kCheckpoints[] = "Checkpoints completed by this process.";
constexpr char kNotices[] = "Notices and warnings, such as a slow rank.";

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Histogram buckets from 1 ms to half an hour, doubling.
std::vector<double> step_buckets() {
  std::vector<double> bounds = {0.001};
  while (bounds.back() < 1000) bounds.push_back(2 * bounds.back());
  return bounds;
}

// Each connection occupies a thread until its request arrives. Idle connections are closed after 0.2 s, so that 224 at
// once delay Prometheus by 224 / 16 x 0.2 s = 2.8 s of its timeout of 10 s. More than 80 new connections per second
// block Prometheus.
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
  metrics_->set("dtrain_info", "Description of the run; always 1.", 1, labels);
}

MetricsEndpoint::~MetricsEndpoint() = default;

std::string MetricsEndpoint::url() const {
  return fmt::format("http://{}:{}/metrics", address_ == "0.0.0.0" ? "127.0.0.1" : address_, metrics_->port());
}

void MetricsEndpoint::begun(const Begun& event) {
  figures_.begun(event);
  const double now = unix_seconds();
  metrics_->set("dtrain_start_timestamp_seconds", "Start of training in this process; a change is a restart.", now);
  metrics_->set("dtrain_start_step", "Steps completed by earlier processes.", static_cast<double>(event.step));
  metrics_->set("dtrain_step", "Steps made.", static_cast<double>(event.step));
  metrics_->set("dtrain_steps", "Total steps of the run.", static_cast<double>(figures_.options().total_steps));
  metrics_->set("dtrain_last_step_timestamp_seconds", "Time of the last step, or of the start.", now);
  metrics_->set("dtrain_checkpoint_timestamp_seconds", "Time of the last complete checkpoint, or of the start.", now);
  metrics_->raise("dtrain_checkpoints_total", kCheckpoints, 0);
  metrics_->raise("dtrain_notices_total", kNotices, 0);
}

void MetricsEndpoint::stepping(uint64_t) { figures_.stepping(); }

void MetricsEndpoint::stepped(const Stepped& event) {
  metrics_->set("dtrain_step", "Steps made.", static_cast<double>(event.step));
  metrics_->set("dtrain_last_step_timestamp_seconds", "Time of the last step, or of the start.", unix_seconds());
  metrics_->observe("dtrain_step_duration_seconds", "Step time.", event.seconds);
  const MetricsFile::Fields fields = figures_.stepped(event);
  if (fields.empty()) return;
  for (const auto& [name, value] : fields) {
    const auto is_named = [&figure = name](const FigureGauge& gauge) { return gauge.figure == figure; };
    const FigureGauge* gauge = std::find_if(std::begin(kGauges), std::end(kGauges), is_named);
    if (gauge != std::end(kGauges))
      metrics_->set(gauge->name, gauge->help, gauge->scale * value, gauge->labels);
    else
      metrics_->set("dtrain_metric", "Metrics of the training batch, and parts of the loss.", value, {{"name", name}});
  }
  for (size_t rank = 0; rank < event.rank_seconds.size(); ++rank)
    metrics_->set("dtrain_rank_step_seconds", "Step time of each rank without waiting for others.",
                  event.rank_seconds[rank], {{"rank", fmt::format("{}", rank)}});
  metrics_->set("dtrain_resident_memory_bytes", "Memory of this process.", resident_bytes());
  if (!memory_) return;
  const MemoryStats memory = memory_();
  const char* const name = "dtrain_device_memory_bytes";
  const char* const help = "Device memory of tensors.";
  metrics_->set(name, help, static_cast<double>(memory.in_use), {{"state", "in_use"}});
  metrics_->set(name, help, static_cast<double>(memory.peak_in_use), {{"state", "peak_in_use"}});
  metrics_->set(name, help, static_cast<double>(memory.reserved), {{"state", "reserved"}});
}

void MetricsEndpoint::evaluated(const Evaluated& event) {
  for (const MetricValue& value : event.result.values)
    metrics_->set("dtrain_evaluation", "Results of the last evaluation.", value.value, {{"name", value.name}});
  metrics_->set("dtrain_evaluation_step", "Step of the last evaluation.", static_cast<double>(event.step));
  metrics_->set("dtrain_evaluation_duration_seconds", "Duration of the last evaluation.", event.result.seconds);
}

void MetricsEndpoint::saved(const Saved& event) {
  metrics_->set("dtrain_checkpoint_timestamp_seconds", "Time of the last complete checkpoint, or of the start.",
                unix_seconds());
  metrics_->set("dtrain_checkpoint_step", "Its step.", static_cast<double>(event.report.step));
  metrics_->set("dtrain_checkpoint_duration_seconds", "Duration of writing the last checkpoint.", event.report.seconds);
  metrics_->set("dtrain_checkpoint_bytes", "Its size.", static_cast<double>(event.report.bytes));
  metrics_->raise("dtrain_checkpoints_total", kCheckpoints);
}

void MetricsEndpoint::noticed(const Noticed&) { metrics_->raise("dtrain_notices_total", kNotices); }

}  // namespace dtrain::observers
