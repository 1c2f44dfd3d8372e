// Query parameters top and score_threshold.
#pragma once

#include "apps/serve/http_message.h"
#include "apps/serve/json_forms.h"

namespace dtrain::serve {

// Returns `form` with the path's `top` and `score_threshold` applied. Throws Error(Fault::data) for a number out of
// range.
AnswerForm form_of(const Request& request, AnswerForm form);

}  // namespace dtrain::serve
