// Starting programs as a launcher does: under mpirun, or several of them bound to cores, with a log of each.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace dtrain::cli {

// A process to start.
struct Launch {
  std::vector<std::string> command{};  // the first: a path, or a name that is looked for in PATH
  std::vector<int> cores{};            // that it is bound to; none: as this process
  std::string log{};                   // a file that gets what it prints on stdout; empty: none
};

// As a shell would take it, with taskset for its cores.
std::string shown(const Launch& launch);

// Starts all of them, prints what they print and writes their logs anew, with that of all of them together in
// `combined` if that is not empty. `on_line` is given each line, with the number of the launch. Requests to stop are
// passed on. Returns the exit code as Children::wait() does. Throws Error(Fault::resource) where a log cannot be
// written.
int run(const std::vector<Launch>& launches, const std::string& combined,
        const std::function<void(size_t launch, const std::string& line)>& on_line);

struct MpiOptions {
  int64_t ranks = 1;
  int64_t per_socket = 1;            // on one host; bound to so many equal parts of its cores, where more than one
  int64_t cores_of_socket = 1;       // ditto
  std::vector<std::string> hosts{};  // as many ranks on each; none: this one
};
// The command that starts ranks, as Intel's launch_benchmark.py has it. Throws Error where hosts would have different
// numbers of ranks.
std::vector<std::string> mpirun(const MpiOptions& options);

// Those of one socket only, and so many at most; -1: no such limit. Throws Error for a socket that is not there.
std::vector<std::vector<int>> limited(std::vector<std::vector<int>> sockets, int64_t socket, int64_t cores);

// Runs of `size` cores of one socket each, or whole sockets where it is 0; a line in `notices` says what is left over.
// Throws Error where no socket has so many.
std::vector<std::vector<int>> cores_of_instances(const std::vector<std::vector<int>>& sockets, size_t size,
                                                 std::vector<std::string>& notices);

}  // namespace dtrain::cli
