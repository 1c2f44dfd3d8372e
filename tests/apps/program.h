// Runs a built program and captures its output.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dtrain {

struct ProgramResult {
  int code = -1;    // exit code, or 128 + the signal that ended it
  std::string out;  // stdout
  std::string err;  // stderr
};

struct ProgramOptions {
  std::vector<std::pair<std::string, std::string>> variables{};  // of its environment
  int out = -1;                                                  // its stdout; else the output is captured
};

// A running program, killed by the destructor.
class Program {
 public:
  // `name`: in the folder of built programs. Runs with one compute thread, because tests run in parallel, and without a
  // visible GPU unless the arguments contain --device=gpu.
  Program(const std::string& name, const std::vector<std::string>& arguments, const ProgramOptions& options = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  // Its stdout so far.
  std::string output() const;
  // Waits for `text` on stdout, up to four minutes. False if the program ends or the time is over first.
  bool wait_for(const std::string& text) const;
  ProgramResult finish();

 private:
  struct Files;
  std::unique_ptr<Files> files_;
  pid_t pid_ = -1;
};

ProgramResult run_program(const std::string& name, const std::vector<std::string>& arguments);

}  // namespace dtrain
