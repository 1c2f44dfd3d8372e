// Seal: the proof that a message was said by a rank of this job, on this connection, after those before it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace dtrain::tcp {

using Bytes32 = std::array<unsigned char, 32>;

// The key of a job, which follows from its secret: without one all jobs have the same.
Bytes32 key_of(const std::string& secret);
// Random numbers that no connection has had before. Throws Error(Fault::resource) where the system gives none.
Bytes32 draw_nonce();

// One direction of a connection. Its key follows from that of the job and from what each side has drawn for this
// connection alone, so that nothing can be used again on another one or be sent back to where it came from.
class Seal {
 public:
  Seal(const Bytes32& job, bool from_rank_zero, const Bytes32& nonce_of_rank_zero, const Bytes32& nonce_of_rank);
  // The tag of the next message, a keyed hash over its number in the connection, its header and its text.
  Bytes32 next(std::string_view header, std::string_view text);

 private:
  Bytes32 key_;
  uint64_t count_ = 0;
};

// Both directions of a connection, as one side of it has them.
struct Seals {
  Seal sends, receives;
};

// Compares in a time that does not depend on the bytes.
bool same(const Bytes32& a, const Bytes32& b);

}  // namespace dtrain::tcp
