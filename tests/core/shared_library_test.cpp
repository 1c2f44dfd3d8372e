#include "libdtrain/core/shared_library.h"

#include <zlib.h>

#include "tests/testing.h"

namespace dtrain {
namespace {

TEST(SharedLibrary, ItsFunctionsAreCalled) {
  const SharedLibrary library("zlib 1", "libz.so.1");
  decltype(::zlibVersion)* const version = library.symbol("zlibVersion");
  EXPECT_STREQ(version(), ZLIB_VERSION);
  EXPECT_NE(library.path().find("/libz.so.1"), std::string::npos) << library.path();
}

TEST(SharedLibrary, WhatIsMissingIsNamedWithWhatHelps) {
  expect_error([] { SharedLibrary("frobnicate 7", "libfrobnicate.so.7"); }, Fault::resource,
               "frobnicate 7 cannot be loaded: libfrobnicate.so.7: cannot open");
  expect_error([] { SharedLibrary("frobnicate 7", "libfrobnicate.so.7"); }, Fault::resource,
               "install frobnicate 7 or name its folder in LD_LIBRARY_PATH");
  const SharedLibrary library("zlib 1", "libz.so.1");
  expect_error([&] { library.symbol("frobnicate"); }, Fault::resource, "undefined symbol: frobnicate");
}

}  // namespace
}  // namespace dtrain
