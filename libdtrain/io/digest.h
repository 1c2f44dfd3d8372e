// Digest: cryptographic hash for content addressing.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace dtrain {

// BLAKE2b-256.
class Digest {
 public:
  Digest();
  ~Digest();
  void add(const void* data, size_t size);
  // kDigits hexadecimal digits. Ends the digest: nothing may be added afterwards.
  std::string hex();
  static constexpr size_t kDigits = 64;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// SHA-256, for checksums that users compare with other tools'.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void add(const void* data, size_t size);
  // 64 hexadecimal digits. Ends the digest: nothing may be added afterwards.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain
