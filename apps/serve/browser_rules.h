// Checks against CSRF and DNS rebinding (Host, Origin, Fetch Metadata).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/serve/http_message.h"

namespace dtrain::serve {

// Reason for refusing a request without a token; empty for programs and the server's own page. Host must be localhost,
// an IP address, or one of `hosts`, which excludes DNS rebinding. Sec-Fetch-Site and Origin must be this server's;
// links from other sites may only open the page at /. `hosts` as from read_host_names().
std::string csrf_problem(const RequestHead& head, const std::vector<std::string>& hosts);

// Parses the comma-separated names of --allowed_hosts to lower case; ".example.org" stands for example.org and its
// subdomains. Throws Error(Fault::config) for an invalid host name.
std::vector<std::string> read_host_names(std::string_view text);

// Sets X-Content-Type-Options, X-Frame-Options, Cross-Origin-Resource-Policy, and, if `response` has none, a
// Content-Security-Policy.
void set_security_headers(Response& response);

}  // namespace dtrain::serve
