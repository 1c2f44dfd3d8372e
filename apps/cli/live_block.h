// A block of lines at the bottom of the terminal that is redrawn below the log.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace dtrain::cli {

// Draws on stdout, like the log, to keep their order. Draws nothing if stdout, or mpirun's stdout, is not a terminal:
// mpirun gives its ranks a pseudo-terminal in any case.
class LiveBlock {
 public:
  LiveBlock();
  // Removes the block.
  ~LiveBlock();
  LiveBlock(const LiveBlock&) = delete;
  LiveBlock& operator=(const LiveBlock&) = delete;

  // Whether there is a terminal, and whether it supports UTF-8.
  bool drawn() const { return terminal_ >= 0; }
  bool unicode() const { return unicode_; }
  // Columns of the terminal, which may change at any time.
  int columns() const;
  // Replaces the block by these lines, truncated to the terminal width.
  void show(const std::vector<std::string>& lines);
  // Removes the block, prints, and redraws it.
  void print_above(const std::function<void()>& print);

 private:
  void erase();
  void draw() const;

  const int terminal_;  // file descriptor of the terminal; -1: none
  const bool unicode_;
  std::vector<std::string> lines_;
};

// The first `columns` characters of UTF-8 text of single-width characters.
std::string cut_to(const std::string& text, int columns);

}  // namespace dtrain::cli
