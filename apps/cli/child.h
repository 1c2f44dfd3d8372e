// Child: a process of this program's own command.
#pragma once

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace dtrain::cli {

struct ChildOptions {
  std::vector<std::string> argv{};
  std::vector<std::pair<std::string, std::string>> variables{};  // beside those of this process, or in their place
  sigset_t mask{};                                               // signals that it blocks
  int inherited = -1;                                            // a file that stays open in it
  std::vector<int> cores{};                                      // that it is bound to; none: as this process
};

// It is killed where the thread that started it ends. Its stderr goes through this process.
class Child {
 public:
  // Throws Error(Fault::resource) where the system has no room for another process.
  explicit Child(const ChildOptions& options);
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;

  pid_t pid() const { return pid_; }
  int lines() const { return lines_; }  // the file that its stderr comes from; -1 once that is at its end
  // Prints what has come of whole lines; the last of those that begin with "error: " is kept instead.
  void pass_on();
  const std::string& error() const { return error_; }

  bool lives() const { return lives_; }
  // False from its end on. The process is then no more.
  bool has_ended();
  // Once it has ended: its exit code, or 128 + the signal that ended it.
  int code() const { return signal_ != 0 ? 128 + signal_ : code_; }
  int signal() const { return signal_; }
  void kill(int number) const;

 private:
  void print_lines(bool all);

  pid_t pid_ = -1;
  int lines_ = -1;
  bool lives_ = false;
  int code_ = 0, signal_ = 0;
  std::string text_, error_;
};

}  // namespace dtrain::cli
