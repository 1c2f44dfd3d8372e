// Formats: see Trainer.main_loop, ScalarPrinter, ProgressBar, ModelSaver and EstimatedTimeLeft in TensorPack.
#include "apps/observers/tensorpack_log.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace dtrain::observers {
namespace {

constexpr std::string_view kStart = "base.py:283", kFinish = "base.py:293", kEnd = "base.py:297",
                           kMonitor = "monitor.py:467", kSaver = "saver.py:82", kRestore = "sessinit.py:86",
                           kTimeLeft = "misc.py:109";

// "1 hour 2 minutes 3 seconds"; fractions of a second only below a minute.
std::string human_time(double seconds) {
  if (seconds < 60) return fmt::format("{:.3g} second{}", seconds, seconds > 1 ? "s" : "");
  const auto whole = static_cast<int64_t>(seconds);
  const std::array units = {std::pair(whole / 86'400, "day"), std::pair(whole / 3600 % 24, "hour"),
                            std::pair(whole / 60 % 60, "minute"), std::pair(whole % 60, "second")};
  std::string text;
  for (const auto& [count, unit] : units)
    if (count > 0) text += fmt::format("{}{} {}{}", text.empty() ? "" : " ", count, unit, count > 1 ? "s" : "");
  return text;
}

// "02:11" or "1:03:15".
std::string tqdm_time(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  const std::string tail = fmt::format("{:02}:{:02}", whole / 60 % 60, whole % 60);
  return whole >= 3600 ? fmt::format("{}:{}", whole / 3600, tail) : tail;
}

// Ten cells of tqdm's ASCII bar: the last one shows tenths of a cell.
std::string tqdm_bar(double fraction) {
  const auto tenths = static_cast<size_t>(std::clamp(fraction, 0.0, 1.0) * 100);
  std::string cells(tenths / 10, '#');
  if (tenths % 10 > 0) cells += static_cast<char>('0' + tenths % 10);
  cells.resize(10, ' ');
  return cells;
}

double seconds_since(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - time).count();
}

}  // namespace

std::string tensorpack_line(std::string_view source, std::string_view text) {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("[{:%m%d %H:%M:%S} @{}] {}", fmt::localtime(now), source, text);
}

void TensorPackLog::begun(const Begun& event) {
  if (!event.restored_from.empty())
    line(kRestore, fmt::format("Restoring checkpoint from {} ...", event.restored_from));
  done_ = event.step;
}

void TensorPackLog::stepping(uint64_t) {
  if (!under_way_) start_epoch();
}

void TensorPackLog::start_epoch() {
  under_way_ = true;
  line(kStart, fmt::format("Start Epoch {} ...", done_ / options_.period + 1));
  began_ = Clock::now();
}

void TensorPackLog::stepped(const Stepped& event) {
  means_.add(event);
  done_ = event.step;
  if (event.shown) progress(event.step);
  if (event.step % options_.period != 0) return;
  end_epoch(event.step);
  if (event.more_under_way) start_epoch();
}

void TensorPackLog::progress(uint64_t step) {
  const uint64_t done = (step - 1) % options_.period + 1;
  const double fraction = static_cast<double>(done) / static_cast<double>(options_.period);
  const double elapsed = seconds_since(began_), rate = static_cast<double>(means_.steps()) / elapsed;
  log_.line(fmt::format("{:3.0f}%|{}|{}/{}[{}<{},{:5.2f}it/s]", 100 * fraction, tqdm_bar(fraction), done,
                        options_.period, tqdm_time(elapsed),
                        tqdm_time(static_cast<double>(options_.period - done) / rate), rate));
}

void TensorPackLog::end_epoch(uint64_t step) {
  const double seconds = seconds_since(began_);
  const auto steps = static_cast<double>(means_.steps());
  line(kFinish, fmt::format("Epoch {} (global_step {}) finished, time:{}.", (step - 1) / options_.period + 1, step,
                            human_time(seconds)));
  if (step < options_.steps)
    line(kTimeLeft, "Estimated Time Left: " + human_time(seconds / steps * static_cast<double>(options_.steps - step)));
  std::vector<MetricValue> values = means_.take(options_.tags);
  values.push_back({"Throughput (samples/sec)", steps * options_.images / seconds});
  scalars(std::move(values));
  under_way_ = false;
}

void TensorPackLog::scalars(std::vector<MetricValue> values) {
  std::ranges::sort(values, {}, &MetricValue::name);
  for (const MetricValue& value : values) line(kMonitor, fmt::format("{}: {:.5g}", value.name, value.value));
}

void TensorPackLog::evaluated(const Evaluated& event) {
  scalars(event.result.values);
  if (!last_line_.empty()) line(kEnd, last_line_);
}

void TensorPackLog::saved(const Saved& event) { line(kSaver, fmt::format("Model saved to {}.", event.report.path)); }

// A last epoch of fewer steps ends, too.
void TensorPackLog::ended(const Ended& event) {
  if (event.outcome == Outcome::stopped) return;
  if (means_.steps() > 0) end_epoch(event.step);
  last_line_ =
      event.outcome == Outcome::enough ? "Target accuracy has been reached, stop....." : "Training has finished!";
  if (!options_.ends_with_evaluation) line(kEnd, last_line_);
}

}  // namespace dtrain::observers
