#include "apps/serve/http_message.h"

#include <algorithm>
#include <charconv>

namespace dtrain::serve {
namespace {

// Decodes percent-encoding (RFC 3986); keeps a '%' without two hexadecimal digits.
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  while (!text.empty()) {
    size_t length = 1;
    char byte = text.front();
    if (byte == '%' && text.size() >= 3) {
      unsigned char value = 0;
      const auto [end, wrong] = std::from_chars(text.data() + 1, text.data() + 3, value, 16);
      if (wrong == std::errc{} && end == text.data() + 3) {
        byte = static_cast<char>(value);
        length = 3;
      }
    }
    decoded += byte;
    text.remove_prefix(length);
  }
  return decoded;
}

}  // namespace

std::string path_of(std::string_view target) { return percent_decoded(target.substr(0, target.find('?'))); }

std::map<std::string, std::string> parameters_of(std::string_view target) {
  std::map<std::string, std::string> parameters;
  const size_t question = target.find('?');
  target.remove_prefix(question == std::string_view::npos ? target.size() : question + 1);
  while (!target.empty()) {
    const std::string_view parameter = target.substr(0, target.find('&'));
    const size_t equals = std::min(parameter.find('='), parameter.size());
    parameters.emplace(percent_decoded(parameter.substr(0, equals)),
                       percent_decoded(parameter.substr(std::min(equals + 1, parameter.size()))));
    target.remove_prefix(std::min(parameter.size() + 1, target.size()));
  }
  return parameters;
}

std::string field_of(const RequestHead& head, std::string_view name) {
  const auto value = head[{name.data(), name.size()}];
  return {value.data(), value.size()};
}

void answer(Response& response, unsigned status, std::string_view json) {
  response.result(status);
  response.set(http::field::content_type, "application/json");
  response.body() = json;
  response.body() += '\n';
}

}  // namespace dtrain::serve
