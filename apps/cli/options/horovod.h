// The variables by which existing jobs set Horovod up.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/cli/flags.h"

namespace dtrain::cli {

// All variables of this process whose names begin with HOROVOD_.
std::map<std::string, std::string> horovod_variables();

// Sets the flags that declare to be set by them, unless the command line has: that wins. Returns notices of what has
// been taken over and of what has no meaning here. Throws Error(Fault::config) for a value that is none, and where
// horovodrun has started several processes in a way (Gloo) that does not make them ranks.
std::vector<std::string> apply_horovod(const std::map<std::string, std::string>& variables, FlagSet& flags);

}  // namespace dtrain::cli
