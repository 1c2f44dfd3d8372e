// BLAKE2b of libsodium, plain and keyed.
#include "libdtrain/distributed/tcp_seal.h"

#include <sodium.h>

#include "dtrain/core/error.h"

namespace dtrain::tcp {
namespace {

// `key` may be empty.
Bytes32 hash(std::string_view key, std::initializer_list<std::string_view> parts) {
  Bytes32 result{};
  crypto_generichash_state state;
  crypto_generichash_init(&state, reinterpret_cast<const unsigned char*>(key.data()), key.size(), result.size());
  for (const std::string_view part : parts)
    crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(part.data()), part.size());
  crypto_generichash_final(&state, result.data(), result.size());
  return result;
}

std::string_view view(const Bytes32& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace

Bytes32 key_of(const std::string& secret) { return hash({}, {"dtrain's job secret: ", secret}); }

Bytes32 draw_nonce() {
  if (sodium_init() < 0) throw Error(Fault::resource, "the system has no random numbers for libsodium");
  Bytes32 nonce{};
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

Seal::Seal(const Bytes32& job, bool from_rank_zero, const Bytes32& nonce_of_rank_zero, const Bytes32& nonce_of_rank)
    : key_(hash(view(job), {from_rank_zero ? "0" : "1", view(nonce_of_rank_zero), view(nonce_of_rank)})) {}

Bytes32 Seal::next(std::string_view header, std::string_view text) {
  const uint64_t number = count_++;
  return hash(view(key_), {{reinterpret_cast<const char*>(&number), sizeof number}, header, text});
}

bool same(const Bytes32& a, const Bytes32& b) { return sodium_memcmp(a.data(), b.data(), a.size()) == 0; }

}  // namespace dtrain::tcp
