// Connections between all ranks of a group that talks by way of rank 0.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libdtrain/distributed/group.h"
#include "libdtrain/distributed/tcp_socket.h"

namespace dtrain::tcp {

// A connection to another rank; without seals where the job has no secret, and inside one machine.
struct Link {
  Socket socket{};
  std::optional<Seals> seals{};
};

// `reached`: the address of this rank on its connection to rank 0. Each rank listens, tells the others where, connects
// to the ranks below it, and lets in those above. Both sides of each connection prove that they know the secret.
// Returns the connections by rank, none to this one. Collective. Throws Error(Fault::communication) where ranks do not
// reach each other.
std::vector<Link> open_mesh(Group& group, const TcpOptions& tcp, const std::string& reached);

}  // namespace dtrain::tcp
