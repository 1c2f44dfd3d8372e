// The secret that requests have to bear. It never comes by the command line, which every user of the machine can read.
#pragma once

#include <string>

#include "libdtrain/distributed/group.h"

namespace dtrain::serve {

// That of `file`, without the line break at its end, or of the variable DTRAIN_SERVE_TOKEN where no file is named;
// empty where there is neither. Throws Error for a file that others may read, and for a token that cannot stand in a
// header.
std::string read_token(const std::string& file, const Environment& environment);

}  // namespace dtrain::serve
