#include "data/jpeg_errors.h"

// Requires jpeglib.h.
#include <jerror.h>

namespace dtrain::data {
namespace {

[[noreturn]] void leave(j_common_ptr codec) {
  JpegErrors& errors = errors_of(codec);
  codec->err->format_message(codec, errors.error);
  std::longjmp(errors.jump, 1);
}

// Whether a warning means lost pixels. Extraneous bytes before a marker, which many cameras and web sites write,
// usually do not (though a corrupt, shortened scan has them too); neither do odd numbers in JFIF and Adobe headers.
bool loses_pixels(int warning) {
  return warning != JWRN_EXTRANEOUS_DATA && warning != JWRN_JFIF_MAJOR && warning != JWRN_ADOBE_XFORM;
}

// Level -1: recoverable corrupt data; higher levels are traces.
void note(j_common_ptr codec, int level) {
  if (level >= 0) return;
  JpegErrors& errors = errors_of(codec);
  if (codec->err->num_warnings++ == 0) codec->err->format_message(codec, errors.warning);
  if (errors.damage[0] == '\0' && loses_pixels(codec->err->msg_code)) codec->err->format_message(codec, errors.damage);
}

}  // namespace

JpegErrors& errors_of(j_common_ptr codec) { return *reinterpret_cast<JpegErrors*>(codec->err); }

jpeg_error_mgr* install(JpegErrors& errors) {
  jpeg_std_error(&errors.base);
  errors.base.error_exit = leave;
  errors.base.emit_message = note;
  errors.error[0] = errors.warning[0] = errors.damage[0] = '\0';
  return &errors.base;
}

}  // namespace dtrain::data
