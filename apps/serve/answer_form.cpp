#include "apps/serve/answer_form.h"

#include <charconv>

#include "libdtrain/core/error.h"

namespace dtrain::serve {
namespace {

double number_in(const httplib::Request& request, const char* name, double least, double most) {
  const std::string text = request.get_param_value(name);
  double value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc{} || end != text.data() + text.size() || !(value >= least && value <= most))
    throw Error(Fault::data, concat(name, ": expected a number from ", least, " to ", most));
  return value;
}

}  // namespace

AnswerForm form_of(const httplib::Request& request, AnswerForm form) {
  if (request.has_param("top")) form.top = static_cast<size_t>(number_in(request, "top", 1, 1e6));
  if (request.has_param("score_threshold")) form.score_threshold = number_in(request, "score_threshold", 0, 1);
  return form;
}

}  // namespace dtrain::serve
