#include "libdtrain/io/digest.h"

#include <sodium.h>

#include <array>

namespace dtrain {

struct Digest::State {
  crypto_generichash_state hash;
};

Digest::Digest() : state_(std::make_unique<State>()) {
  crypto_generichash_init(&state_->hash, nullptr, 0, kDigits / 2);
}

Digest::~Digest() = default;

void Digest::add(const void* data, size_t size) {
  crypto_generichash_update(&state_->hash, static_cast<const unsigned char*>(data), size);
}

std::string Digest::hex() {
  std::array<unsigned char, kDigits / 2> bytes;
  crypto_generichash_final(&state_->hash, bytes.data(), bytes.size());
  std::array<char, kDigits + 1> digits;
  return sodium_bin2hex(digits.data(), digits.size(), bytes.data(), bytes.size());
}

struct Sha256::State {
  crypto_hash_sha256_state hash;
};

Sha256::Sha256() : state_(std::make_unique<State>()) { crypto_hash_sha256_init(&state_->hash); }

Sha256::~Sha256() = default;

void Sha256::add(const void* data, size_t size) {
  crypto_hash_sha256_update(&state_->hash, static_cast<const unsigned char*>(data), size);
}

std::string Sha256::hex() {
  std::array<unsigned char, crypto_hash_sha256_BYTES> bytes;
  crypto_hash_sha256_final(&state_->hash, bytes.data());
  std::array<char, 2 * crypto_hash_sha256_BYTES + 1> digits;
  return sodium_bin2hex(digits.data(), digits.size(), bytes.data(), bytes.size());
}

}  // namespace dtrain
