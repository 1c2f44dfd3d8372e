// Child: a child process of the same or of another program.
#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <sched.h>
#include <sys/types.h>

namespace dtrain::cli {

// The cores as a mask for sched_setaffinity.
cpu_set_t set_of(const std::vector<int>& cores);

struct ChildOptions {
  std::vector<std::string> argv{};
  std::string program{};                                         // a path, or a name in PATH; empty: this program
  std::vector<std::pair<std::string, std::string>> variables{};  // added to this process' environment, overriding it
  sigset_t mask{};                                               // blocked signals
  int inherited = -1;                                            // file descriptor that it inherits
  std::vector<int> cores{};                                      // core affinity; empty: as this process
  // Signal to send for any stop request; the child then has its own session, which Ctrl-C does not reach. 0: it gets
  // the same signals as this process.
  int stop_signal = 0;
  // Called for each line of its stdout; none: it inherits stdout.
  std::function<void(const std::string& line)> on_line{};
};

// The child is killed when the thread that started it ends. Its stderr is forwarded by this process.
class Child {
 public:
  // Throws Error(Fault::resource) if the process cannot be started.
  explicit Child(const ChildOptions& options);
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;

  pid_t pid() const { return pid_; }
  // Read ends of its stderr and stdout; -1 after end of file.
  std::vector<int> files() const { return {errors_.file, output_.file}; }
  // Forwards complete lines; the last line of stderr that begins with "error: " is kept instead.
  void pass_on();
  const std::string& error() const { return error_; }

  bool lives() const { return lives_; }
  // False once the process has ended and has been reaped.
  bool has_ended();
  // After its end: exit code, or 128 + signal.
  int code() const { return signal_ != 0 ? 128 + signal_ : code_; }
  int signal() const { return signal_; }
  // Whether it is stopped by a signal.
  bool is_stopped() const;
  void kill(int number) const;
  // Forwards a stop request.
  void ask_to_stop(int number) const { kill(stop_signal_ != 0 ? stop_signal_ : number); }

 private:
  // A pipe from the child, with its incomplete last line.
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
