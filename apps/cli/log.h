// The log of a program.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <utility>

#include "apps/cli/line_file.h"
#include "apps/cli/live_block.h"

namespace dtrain::cli {

// Flushes every line, so that the log of a killed job is complete. If the log cannot be written (full disk), prints one
// notice and continues.
class Log {
 public:
  // `notices`: stream for notices beside the log. `speaks`: false on all ranks but one, which print nothing.
  Log(std::ostream& out, std::ostream& notices, bool speaks = true) : out_(out), notices_(notices), speaks_(speaks) {}

  // Suppresses lines and keeps notices: another program's log format replaces the lines.
  void keep_lines_back() { has_lines_ = false; }

  // Translates all further notices, for front ends whose users know other names of flags.
  void translate_notices(std::function<std::string(const std::string&)> translate) {
    translate_ = std::move(translate);
  }

  // Prints extra lines as notices from now on: the log has the lines of another program alone.
  void print_extras_as_notices() { has_extras_ = false; }

  void line(const std::string& text);
  // A line that the other program does not print.
  void extra(const std::string& text) { has_extras_ ? line(text) : notice(text); }
  void notice(const std::string& message);

  // Also appends lines and notices of a speaking log to `file`, which must outlive the log. On failure, prints one
  // notice and continues without the file.
  void copy_to(LineFile& file) { copy_ = &file; }
  void end_copy() { copy_ = nullptr; }
  // Opens the file. Throws Error(Fault::config) like LineFile::open.
  void open_copy(const std::string& path);
  // Prints above `block` from now on, which must outlive the log; null: none.
  void print_above(LiveBlock* block) { block_ = block; }
  // Appends text that was printed elsewhere to the file only.
  void copy(const std::string& line);

 private:
  void print(const std::function<void()>& write);
  void write_copy(const std::function<void(LineFile&)>& write);

  std::ostream& out_;
  std::ostream& notices_;
  bool speaks_, has_lines_ = true, has_extras_ = true;
  bool lost_ = false;  // a line that could not be written
  LineFile* copy_ = nullptr;
  LiveBlock* block_ = nullptr;
  std::function<std::string(const std::string&)> translate_{};
};

}  // namespace dtrain::cli
