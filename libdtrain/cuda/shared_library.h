// SharedLibrary: a library loaded at first use (dlopen), so that runs without a GPU need neither its time, its memory
// nor the library itself.
#pragma once

#include <string>

namespace dtrain::cuda {

// Address that converts to any function pointer type.
class Symbol {
 public:
  explicit Symbol(void* address) : address_(address) {}
  template <class Function>
  operator Function*() const {
    return reinterpret_cast<Function*>(address_);
  }

 private:
  void* address_;
};

// Never unloaded: CUDA libraries do not support dlclose.
class SharedLibrary {
 public:
  // Loads `file`, e.g. "libcudnn.so.9", from the dynamic linker's search path, else from the folders where the build
  // found the CUDA libraries. Throws Error(Fault::resource) naming the `product` to install, e.g. "cuDNN 9".
  SharedLibrary(const std::string& product, const std::string& file);

  // Throws Error(Fault::resource) if the library has no such function.
  Symbol function(const char* name) const;
  // Path of the loaded file.
  std::string path() const;

 private:
  void* handle_ = nullptr;
};

}  // namespace dtrain::cuda
