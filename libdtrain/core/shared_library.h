// SharedLibrary: a library loaded at first use (dlopen), so that runs that do not call it need neither its time, its
// memory nor the library itself.
#pragma once

#include <string>

namespace dtrain {

// Address that converts to a pointer to any function or object.
class Symbol {
 public:
  explicit Symbol(void* address) : address_(address) {}
  template <class Type>
  operator Type*() const {
    return reinterpret_cast<Type*>(address_);
  }

 private:
  void* address_;
};

// Never unloaded: CUDA libraries and Open MPI do not support dlclose.
class SharedLibrary {
 public:
  // Whether other libraries see its symbols; `global` also finds functions that a preloaded library replaces.
  enum class Scope { local, global };

  // Loads `file`, e.g. "libcudnn.so.9", from the dynamic linker's search path, else from the folders where the build
  // found the CUDA libraries. Throws Error(Fault::resource) naming the `product` to install, e.g. "cuDNN 9".
  SharedLibrary(const std::string& product, const std::string& file, Scope scope = Scope::local);

  // Throws Error(Fault::resource) if the library has no such function or object.
  Symbol symbol(const char* name) const;
  // Path of the loaded file.
  std::string path() const;

 private:
  void* handle_ = nullptr;
  Scope scope_;
};

}  // namespace dtrain
