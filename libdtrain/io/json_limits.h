// What JSON from outside may cost: it is looked through before a parser makes a tree of it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "libdtrain/core/error.h"

namespace dtrain {

// A tree takes about 75 bytes of memory per byte of text where each byte opens an array, and time in proportion to the
// square of an object's keys where their order is kept.
struct JsonLimits {
  size_t bytes = size_t{16} << 20;
  int depth = 16;          // of objects and arrays within one another
  size_t values = 10'000;  // strings, numbers, objects ... in all
};

// Throws Error(fault), its message beginning with `where`, for text that is not JSON or not UTF-8, or exceeds `limits`.
// Takes no memory in proportion to the text.
void check_json(std::string_view text, const std::string& where, Fault fault, const JsonLimits& limits = {});

}  // namespace dtrain
