// SharedLibrary: a library that is loaded when it is first needed, so that what runs without a GPU does not wait for
// it, hold its memory, or miss it.
#pragma once

#include <string>

namespace dtrain::cuda {

// An address that becomes a pointer to whichever function it is taken for.
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

// It stays loaded until the process ends: these libraries do not bear to be unloaded.
class SharedLibrary {
 public:
  // Loads `file`, e.g. "libcudnn.so.9", from where the system looks for the libraries of this program, else from the
  // folders in which the build found the libraries for GPUs. Throws Error(Fault::resource) naming the `product`, e.g.
  // "cuDNN 9", that is to be installed.
  SharedLibrary(const std::string& product, const std::string& file);

  // Throws Error(Fault::resource) where the library has no such function.
  Symbol function(const char* name) const;
  // The file that was loaded.
  std::string path() const;

 private:
  void* handle_ = nullptr;
};

}  // namespace dtrain::cuda
