#include "libdtrain/run/speeds.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "libdtrain/distributed/read_texts.h"

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
  read_texts(group_, fmt::format("{}", mine), "speed of the ranks", [&](int, const std::string& text) {
    const auto one = number_in<double>(text);
    DT_CHECK(std::isfinite(one) && one >= 0, one, " s for a step");
    seconds.push_back(one);
  });
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
