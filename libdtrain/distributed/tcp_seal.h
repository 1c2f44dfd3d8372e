// Seal: message authentication codes of a connection (BLAKE2b, keyed, with sequence numbers).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace dtrain::tcp {

using Bytes32 = std::array<unsigned char, 32>;

// Key derived from the job's secret; without a secret the same for all jobs.
Bytes32 key_of(const std::string& secret);
// Unique random nonce. Throws Error(Fault::resource) if the system has no entropy.
Bytes32 draw_nonce();

// One direction of a connection. Its key derives from the job's key and both sides' nonces, which prevents replay and
// reflection.
class Seal {
 public:
  Seal(const Bytes32& job, bool from_rank_zero, const Bytes32& nonce_of_rank_zero, const Bytes32& nonce_of_rank);
  // Tag of the next message: a MAC over its sequence number, header and text.
  Bytes32 next(std::string_view header, std::string_view text);

 private:
  Bytes32 key_;
  uint64_t count_ = 0;
};

// Both directions of a connection, from one side's view.
struct Seals {
  Seal sends, receives;
};

// Constant-time comparison.
bool same(const Bytes32& a, const Bytes32& b);

}  // namespace dtrain::tcp
