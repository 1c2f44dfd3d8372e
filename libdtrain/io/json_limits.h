// What JSON from outside may cost: it is looked through before a parser makes a tree of it.
#pragma once

#include <cstddef>
#include <cstdint>
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

// The whole number object[key] of an nlohmann object, whose own conversion has no defined result for one that does not
// fit. Throws Error(fault), its message beginning with `where`, for anything but a whole number from 0 to `most`, and
// what nlohmann throws where there is no such key.
template <class Json>
uint64_t count_at(const Json& object, const char* key, uint64_t most, const std::string& where, Fault fault) {
  const Json& value = object.at(key);
  if (!value.is_number_unsigned() || value.template get<uint64_t>() > most)
    throw Error(fault, concat(where, ": ", key, " is ", value.dump(), ", expected 0 to ", most));
  return value.template get<uint64_t>();
}

}  // namespace dtrain
