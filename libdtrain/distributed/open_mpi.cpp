#include "libdtrain/distributed/open_mpi.h"

#include <cstdlib>
#include <string_view>

#include <dlfcn.h>
#include <unistd.h>

#include "dtrain/core/error.h"

namespace dtrain::mpi {

const OpenMpi& open_mpi() try {
  static const OpenMpi loaded;
  return loaded;
} catch (const Error& error) {
  throw Error(error.fault(), concat(error.what(), "; or connect the ranks over TCP: set DTRAIN_MASTER_ADDR"));
}

void return_connection_errors() {
  open_mpi();
  const bool available = ::dlsym(RTLD_DEFAULT, "ompi_ftmpi_enabled") != nullptr;  // from 5.0, unless built without it
  const char* const pml = std::getenv("OMPI_MCA_pml");
  if (available && (pml == nullptr || std::string_view(pml) == "ob1") && ::access("/dev/infiniband", F_OK) != 0)
    setenv("OMPI_MCA_mpi_ft_enable", "1", 0);
}

}  // namespace dtrain::mpi
