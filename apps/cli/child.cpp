// fork, exec, and pipes.
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
#include "dtrain/core/error.h"

namespace dtrain::cli {
namespace {

constexpr int kNotStarted = 127;  // shells' exit code for "command not found"

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

struct Pipe {
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) ends[0] = ends[1] = -1;
  }
  ~Pipe() {
    for (const int end : ends)
      if (end >= 0) close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  bool opened() const { return ends[0] >= 0; }
  int take_reading_end() {
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return std::exchange(ends[0], -1);
  }

  int ends[2];
};

}  // namespace

cpu_set_t set_of(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  return set;
}

Child::Child(const ChildOptions& options) : on_line_(options.on_line), stop_signal_(options.stop_signal) {
  std::vector<std::string> argv = options.argv, variables = environment_with(options.variables);
  const std::vector<char*> arguments = pointers_to(argv), entries = pointers_to(variables);
  const std::string own = own_path(), path = own.empty() ? "/proc/self/exe" : own;
  const cpu_set_t cores = set_of(options.cores);
  const pid_t parent = getpid();
  Pipe errors, output;
  if (!errors.opened() || !output.opened())
    throw Error(Fault::resource, concat("cannot make a pipe: ", strerror(errno)));
  pid_ = fork();
  if (pid_ == 0) {  // async-signal-safe calls only
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(128 + SIGKILL);
    pthread_sigmask(SIG_SETMASK, &options.mask, nullptr);
    if (stop_signal_ != 0) setsid();
    if (!options.cores.empty()) sched_setaffinity(0, sizeof cores, &cores);
    if (options.inherited >= 0) fcntl(options.inherited, F_SETFD, 0);
    dup2(errors.ends[1], STDERR_FILENO);
    if (on_line_) dup2(output.ends[1], STDOUT_FILENO);
    if (options.program.empty())
      execve(path.c_str(), arguments.data(), entries.data());
    else
      execvpe(options.program.c_str(), arguments.data(), entries.data());
    _exit(options.program.empty() ? static_cast<int>(Fault::resource) : kNotStarted);
  }
  if (pid_ < 0) throw Error(Fault::resource, concat("cannot start another process: ", strerror(errno)));
  lives_ = true;
  errors_.file = errors.take_reading_end();
  if (on_line_) output_.file = output.take_reading_end();
}

Child::Child(Child&& other) noexcept
    : pid_(other.pid_),
      errors_{std::exchange(other.errors_.file, -1), std::move(other.errors_.text)},
      output_{std::exchange(other.output_.file, -1), std::move(other.output_.text)},
      on_line_(std::move(other.on_line_)),
      lives_(std::exchange(other.lives_, false)),
      code_(other.code_),
      signal_(other.signal_),
      stop_signal_(other.stop_signal_),
      error_(std::move(other.error_)) {}

Child::~Child() {
  for (const int file : files())
    if (file >= 0) close(file);
  if (lives_) waitpid(pid_, nullptr, 0);
}

void Child::pass_on() {
  read_lines(errors_, [this](const std::string& line) { take_error(line); });
  read_lines(output_, on_line_);
}

void Child::take_error(const std::string& line) {
  if (line.starts_with("error: "))
    error_ = line + '\n';
  else
    print_on_stderr(line + '\n');
}

void Child::read_lines(OutputPipe& stream, const std::function<void(const std::string&)>& take) {
  char part[4096];
  bool over = false;
  while (stream.file >= 0 && !over) {
    const ssize_t came = read(stream.file, part, sizeof part);
    if (came < 0 && errno == EINTR) continue;
    if (came < 0 && errno == EAGAIN) break;
    over = came <= 0;
    if (!over) stream.text.append(part, static_cast<size_t>(came));
  }
  if (over) close(std::exchange(stream.file, -1));
  if (over && !stream.text.empty() && !stream.text.ends_with('\n')) stream.text += '\n';
  size_t begin = 0;
  for (size_t end; (end = stream.text.find('\n', begin)) != std::string::npos; begin = end + 1)
    take(stream.text.substr(begin, end - begin));
  stream.text.erase(0, begin);
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

bool Child::is_stopped() const {
  siginfo_t state{};
  return lives_ && waitid(P_PID, static_cast<id_t>(pid_), &state, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         state.si_pid == pid_;
}

void Child::kill(int number) const {
  if (lives_) ::kill(pid_, number);
}

}  // namespace dtrain::cli
