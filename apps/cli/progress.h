// Progress display: one updated line on a terminal, periodic plain lines elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace dtrain::cli {

class Progress {
 public:
  // `what`: the counted unit, e.g. "images". Prints on stderr.
  Progress(std::string what, uint64_t total);
  // Ends the terminal's line if finish() was not called, so that an error starts on a new line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Call with an increasing count; rate-limited.
  void update(uint64_t done);
  // Ends the line and returns the elapsed seconds.
  double finish();

 private:
  double elapsed() const;
  std::string line(uint64_t done, double seconds) const;

  std::string what_;
  uint64_t total_, done_ = 0;
  bool terminal_, line_open_ = false;
  std::chrono::steady_clock::time_point start_;
  double next_print_;
};

}  // namespace dtrain::cli
