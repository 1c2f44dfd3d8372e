#include "apps/serve/answer_form.h"

#include <charconv>

#include "dtrain/core/error.h"

namespace dtrain::serve {
namespace {

double number_in(const std::string& text, const char* name, double least, double most) {
  double value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc{} || end != text.data() + text.size() || !(value >= least && value <= most))
    throw Error(Fault::data, concat(name, ": expected a number from ", least, " to ", most));
  return value;
}

}  // namespace

AnswerForm form_of(const Request& request, AnswerForm form) {
  for (const auto& [name, value] : request.parameters) {
    if (name == "top") form.top = static_cast<size_t>(number_in(value, "top", 1, 1e6));
    if (name == "score_threshold") form.score_threshold = number_in(value, "score_threshold", 0, 1);
  }
  return form;
}

}  // namespace dtrain::serve
