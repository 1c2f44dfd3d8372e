// Numbers, texts and bytes of a pickle.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libdtrain/io/pickle.h"

namespace dtrain::pickle {

// What is wrong with a pickle. read() adds file and offset.
struct Malformed {
  std::string what;
};

// Reads opcodes' arguments, and the values of opcodes that push one scalar. Throws Malformed.
class ScalarReader {
 public:
  ScalarReader(Source& source, const Limits& limits) : source_(source), limits_(limits) {}

  uint64_t at() const { return source_.at(); }
  // Little-endian.
  template <class T>
  T number() {
    need(sizeof(T));
    T value;
    source_.read(&value, sizeof value);
    return value;
  }
  // Text up to the end of the line.
  std::string line();
  uint64_t decimal_index();
  // Value of the opcode; nothing if it pushes no scalar.
  std::optional<Value> value_of(unsigned char op);

 private:
  void need(uint64_t size) const;
  std::optional<Value> number_of(unsigned char op);
  std::optional<Value> text_of(unsigned char op);
  Value text(Kind kind, uint64_t size);
  Value quoted();
  Value integer_of_bytes(uint64_t size);
  Value decimal();
  Value real_of_line();
  Value real();

  Source& source_;
  Limits limits_;
};

}  // namespace dtrain::pickle
