// Runs a built program as users do, and catches what it prints.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

namespace dtrain {

struct ProgramResult {
  int code = -1;    // exit code, or 128 + the signal that ended it
  std::string out;  // stdout
  std::string err;  // stderr
};

// A program under way; killed where the test forgets it.
class Program {
 public:
  // `name` in the folder of the built programs. One compute thread each: tests run side by side. Without --device=gpu
  // among its arguments it sees no GPU.
  Program(const std::string& name, const std::vector<std::string>& arguments);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  // What it has printed on stdout so far.
  std::string output() const;
  // Waits up to a minute for `text` on stdout; false if the program ends or the time is over first.
  bool wait_for(const std::string& text) const;
  ProgramResult finish();

 private:
  struct Files;
  std::unique_ptr<Files> files_;
  pid_t pid_ = -1;
};

ProgramResult run_program(const std::string& name, const std::vector<std::string>& arguments);

}  // namespace dtrain
