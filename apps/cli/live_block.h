// A few lines at the end of a terminal that are drawn anew again and again, below what is printed.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace dtrain::cli {

// Drawn on stdout, where the log is, so that the two keep their order; nothing is drawn where that is no terminal, or
// mpirun's is none, which gives its ranks a terminal of their own in any case.
class LiveBlock {
 public:
  LiveBlock();
  // Removes the block.
  ~LiveBlock();
  LiveBlock(const LiveBlock&) = delete;
  LiveBlock& operator=(const LiveBlock&) = delete;

  // Whether there is a terminal, and whether it shows more than ASCII.
  bool drawn() const { return terminal_ >= 0; }
  bool unicode() const { return unicode_; }
  // Columns of the terminal, which may change at any time.
  int columns() const;
  // Draws these lines in place of those before, cut to the width of the terminal.
  void show(const std::vector<std::string>& lines);
  // Removes the block, prints, and draws it again.
  void print_above(const std::function<void()>& print);

 private:
  void erase();
  void draw() const;

  const int terminal_;  // descriptor of what people look at; -1: there is none
  const bool unicode_;
  std::vector<std::string> lines_;
};

// The first `columns` characters of UTF-8 text whose characters are all of one column.
std::string cut_to(const std::string& text, int columns);

}  // namespace dtrain::cli
