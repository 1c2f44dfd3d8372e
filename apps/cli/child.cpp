// fork, exec, and a pipe.
#include "apps/cli/child.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/cli/environment.h"
#include "apps/cli/messages.h"
#include "libdtrain/core/error.h"

namespace dtrain::cli {
namespace {

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry, name = text.substr(0, text.find('='));
    if (std::ranges::find(variables, name, &std::pair<std::string, std::string>::first) == variables.end())
      entries.push_back(text);
  }
  for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

cpu_set_t set_of(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  return set;
}

}  // namespace

Child::Child(const ChildOptions& options) {
  std::vector<std::string> argv = options.argv, variables = environment_with(options.variables);
  const std::vector<char*> arguments = pointers_to(argv), entries = pointers_to(variables);
  const std::string own = own_path(), path = own.empty() ? "/proc/self/exe" : own;
  const cpu_set_t cores = set_of(options.cores);
  const pid_t parent = getpid();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw Error(Fault::resource, concat("cannot make a pipe: ", strerror(errno)));
  pid_ = fork();
  if (pid_ == 0) {  // only what may be done beside other threads
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(128 + SIGKILL);
    pthread_sigmask(SIG_SETMASK, &options.mask, nullptr);
    if (!options.cores.empty()) sched_setaffinity(0, sizeof cores, &cores);
    if (options.inherited >= 0) fcntl(options.inherited, F_SETFD, 0);
    dup2(ends[1], STDERR_FILENO);
    execve(path.c_str(), arguments.data(), entries.data());
    _exit(static_cast<int>(Fault::resource));
  }
  const int error = errno;
  close(ends[1]);
  lines_ = ends[0];
  fcntl(lines_, F_SETFL, O_NONBLOCK);
  lives_ = pid_ > 0;
  if (!lives_) {
    close(lines_);
    throw Error(Fault::resource, concat("the system refuses another process: ", strerror(error)));
  }
}

Child::Child(Child&& other) noexcept
    : pid_(other.pid_),
      lines_(std::exchange(other.lines_, -1)),
      lives_(std::exchange(other.lives_, false)),
      code_(other.code_),
      signal_(other.signal_),
      text_(std::move(other.text_)),
      error_(std::move(other.error_)) {}

Child::~Child() {
  if (lines_ >= 0) close(lines_);
  if (lives_) waitpid(pid_, nullptr, 0);
}

void Child::pass_on() {
  char part[4096];
  while (lines_ >= 0) {
    const ssize_t came = read(lines_, part, sizeof part);
    if (came < 0 && errno == EINTR) continue;
    if (came < 0 && errno == EAGAIN) return print_lines(/*all=*/false);
    if (came <= 0) {
      print_lines(/*all=*/true);
      close(std::exchange(lines_, -1));
      return;
    }
    text_.append(part, static_cast<size_t>(came));
  }
}

void Child::print_lines(bool all) {
  if (all && !text_.empty() && !text_.ends_with('\n')) text_ += '\n';
  size_t begin = 0;
  for (size_t end; (end = text_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = text_.substr(begin, end + 1 - begin);
    if (line.starts_with("error: "))
      error_ = line;
    else
      print_on_stderr(line);
  }
  text_.erase(0, begin);
}

bool Child::has_ended() {
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
  lives_ = false;
  pass_on();
  if (WIFSIGNALED(status))
    signal_ = WTERMSIG(status);
  else
    code_ = WEXITSTATUS(status);
  return true;
}

void Child::kill(int number) const {
  if (lives_) ::kill(pid_, number);
}

}  // namespace dtrain::cli
