// Decoding of base64 (RFC 4648).
#pragma once

#include <string>
#include <string_view>

namespace dtrain::data::annotations {

// Skips line breaks, accepts a data: URI and missing padding. Throws Error(Fault::data) for any other character.
std::string decode_base64(std::string_view text);

}  // namespace dtrain::data::annotations
