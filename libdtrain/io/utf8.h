// UTF-8.
#pragma once

#include <string_view>

namespace dtrain {

// Whether the text is valid by RFC 3629: no over-long forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text);

}  // namespace dtrain
