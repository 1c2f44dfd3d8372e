// Transport over TCP, with one connection per pair of ranks.
#pragma once

#include <memory>
#include <vector>

#include "libdtrain/distributed/tcp_mesh.h"
#include "libdtrain/distributed/transport.h"

namespace dtrain::tcp {

// `links`: by rank, none to `rank` itself.
std::unique_ptr<host::Transport> make_transport(int rank, std::vector<Place> places, std::vector<PeerConnection> links);

}  // namespace dtrain::tcp
