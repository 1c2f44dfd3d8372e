// Query parameters top and score_threshold.
#pragma once

#include <httplib.h>

#include "apps/serve/json_forms.h"

namespace dtrain::serve {

// Returns `form` with the path's `top` and `score_threshold` applied. Throws Error(Fault::data) for a number out of
// range.
AnswerForm form_of(const httplib::Request& request, AnswerForm form);

}  // namespace dtrain::serve
