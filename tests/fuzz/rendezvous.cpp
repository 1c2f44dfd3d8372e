// Messages of strangers to a rank of a TCP group, and messages of peers.
#include <sys/socket.h>

#include "libdtrain/distributed/tcp_socket.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  const std::string bytes = fuzz::text_of(data, size);
  std::vector<std::string> texts;
  if (tcp::split(bytes, texts) && tcp::join(texts) != bytes) std::abort();
  for (const char c : tcp::printable(bytes, 100))
    if (static_cast<unsigned char>(c) < ' ') std::abort();

  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
  tcp::Socket rank(ends[0]);
  const tcp::Socket stranger(ends[1]);
  std::string why;
  tcp::Message message;
  if (!rank.greet({}, /*is_rank_zero=*/size % 2 == 0, why)) std::abort();
  const bool sent = send(stranger.file(), data, size, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(size);
  shutdown(stranger.file(), SHUT_WR);
  for (tcp::Socket::Arrived arrived{}; sent && arrived != tcp::Socket::Arrived::gone;) {
    arrived = rank.receive(message, 1 << 16, why);
    if (arrived == tcp::Socket::Arrived::yes) std::abort();  // the key cannot be guessed
  }
  return 0;
}
