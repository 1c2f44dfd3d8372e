#include "libdtrain/distributed/open_mpi.h"

#include "dtrain/core/error.h"

namespace dtrain::mpi {

const OpenMpi& open_mpi() try {
  static const OpenMpi loaded;
  return loaded;
} catch (const Error& error) {
  throw Error(error.fault(), concat(error.what(), "; or connect the ranks over TCP: set DTRAIN_MASTER_ADDR"));
}

}  // namespace dtrain::mpi
