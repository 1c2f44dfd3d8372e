// How libjpeg's errors and warnings are met. Its errors leave by longjmp, so every call to it is made inside guarded(),
// whose frames hold nothing with a destructor; what it needs allocated is allocated outside.
#pragma once

#include <cstdio>
// jpeglib.h needs FILE.
#include <jpeglib.h>

#include <csetjmp>

namespace dtrain::data {

// libjpeg hands back a pointer to `base`, from which its callbacks reach the rest.
struct JpegErrors {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char error[JMSG_LENGTH_MAX];
  char warning[JMSG_LENGTH_MAX];
  char damage[JMSG_LENGTH_MAX];
};

JpegErrors& errors_of(j_common_ptr codec);

// Makes libjpeg report to `errors`, which begin empty: its first warning, and the first one that says that pixels are
// lost.
jpeg_error_mgr* install(JpegErrors& errors);

// Runs `step`, which calls libjpeg; false where that failed, with the reason in `errors`.
template <class Step>
bool guarded(JpegErrors& errors, Step step) {
  if (setjmp(errors.jump) != 0) return false;
  step();
  return true;
}

}  // namespace dtrain::data
