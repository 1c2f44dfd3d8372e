// Full mesh of connections between the ranks of a TCP group.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dtrain/distributed/group.h"
#include "libdtrain/distributed/tcp_socket.h"

namespace dtrain::tcp {

// Connection to another rank; without seals if the job has no secret, and within one machine.
struct PeerConnection {
  Socket socket{};
  std::optional<Seals> seals{};
};

// `reached`: address of this rank on its connection to rank 0. Each rank listens, publishes its address, connects to
// lower ranks and accepts higher ones, with mutual authentication. Returns connections by rank, none to itself.
// Collective. Throws Error(Fault::communication) if ranks cannot connect.
std::vector<PeerConnection> open_mesh(Group& group, const TcpOptions& tcp, const std::string& reached);

}  // namespace dtrain::tcp
