#include "apps/cli/launch.h"

#include <algorithm>
#include <cstdio>
#include <deque>

#include <fmt/format.h>

#include "apps/cli/children.h"
#include "apps/cli/environment.h"
#include "apps/cli/line_file.h"
#include "apps/cli/log.h"
#include "apps/cli/output.h"
#include "apps/cli/rank_table.h"
#include "dtrain/core/error.h"

namespace dtrain::cli {
namespace {

constexpr char kMpirun[] = "mpirun";

std::string quoted(const std::string& word) {
  constexpr char kPlain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./:,^@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string(R"('\'')") : std::string(1, c);
  return text + "'";
}

}  // namespace

std::string shown(const Launch& launch) {
  std::string text = launch.cores.empty() ? "" : fmt::format("taskset -c {} ", list_of(launch.cores));
  for (const std::string& word : launch.command) text += fmt::format("{} ", quoted(word));
  text.pop_back();
  return text;
}

int run(const std::vector<Launch>& launches, const std::string& combined,
        const std::function<void(size_t, const std::string&)>& on_line) {
  Log log(patient_stdout(), patient_stderr());
  std::deque<LineFile> files(launches.size() + 1);
  const auto open = [](LineFile& file, const std::string& path) {
    if (path.empty()) return;
    std::remove(path.c_str());
    file.open(path);
  };
  open(files.back(), combined);
  Children children(/*together=*/false);
  for (size_t i = 0; i < launches.size(); ++i) {
    const Launch& launch = launches[i];
    open(files[i], launch.log);
    const auto take = [&, i](const std::string& line) {
      log.line(line);
      if (!launches[i].log.empty()) files[i].append(line);
      if (!combined.empty()) files.back().append(line);
      on_line(i, line);
    };
    // mpirun kills its ranks on the other signals, and forwards this one.
    const int stop_signal = launch.command.front() == kMpirun ? SIGUSR1 : 0;
    children.start(launches.size() > 1 ? fmt::format("instance {}", i) : launch.command.front(),
                   {.argv = launch.command,
                    .program = launch.command.front(),
                    .cores = launch.cores,
                    .stop_signal = stop_signal,
                    .on_line = take});
  }
  return children.wait();
}

std::vector<std::string> mpirun(const MpiOptions& options) {
  std::vector<std::string> line = {kMpirun, "--allow-run-as-root", "-n", std::to_string(options.ranks)};
  if (options.hosts.empty()) {
    const int64_t cores = std::max<int64_t>(1, options.cores_of_socket / options.per_socket);
    line.insert(line.end(),
                {"--map-by",
                 options.per_socket == 1 ? "socket" : fmt::format("ppr:{}:socket:pe={}", options.per_socket, cores)});
    return line;
  }
  const auto hosts = static_cast<int64_t>(options.hosts.size());
  DT_CHECK(options.ranks % hosts == 0, options.ranks, " processes cannot be shared equally by ", hosts, " hosts");
  std::string slots;
  for (const std::string& host : options.hosts)
    slots += fmt::format("{}{}:{}", slots.empty() ? "" : ",", host, options.ranks / hosts);
  if (environment()("LD_LIBRARY_PATH") != nullptr) line.insert(line.end(), {"-x", "LD_LIBRARY_PATH"});
  line.insert(line.end(), {"-H", slots, "-mca", "pml", "ob1", "-mca", "btl", "^openib", "-mca", "btl_tcp_if_exclude",
                           "lo,docker0", "--bind-to", "none", "--map-by", "slot"});
  return line;
}

std::vector<std::vector<int>> limited(std::vector<std::vector<int>> sockets, int64_t socket, int64_t cores) {
  const auto count = static_cast<int64_t>(sockets.size());
  DT_CHECK(socket < count, "socket ", socket, ": this process may use ", count, ", numbered from 0");
  if (socket >= 0) sockets = {sockets[static_cast<size_t>(socket)]};
  size_t left = cores > 0 ? static_cast<size_t>(cores) : SIZE_MAX;
  for (std::vector<int>& part : sockets) {
    part.resize(std::min(part.size(), left));
    left -= part.size();
  }
  std::erase_if(sockets, [](const std::vector<int>& part) { return part.empty(); });
  return sockets;
}

std::vector<std::vector<int>> cores_of_instances(const std::vector<std::vector<int>>& sockets, size_t size,
                                                 std::vector<std::string>& notices) {
  if (size == 0) return sockets;
  std::vector<std::vector<int>> result;
  for (const std::vector<int>& socket : sockets) {
    auto at = socket.begin();
    for (; static_cast<size_t>(socket.end() - at) >= size; at += static_cast<std::ptrdiff_t>(size))
      result.emplace_back(at, at + static_cast<std::ptrdiff_t>(size));
    if (at != socket.end())
      notices.push_back(
          fmt::format("NOTE: Skipping remainder of {} cores for instance {}", socket.end() - at, result.size()));
  }
  DT_CHECK(!result.empty(), "no socket has ", size, " cores for an instance");
  return result;
}

}  // namespace dtrain::cli
