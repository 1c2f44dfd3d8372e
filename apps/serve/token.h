// Bearer token of requests. Never passed on the command line, which every user of the machine can read.
#pragma once

#include <string>

#include "dtrain/distributed/group.h"

namespace dtrain::serve {

// Token from `file`, without its final line break, or else from the variable DTRAIN_SERVE_TOKEN; empty without both.
// Throws Error for a file that others may read, and for a token that is invalid in a header.
std::string read_token(const std::string& file, const Environment& environment);

}  // namespace dtrain::serve
