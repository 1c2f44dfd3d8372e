// Runs a built program as users do, and catches what it prints.
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
  int out = -1;  // the descriptor that it has as stdout; else what it prints is caught
};

// A program under way; killed where the test forgets it.
class Program {
 public:
  // `name` in the folder of the built programs. One compute thread each: tests run side by side. Without --device=gpu
  // among its arguments it sees no GPU.
  Program(const std::string& name, const std::vector<std::string>& arguments, const ProgramOptions& options = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  // What it has printed on stdout so far.
  std::string output() const;
  // Waits for `text` on stdout, up to four minutes: a hang fails. False if the program ends or the time is over first.
  bool wait_for(const std::string& text) const;
  ProgramResult finish();

 private:
  struct Files;
  std::unique_ptr<Files> files_;
  pid_t pid_ = -1;
};

ProgramResult run_program(const std::string& name, const std::vector<std::string>& arguments);

}  // namespace dtrain
