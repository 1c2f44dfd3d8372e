// Errors to exit codes.
#include "apps/cli/run_main.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "apps/cli/environment.h"
#include "apps/cli/messages.h"
#include "apps/cli/ranks.h"
#include "dtrain/core/error.h"
#include "dtrain/io/remote_path.h"
#include "dtrain/version.h"

namespace dtrain::cli {
namespace {

struct Failure {
  Fault fault = Fault::resource;
  std::string message = "out of memory";
};

Failure failure_of(const std::system_error& error) {
  const std::string reason = error.code().message();
  // Only thread creation fails in this way.
  if (error.code() == std::errc::resource_unavailable_try_again)
    return {Fault::resource,
            fmt::format(
                "cannot start another thread ({}): use fewer threads, or raise the limits `ulimit -u` and `ulimit -v`",
                reason)};
  const bool printing = std::string_view(error.what()).starts_with("cannot write to file");  // as fmt says
  return {Fault::resource, printing ? "standard output: " + reason : error.what()};
}

// Message and exit code of the current exception.
Failure current_failure() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.fault(), error.what()};
  } catch (const std::bad_alloc&) {
    return {};
  } catch (const std::length_error&) {
    return {Fault::resource, "out of memory: a requested size exceeds any machine's memory"};
  } catch (const std::system_error& error) {
    return failure_of(error);
  } catch (const std::exception& error) {
    return {Fault::config, fmt::format("internal error: {}", error.what())};
  } catch (...) {
    return {Fault::config, "internal error"};
  }
}

// Prints the message and returns the exit code.
int report_failure() noexcept {
  try {
    const auto [fault, message] = current_failure();
    if (ftrylockfile(stdout) == 0) {  // another thread may hold it
      std::fflush(stdout);
      funlockfile(stdout);
    }
    const std::string rank = rank_name();
    print_message("error", rank.empty() ? message : rank + ": " + message);
    return static_cast<int>(fault);
  } catch (...) {  // no memory for a longer message
    print_message("error", "out of memory");
    return static_cast<int>(Fault::resource);
  }
}

// Terminate handler: an exception left a thread of OpenMP or of a library, which may be out of memory.
[[noreturn]] void end_by_exception() noexcept {
  const std::exception_ptr exception = std::current_exception();
  if (!exception) std::abort();
  try {
    std::rethrow_exception(exception);
  } catch (...) {
    _exit(report_failure());
  }
}

// A full file or a closed pipe is an error of the write, not a signal that ends the process.
void ignore_signals_of_writing() {
  for (const int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_IGN);
}

// Otherwise the next opened file would get the number of a closed standard descriptor, and messages would be written
// into it.
void open_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) != fd)
      throw std::system_error(errno, std::generic_category(), "open /dev/null");
}

}  // namespace

int run_main(const std::function<int()>& body) {
  ignore_signals_of_writing();
  std::set_terminate(end_by_exception);
  try {
    open_standard_descriptors();
    set_remote_variables(environment());
    const int code = body();
    if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category(), "standard output");
    if (std::ferror(stdout) != 0 || !std::cout)
      throw Error(Fault::resource, "standard output: not all output could be written");
    return code;
  } catch (...) {
    return report_failure();
  }
}

std::string version() { return DTRAIN_VERSION; }

}  // namespace dtrain::cli
