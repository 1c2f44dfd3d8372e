// Checks against CSRF and DNS rebinding (Host, Origin, Fetch Metadata).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <httplib.h>

namespace dtrain::serve {

// Why a request is refused where no token tells who may ask; empty for requests of programs and of the server's own
// page. Its Host has to be localhost, an address, or one of `hosts`: a name of somebody else's that was made to point
// to this host (DNS rebinding) is none of these. Its Sec-Fetch-Site and Origin have to be this server's; a link of
// another site may lead to the page at /, no further. `hosts` are as read_host_names() returns them.
std::string csrf_problem(const httplib::Request& request, const std::vector<std::string>& hosts);

// The comma-separated names of --allowed_hosts in lower case; ".example.org" stands for example.org and all names below
// it. Throws Error(Fault::config) for what is no name of a host.
std::vector<std::string> read_host_names(std::string_view text);

// Sets X-Content-Type-Options, X-Frame-Options, Cross-Origin-Resource-Policy, and a Content-Security-Policy where
// `response` has none.
void set_security_headers(httplib::Response& response);

}  // namespace dtrain::serve
