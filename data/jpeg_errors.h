// Error handling of libjpeg. Its errors longjmp, so every call is made inside guarded(), whose frames hold no objects
// with destructors; allocations happen outside.
#pragma once

#include <cstdio>
// jpeglib.h needs FILE.
#include <jpeglib.h>

#include <csetjmp>

namespace dtrain::data {

// libjpeg's callbacks get a pointer to `base`, from which they reach the other members.
struct JpegErrors {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char error[JMSG_LENGTH_MAX];
  char warning[JMSG_LENGTH_MAX];
  char damage[JMSG_LENGTH_MAX];
};

JpegErrors& errors_of(j_common_ptr codec);

// Makes libjpeg report to `errors`: the first warning, and the first warning about lost pixels. Clears both.
jpeg_error_mgr* install(JpegErrors& errors);

// Runs `step`, which calls libjpeg; returns false on an error, with the message in `errors`.
template <class Step>
bool guarded(JpegErrors& errors, Step step) {
  if (setjmp(errors.jump) != 0) return false;
  step();
  return true;
}

}  // namespace dtrain::data
