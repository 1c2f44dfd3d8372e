#include "libdtrain/core/shared_library.h"

#include <dlfcn.h>
#include <link.h>

#include <sstream>

#include "dtrain/core/error.h"

namespace dtrain {

SharedLibrary::SharedLibrary(const std::string& product, const std::string& file, Scope scope) : scope_(scope) {
  // RTLD_LOCAL: symbols do not clash with those of other libraries.
  const int how = RTLD_NOW | (scope == Scope::global ? RTLD_GLOBAL : RTLD_LOCAL);
  handle_ = ::dlopen(file.c_str(), how);
  std::istringstream folders(DTRAIN_LIBRARY_FOLDERS);
  std::string reasons;
  for (std::string folder; !handle_ && std::getline(folders, folder, ':');) {
    reasons += concat(::dlerror(), "; ");
    handle_ = ::dlopen(concat(folder, "/", file).c_str(), how);
  }
  if (!handle_)
    throw Error(Fault::resource, concat(product, " cannot be loaded: ", reasons, ::dlerror(), "; install ", product,
                                        " or name its folder in LD_LIBRARY_PATH"));
}

Symbol SharedLibrary::symbol(const char* name) const {
  void* const address = ::dlsym(scope_ == Scope::global ? RTLD_DEFAULT : handle_, name);
  if (!address) throw Error(Fault::resource, concat(::dlerror(), "; install a newer version of it"));
  return Symbol(address);
}

std::string SharedLibrary::path() const {
  link_map* map = nullptr;
  return ::dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
}

}  // namespace dtrain
