// The lines that a program prints for people.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "apps/cli/line_file.h"

namespace dtrain::cli {

// Every line is flushed: what a job has printed is in its log even if it is killed. Where the log cannot be written (a
// full disk) one notice says so, and the run goes on.
class Log {
 public:
  // `notices` takes what people should know beside the log. `speaks` false, for all ranks but one: it keeps silent.
  Log(std::ostream& out, std::ostream& notices, bool speaks = true) : out_(out), notices_(notices), speaks_(speaks) {}

  // From now on it has notices only: another program's log tells what its lines would.
  void keep_lines_back() { has_lines_ = false; }

  void line(const std::string& text);
  void notice(const std::string& text);

  // From now on lines and notices of one that speaks are appended to `file`, too, which has to be there as long as the
  // log is used. Where that fails one notice says so, and the run goes on without it.
  void copy_to(LineFile& file) { copy_ = &file; }
  void end_copy() { copy_ = nullptr; }
  // Opens it. Throws Error(Fault::config) as LineFile::open.
  void open_copy(const std::string& path);
  // Appends what has been printed in another way, there alone.
  void copy(const std::string& line);

 private:
  void write_copy(const std::function<void(LineFile&)>& write);

  std::ostream& out_;
  std::ostream& notices_;
  bool speaks_, has_lines_ = true;
  bool lost_ = false;  // a line that could not be written
  LineFile* copy_ = nullptr;
};

}  // namespace dtrain::cli
