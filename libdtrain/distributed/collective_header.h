// CollectiveHeader: description of a collective that ranks compare before its data.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "libdtrain/distributed/watchdog.h"

namespace dtrain::host {

// Sent to the next rank ahead of the data and compared with that rank's own.
struct CollectiveHeader {
  uint64_t sequence = 0, bytes = 0, step = 0, section = 0;
  char what[64] = "";

  explicit CollectiveHeader(const CollectiveId& id = {})
      : sequence(id.sequence), bytes(id.bytes), step(id.step), section(static_cast<uint64_t>(id.section)) {
    std::strncpy(what, id.what.c_str(), sizeof what - 1);
  }
  CollectiveId id(const std::string& lane) const {
    return {lane, sequence, std::string(what, strnlen(what, sizeof what)), bytes, static_cast<Section>(section), step};
  }
};

}  // namespace dtrain::host
