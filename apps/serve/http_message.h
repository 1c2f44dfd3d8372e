// HTTP requests and responses, as Boost.Beast represents them.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

namespace dtrain::serve {

namespace http = boost::beast::http;

using RequestHead = http::request_header<>;
using Response = http::response<http::string_body>;

struct Request {
  std::string path;                               // percent-decoded
  std::map<std::string, std::string> parameters;  // of the query; the first of each name
  std::string body;
};

// Path of a request target, percent-decoded and without the query.
std::string path_of(std::string_view target);
// Parameters of the query of a request target, percent-decoded.
std::map<std::string, std::string> parameters_of(std::string_view target);

// Value of a header field; empty if the request does not have it.
std::string field_of(const RequestHead& head, std::string_view name);

void answer(Response& response, unsigned status, std::string_view json);

}  // namespace dtrain::serve
