#include "libdtrain/io/remote/curl_library.h"

#include "dtrain/core/error.h"

namespace dtrain::remote {
namespace {

SharedLibrary load() try { return SharedLibrary("libcurl 4", "libcurl.so.4"); } catch (const Error& first) {
  try {
    return SharedLibrary("libcurl 4", "libcurl-gnutls.so.4");  // Debian's other flavour of the same interface
  } catch (const Error&) {
    throw Error(first.fault(), concat("addresses s3:// and https:// need libcurl: ", first.what()));
  }
}

}  // namespace

const CurlLibrary& curl() {
  static const CurlLibrary loaded = [] {
    const CurlLibrary library{load()};
    if (library.global_init(kGlobalAll) != kCurlOk)
      throw Error(Fault::resource, concat(library.library.path(), ": libcurl cannot be initialised"));
    return library;
  }();
  return loaded;
}

}  // namespace dtrain::remote
