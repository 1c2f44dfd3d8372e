// Rendezvous of a TCP group.
#pragma once

#include <vector>

#include "dtrain/distributed/group.h"
#include "libdtrain/distributed/tcp_socket.h"

namespace dtrain::tcp {

struct Rendezvous {
  std::vector<Socket> peers;  // rank 0: by rank, none to itself; others: one, to rank 0
  std::vector<Place> places;  // by rank
};

// Waits for all ranks, at most `limit` seconds. Rejects connections that do not authenticate as ranks of this job, and
// reports them to `warn`. Throws Error: Fault::communication if a rank is missing, Fault::config if rank 0 rejects this
// one.
Rendezvous rendezvous(const TcpOptions& tcp, double limit, const std::function<void(const std::string&)>& warn);

}  // namespace dtrain::tcp
