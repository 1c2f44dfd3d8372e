// Starts the ranks: rendezvous address and environment of each.
#include "apps/cli/local_ranks.h"

#include <utility>

#include <fmt/format.h>

#include "apps/cli/children.h"
#include "apps/cli/environment.h"
#include "apps/cli/values.h"
#include "dtrain/core/error.h"
#include "libdtrain/distributed/tcp_socket.h"

namespace dtrain::cli {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

constexpr char kRankHere[] = "DTRAIN_LOCAL_RANK", kRanksHere[] = "DTRAIN_LOCAL_RANKS", kListener[] = "DTRAIN_LISTENER";

int number_in(const char* variable, int otherwise) {
  const char* text = environment()(variable);
  return text == nullptr ? otherwise : static_cast<int>(parse_number<int64_t>(text, kCount));
}

// Job secret, because other users of the machine can reach the port.
std::string draw_secret() {
  std::string text;
  for (const unsigned char byte : tcp::draw_nonce()) text += fmt::format("{:02x}", byte);
  return text;
}

void start(const LocalJob& job, const std::vector<std::string>& argv, Children& children) {
  const bool alone = job.count == job.size;
  Settings settings = {{kRanksHere, std::to_string(job.count)}, {"DTRAIN_SIZE", std::to_string(job.size)}};
  tcp::Socket listener;
  if (alone) {
    listener = tcp::listen_on("127.0.0.1", 0, "this program");
    const std::string secret = draw_secret();
    settings.insert(settings.end(), {{"DTRAIN_MASTER_ADDR", "127.0.0.1"},
                                     {"DTRAIN_MASTER_PORT", std::to_string(tcp::port_of(listener))},
                                     {"DTRAIN_JOB_ID", secret.substr(0, 8)},
                                     {"DTRAIN_JOB_SECRET", secret},
                                     {"DTRAIN_JOB_SECRET_FILE", ""},
                                     {"DTRAIN_BIND_ADDR", ""}});
  }
  for (int i = 0; i < job.count; ++i) {
    ChildOptions options{.argv = argv, .variables = settings};
    options.variables.emplace_back(kRankHere, std::to_string(i));
    options.variables.emplace_back("DTRAIN_RANK", std::to_string(job.first + i));
    if (alone && i == 0) {
      options.variables.emplace_back(kListener, std::to_string(listener.file()));
      options.inherited = listener.file();
    }
    if (!job.cores.empty()) options.cores = job.cores[static_cast<size_t>(i)];
    children.start(fmt::format("rank {}", job.first + i), std::move(options));
  }
}

}  // namespace

LocalRank local_rank() {
  const int count = number_in(kRanksHere, 0);
  return {.rank = count > 0 ? number_in(kRankHere, 0) : 0, .count = count};
}

int run_local_ranks(const LocalJob& job, const std::vector<std::string>& argv) {
  Children children(/*together=*/true);
  start(job, argv, children);
  return children.wait();
}

void take_listener(TcpOptions& tcp) { tcp.listener = number_in(kListener, -1); }

}  // namespace dtrain::cli
