// Restricted reader of Python pickles, protocols 0 to 5 (Lib/pickletools.py of CPython documents the opcodes).
// It never executes anything: callables are names on an allow-list, and a call is a node with its arguments.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dtrain/io/input_file.h"

namespace dtrain::pickle {

// Bytes of a pickle: a whole file, or a string.
class Source {
 public:
  Source(const InputFile& file, uint64_t begin) : file_(&file), where_(file.path()), at_(begin), end_(file.size()) {}
  Source(std::string_view bytes, std::string where) : bytes_(bytes), where_(std::move(where)), end_(bytes.size()) {}

  const std::string& where() const { return where_; }  // for messages
  uint64_t at() const { return at_; }
  uint64_t left() const { return end_ - at_; }
  // The next `size` bytes, or a skip over them; they must not exceed left().
  void read(void* to, uint64_t size);
  void skip(uint64_t size) { at_ += size; }
  void read_at(uint64_t offset, void* to, uint64_t size) const;

 private:
  const InputFile* file_ = nullptr;
  std::string_view bytes_;
  std::string where_;
  uint64_t at_ = 0, end_ = 0;
  std::string window_;  // of a file
  uint64_t window_begin_ = 0;
};

using Id = uint32_t;  // index of a Value

enum class Kind : uint8_t {
  none,
  boolean,
  integer,
  real,
  text,
  bytes,
  list,
  tuple,
  set,
  dict,        // items: key, value, key, value ...
  global,      // text: "module.name"
  call,        // items: global, arguments (a tuple), state of BUILD if there is one
  persistent,  // items: the persistent id
};

struct Value {
  Kind kind = Kind::none;
  int64_t integer = 0;  // of boolean and integer; integers beyond 64 bits are text in hexadecimal
  double real = 0;
  std::string text{};            // of text, bytes and global, unless it is long
  uint64_t begin = 0, size = 0;  // of text and bytes: where they are in the source
  std::vector<Id> items{};
};

struct Limits {
  size_t values = 1'000'000;
  size_t text = size_t{1} << 20;  // bytes: longer text stays in the source
};

struct Pickle {
  std::vector<Value> values{};
  Id root = 0;

  const Value& operator[](Id id) const { return values[id]; }
  // Value of a text key of a dictionary; null if there is none.
  const Value* find(const Value& dict, std::string_view key) const;
};

// Reads one pickle, up to its STOP opcode. `allowed` are the globals that it may name. Dictionaries and sets that are
// made by a call (collections.OrderedDict) are Kind::dict and Kind::set. Linear time and memory. Throws Error(fault)
// with the offset for another global, an opcode that is not supported, or bytes that are no pickle.
Pickle read(Source& source, std::span<const std::string_view> allowed, Fault fault, const Limits& limits = {});

}  // namespace dtrain::pickle
