#include "tests/apps/program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {

struct Program::Files {
  TempDirectory directory;
  std::string out = (directory / "out").string(), err = (directory / "err").string();
};

Program::Program(const std::string& name, const std::vector<std::string>& arguments, const ProgramOptions& options)
    : files_(std::make_unique<Files>()) {
  const std::string path = (bin_dir() / name).string();
  std::vector<char*> argv{const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ > 0) return;
  const int out = options.out >= 0 ? options.out : open(files_->out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int err = open(files_->err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (out < 0 || err < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0) _exit(126);
  setenv("OMP_NUM_THREADS", "1", 1);
  if (std::find(arguments.begin(), arguments.end(), "--device=gpu") == arguments.end())
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
  setenv("XDG_CACHE_HOME", files_->directory.path().c_str(), 1);
  for (const auto& [variable, value] : options.variables) setenv(variable.c_str(), value.c_str(), 1);
  execv(path.c_str(), argv.data());
  _exit(127);
}

Program::~Program() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Program::signal(int number) const { kill(pid_, number); }

std::string Program::output() const { return std::filesystem::exists(files_->out) ? read_file(files_->out) : ""; }

bool Program::wait_for(const std::string& text) const {
  for (int i = 0; i < 24'000; ++i) {
    if (output().find(text) != std::string::npos) return true;
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    if (info.si_pid != 0) return output().find(text) != std::string::npos;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

ProgramResult Program::finish() {
  int status = 0;
  if (waitpid(pid_, &status, 0) != pid_) throw std::runtime_error("waitpid");
  pid_ = -1;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), output(), read_file(files_->err)};
}

ProgramResult run_program(const std::string& name, const std::vector<std::string>& arguments) {
  return Program(name, arguments).finish();
}

}  // namespace dtrain
