#include "apps/observers/progress_block.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace dtrain::observers {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(200);
constexpr size_t kMostSpeeds = 32;

// "2 h 05 min", "3 min 20 s", "12 s"
std::string duration(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole >= 3600) return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
  if (whole >= 60) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} s", whole);
}

std::string bytes(size_t count) {
  const double gib = static_cast<double>(count) / (1 << 30);
  return gib >= 1 ? fmt::format("{:.1f} GiB", gib) : fmt::format("{:.0f} MiB", 1024 * gib);
}

// Parts of a line by descending importance; parts that do not fit are dropped from the end.
std::string joined(const std::vector<std::string>& parts, int columns, size_t hidden_bytes = 0) {
  std::string line;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    const std::string longer = line.empty() ? part : line + "   " + part;
    if (!line.empty() && longer.size() > static_cast<size_t>(std::max(columns, 0)) + hidden_bytes) break;
    line = longer;
  }
  return line;
}

}  // namespace

ProgressBlock::ProgressBlock(ProgressBlockOptions options, cli::LiveBlock& block)
    : options_(std::move(options)), block_(block), figures_(options_.figures) {}

void ProgressBlock::begun(const Begun& event) {
  figures_.begun(event);
  last_.step = event.step;
  if (!event.complete) draw();
}

void ProgressBlock::stepping(uint64_t) { figures_.stepping(); }

void ProgressBlock::stepped(const Stepped& event) {
  last_ = event;
  activity_.clear();
  for (const auto& [name, value] : figures_.stepped(event)) {
    if (name == "images_per_sec") images_per_second_ = value;
    if (name == "data_wait_share") wait_share_ = value;
  }
  if (figures_.statistics().timing() && event.seconds > 0) {
    speeds_.push_back(options_.figures.speed.samples_per_step / event.seconds);
    if (speeds_.size() > kMostSpeeds) speeds_.pop_front();
  }
  if (Clock::now() - drawn_ >= kInterval) draw();
}

void ProgressBlock::evaluating(const Evaluating& event) {
  activity_ = event.batches == 0 ? "evaluating" : fmt::format("evaluating, batch {}", event.batches);
  if (event.batches == 0 || Clock::now() - drawn_ >= kInterval) draw();
}

void ProgressBlock::evaluated(const Evaluated& event) {
  activity_.clear();
  evaluation_ = fmt::format("evaluation at {}:", event.step);
  for (size_t i = 0; i < std::min<size_t>(event.result.values.size(), 2); ++i)
    evaluation_ += fmt::format(" {} {:.4g}", event.result.values[i].name, event.result.values[i].value);
  draw();
}

void ProgressBlock::saved(const Saved& event) {
  checkpoint_ = fmt::format("checkpoint at {}", event.report.step);
  draw();
}

void ProgressBlock::ended(const Ended&) { block_.show({}); }

void ProgressBlock::draw() {
  drawn_ = Clock::now();
  block_.show(lines(block_.columns() - 1));
}

std::string ProgressBlock::bar_line(int columns) const {
  const uint64_t total = options_.figures.total_steps;
  const double share = total > 0 ? static_cast<double>(last_.step) / static_cast<double>(total) : 0;
  const double left = figures_.statistics().seconds_until(total);
  const std::string before = fmt::format("{}  step {} of {}  ", options_.what, last_.step, total);
  const std::string after =
      fmt::format("  {:.1f} %{}", 100 * share, left > 0 ? fmt::format("  {} left", duration(left)) : "");
  const int width = std::clamp(columns - static_cast<int>(before.size() + after.size()) - 2, 0, 60);
  if (width < 5) return before + after.substr(2);
  const auto full = static_cast<size_t>(share * width + 0.5);
  return before + "[" + std::string(full, '#') + std::string(static_cast<size_t>(width) - full, '.') + "]" + after;
}

// Sparkline scaled from the lowest to the highest throughput.
std::string ProgressBlock::sparkline(size_t columns) const {
  static constexpr std::array<const char*, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::array<const char*, 8> kAscii = {"_", ".", ",", "-", "~", "=", "+", "^"};
  const size_t count = std::min(columns, speeds_.size());
  if (count < 2) return "";
  const auto begin = speeds_.end() - static_cast<int64_t>(count);
  const auto [low, high] = std::minmax_element(begin, speeds_.end());
  std::string line;
  for (auto speed = begin; speed != speeds_.end(); ++speed) {
    const double height = *high > *low ? (*speed - *low) / (*high - *low) : 0.5;
    line += (block_.unicode() ? kBlocks : kAscii)[static_cast<size_t>(7 * height + 0.5)];
  }
  return line;
}

std::vector<std::string> ProgressBlock::lines(int columns) const {
  const bool stepped = last_.seconds > 0;
  const std::string spark = sparkline(columns >= 120 ? kMostSpeeds : 10);
  const size_t hidden = block_.unicode() ? spark.size() * 2 / 3 : 0;  // a block character has three bytes
  std::vector<std::string> figures, state = {activity_};
  if (stepped) figures.push_back(fmt::format("loss {:.4g}", last_.loss));
  if (images_per_second_ > 0)
    figures.push_back(fmt::format("{:.1f} images/s{}", images_per_second_, spark.empty() ? "" : " " + spark));
  if (stepped) figures.push_back(fmt::format("rate {:.3g}", last_.learning_rate));
  if (images_per_second_ > 0) figures.push_back(fmt::format("data wait {:.1f} %", 100 * wait_share_));
  if (options_.memory) figures.push_back("memory " + bytes(options_.memory().peak_in_use));
  if (options_.ranks > 1) {
    state.push_back(fmt::format("{} ranks", options_.ranks));
    if (last_.slowest.factor > 0)
      state.push_back(fmt::format("slowest: rank {}, {:.2f} of the median", last_.slowest.rank, last_.slowest.factor));
  }
  state.push_back(evaluation_);
  state.push_back(checkpoint_);
  std::vector<std::string> all = {bar_line(columns), joined(figures, columns, hidden), joined(state, columns)};
  std::erase(all, "");
  return all;
}

}  // namespace dtrain::observers
