// Digest: names bytes by their content, so that nobody can make others of the same name.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace dtrain {

// BLAKE2b with 256 bits.
class Digest {
 public:
  Digest();
  ~Digest();
  void add(const void* data, size_t size);
  // Of all that was added, as kDigits hexadecimal digits. Nothing may be added afterwards.
  std::string hex();
  static constexpr size_t kDigits = 64;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain
