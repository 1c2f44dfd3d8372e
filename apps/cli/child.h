// Child: a process that this one starts, of its own program or of another.
#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <sched.h>
#include <sys/types.h>

namespace dtrain::cli {

// These cores, as sched_setaffinity takes them.
cpu_set_t set_of(const std::vector<int>& cores);

struct ChildOptions {
  std::vector<std::string> argv{};
  std::string program{};  // a path, or a name that is looked for in PATH; empty: the program of this process
  std::vector<std::pair<std::string, std::string>> variables{};  // beside those of this process, or in their place
  sigset_t mask{};                                               // signals that it blocks
  int inherited = -1;                                            // a file that stays open in it
  std::vector<int> cores{};                                      // that it is bound to; none: as this process
  // Is sent in place of whatever asks to stop; it then has a session of its own, which Ctrl-C does not reach. 0: it
  // hears the same signals as this process.
  int stop_signal = 0;
  // Takes each line of its stdout; none: it has that of this process.
  std::function<void(const std::string& line)> on_line{};
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
  // Those that its stderr and its stdout come from; -1 once they are at their end.
  std::vector<int> files() const { return {errors_.file, output_.file}; }
  // Prints or hands on what has come of whole lines; the last one of stderr that begins with "error: " is kept instead.
  void pass_on();
  const std::string& error() const { return error_; }

  bool lives() const { return lives_; }
  // False from its end on. The process is then no more.
  bool has_ended();
  // Once it has ended: its exit code, or 128 + the signal that ended it.
  int code() const { return signal_ != 0 ? 128 + signal_ : code_; }
  int signal() const { return signal_; }
  // It lives, and a signal keeps it from running.
  bool is_stopped() const;
  void kill(int number) const;
  // Passes on a request to stop.
  void ask_to_stop(int number) const { kill(stop_signal_ != 0 ? stop_signal_ : number); }

 private:
  // What comes from one of its files, and the part of it that is no whole line yet.
  struct OutputPipe {
    int file = -1;
    std::string text{};
  };
  static void read_lines(OutputPipe& stream, const std::function<void(const std::string&)>& take);
  void take_error(const std::string& line);

  pid_t pid_ = -1;
  OutputPipe errors_, output_;
  std::function<void(const std::string&)> on_line_;
  bool lives_ = false;
  int code_ = 0, signal_ = 0, stop_signal_ = 0;
  std::string error_;
};

}  // namespace dtrain::cli
