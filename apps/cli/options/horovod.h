// Environment variables of Horovod.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/cli/flags.h"

namespace dtrain::cli {

// All HOROVOD_* variables of this process.
std::map<std::string, std::string> horovod_variables();

// Sets the flags whose set_by() names them; the command line takes precedence. Returns notices about variables that
// were used or have no effect. Throws Error(Fault::config) for an invalid value, and if horovodrun started several
// processes with Gloo.
std::vector<std::string> apply_horovod(const std::map<std::string, std::string>& variables, FlagSet& flags);

}  // namespace dtrain::cli
