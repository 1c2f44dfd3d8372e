// The features of the processor that select code.
#pragma once

#include <string>

namespace dtrain::info {

// Their names, with spaces between them; on other processors than x86-64 "none used".
std::string cpu_features();

}  // namespace dtrain::info
