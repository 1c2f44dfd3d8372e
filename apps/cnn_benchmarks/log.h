// The log of a run, line for line as tf_cnn_benchmarks prints it, so that what reads those logs reads ours.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "apps/cnn_benchmarks/plan.h"
#include "libdtrain/train/metrics.h"

namespace dtrain::cnn_benchmarks {

// Shares of correct answers.
struct Accuracy {
  double top_1 = 0, top_5 = 0;
  uint64_t examples = 0;
};

// Every line is flushed: what a job has printed is in its log even if it is killed. Where the log cannot be written (a
// full disk) one notice says so, and the run goes on.
class Log {
 public:
  // `notices` takes what tf_cnn_benchmarks has no line for and people should know. `speaks` false, for all ranks but
  // one: it keeps silent.
  Log(std::ostream& out, std::ostream& notices, bool speaks = true) : out_(out), notices_(notices), speaks_(speaks) {}

  void header(const Config& config, const Plan& plan, const std::string& version);
  void line(const std::string& text);
  void notice(const std::string& text);
  // What the context has to say, once.
  void notices(Context& context);
  // "Step  Img/sec  total_loss", with accuracies where they are shown.
  void columns(const std::string& loss, bool accuracies);
  void step(int64_t step, const Throughput& speed, double loss, const std::optional<Accuracy>& accuracy);
  void evaluation_step(int64_t step, double examples_per_sec);
  void accuracy(const Accuracy& accuracy);
  // The speed of the whole run between two rules.
  void total(double images_per_sec);

 private:
  std::ostream& out_;
  std::ostream& notices_;
  bool speaks_;
  bool lost_ = false;  // a line that could not be written
};

}  // namespace dtrain::cnn_benchmarks
