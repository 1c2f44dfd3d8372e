// How the ranks of a TCP group come together.
#pragma once

#include <vector>

#include "libdtrain/distributed/group.h"
#include "libdtrain/distributed/tcp_socket.h"

namespace dtrain::tcp {

struct Meeting {
  std::vector<Socket> peers;  // on rank 0: by rank, none to itself; on the others: one, to rank 0
  std::vector<Place> places;  // by rank
};

// Waits for all ranks, up to `limit` seconds. Whoever does not speak as a rank of this job does is sent away, which
// `warn` is called for. Throws Error: Fault::communication where somebody does not come, Fault::config where rank 0
// sends this one away.
Meeting meet(const TcpOptions& tcp, double limit, const std::function<void(const std::string&)>& warn);

}  // namespace dtrain::tcp
