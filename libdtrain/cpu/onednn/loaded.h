// The oneDNN library that the engine uses. In portable builds it is linked into the engine, so programs ask here.
#pragma once

#include <string>

namespace dtrain::cpu {

struct LoadedOnednn {
  std::string version;       // e.g. "3.7.2"
  const void* code_address;  // of a function of the library, for dladdr
};

LoadedOnednn loaded_onednn();

}  // namespace dtrain::cpu
