#include "libdtrain/run/speeds.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace dtrain {

void RankSpeeds::add(double own, double idle) {
  own_ += own;
  idle_ += idle;
  ++steps_;
}

std::vector<std::string> RankSpeeds::compare() {
  const double own = own_ - std::min(idle_, compared_for_);
  const double mine = steps_ == 0 ? 0 : own / static_cast<double>(steps_);
  own_ = idle_ = 0;
  steps_ = 0;
  const auto began = std::chrono::steady_clock::now();
  std::vector<double> seconds;
  for (const std::string& text : group_.all_gather(fmt::format("{}", mine), "speed of the ranks"))
    seconds.push_back(std::stod(text));
  compared_for_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::vector<std::string> lines;
  for (const Straggler& slow : stragglers_.add(seconds))
    lines.push_back(
        fmt::format("{} is slow: it takes {:.1f} times as long as the median rank for its part of a step, "
                    "and all wait for it",
                    group_.name(slow.rank), slow.factor));
  return lines;
}

}  // namespace dtrain
