// Process launcher: under mpirun, or several processes bound to cores, with a log of each.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace dtrain::cli {

// A process to start.
struct Launch {
  std::vector<std::string> command{};  // the first: a path, or a name in PATH
  std::vector<int> cores{};            // core affinity; empty: as this process
  std::string log{};                   // file for its stdout; empty: none
};

// As a shell command, with taskset for its cores.
std::string shown(const Launch& launch);

// Starts all processes, forwards their output and overwrites their logs, and the joint log `combined` if not empty.
// Calls `on_line` with each line and the index of the launch. Forwards stop requests. Returns the exit code like
// Children::wait(). Throws Error(Fault::resource) if a log cannot be written.
int run(const std::vector<Launch>& launches, const std::string& combined,
        const std::function<void(size_t launch, const std::string& line)>& on_line);

struct MpiOptions {
  int64_t ranks = 1;
  int64_t per_socket = 1;            // per host; if more than one, each is bound to an equal part of the cores
  int64_t cores_of_socket = 1;       // ditto
  std::vector<std::string> hosts{};  // hosts with equal numbers of ranks; empty: this host
};
// The mpirun command of Intel's launch_benchmark.py. Throws Error if hosts would have different numbers of ranks.
std::vector<std::string> mpirun(const MpiOptions& options);

// Cores of one socket, up to a maximum number; -1: no limit. Throws Error for a missing socket.
std::vector<std::vector<int>> limited(std::vector<std::vector<int>> sockets, int64_t socket, int64_t cores);

// Splits cores into groups of `size` within a socket, or into sockets if 0; a notice reports unused cores. Throws Error
// if no socket has enough cores.
std::vector<std::vector<int>> cores_of_instances(const std::vector<std::vector<int>>& sockets, size_t size,
                                                 std::vector<std::string>& notices);

}  // namespace dtrain::cli
