// Progress of a long job: one line that is rewritten on a terminal, a plain line now and then elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace dtrain::cli {

class Progress {
 public:
  // `what` names the things counted, e.g. "images". Prints on stderr.
  Progress(std::string what, uint64_t total);
  // Leaves the terminal's line where finish() was not reached, so that an error begins on the next.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // To be called with a growing count, as often as one likes.
  void update(uint64_t done);
  // Ends the line and returns the seconds since the beginning.
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
