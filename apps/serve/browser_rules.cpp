#include "apps/serve/browser_rules.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "dtrain/core/error.h"

namespace dtrain::serve {
namespace {

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

// "name" of "name:8501", "[::1]" of "[::1]:8501".
std::string host_of(const std::string& authority) {
  const size_t begin = authority.starts_with('[') ? authority.find(']') : 0;
  return to_lower(authority.substr(0, authority.find(':', begin == std::string::npos ? 0 : begin)));
}

// DNS rebinding needs a name: an IP address as origin cannot belong to another site.
bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  if (host.starts_with('[') && host.ends_with(']'))
    return inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), bytes.data()) == 1;
  return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1;
}

// Matches --allowed_hosts: ".example.org" stands for example.org and its subdomains.
bool is_allowed(std::string_view host, const std::vector<std::string>& hosts) {
  return std::ranges::any_of(hosts, [&](std::string_view one) {
    if (!one.starts_with('.')) return one == host;
    return host == one.substr(1) || (host.size() > one.size() && host.ends_with(one));
  });
}

bool is_known(const std::string& host, const std::vector<std::string>& hosts) {
  return host == "localhost" || is_address(host) || is_allowed(host, hosts);
}

// A proxy may change Host; if it keeps the name, it must keep the port.
bool is_own_origin(const std::string& origin, const std::string& host, const std::vector<std::string>& hosts) {
  const size_t slashes = origin.find("://");
  if (slashes == std::string::npos) return false;
  const std::string authority = to_lower(origin.substr(slashes + 3)), name = host_of(authority);
  return name == host_of(host) ? authority == to_lower(host) : is_allowed(name, hosts);
}

bool is_link_to_page(const RequestHead& head) {
  return (head.method() == http::verb::get || head.method() == http::verb::head) &&
         path_of({head.target().data(), head.target().size()}) == "/" && field_of(head, "Sec-Fetch-Mode") == "navigate";
}

}  // namespace

std::string csrf_problem(const RequestHead& head, const std::vector<std::string>& hosts) {
  if (head.count(http::field::host) > 1) return "expected one Host";
  const std::string host = field_of(head, "Host");
  if (head.count(http::field::host) > 0 && !is_known(host_of(host), hosts))
    return "this Host is not allowed; list it in --allowed_hosts, or start the server with a token";
  const std::string site = field_of(head, "Sec-Fetch-Site");
  const bool is_own = site.empty() || site == "same-origin" || site == "none";
  if (!is_own && !is_link_to_page(head)) return "cross-site requests are refused";
  if (head.count(http::field::origin) > 0 && !is_own_origin(field_of(head, "Origin"), host, hosts))
    return "cross-site requests are refused";
  return "";
}

std::vector<std::string> read_host_names(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789.-_";
  std::vector<std::string> hosts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    hosts.push_back(to_lower(text.substr(0, end)));
    const std::string_view name = std::string_view(hosts.back()).substr(hosts.back().starts_with('.') ? 1 : 0);
    DT_CHECK(!name.empty() && !name.starts_with('.') && name.find_first_not_of(kLetters) == std::string::npos,
             "--allowed_hosts=", hosts.back(),
             ": expected names of hosts without ports, or .DOMAIN for a domain and its names, separated by commas");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return hosts;
}

void set_security_headers(Response& response) {
  response.set("X-Content-Type-Options", "nosniff");
  response.set("X-Frame-Options", "DENY");
  response.set("Cross-Origin-Resource-Policy", "same-origin");
  if (response.count("Content-Security-Policy") == 0)
    response.set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
}

}  // namespace dtrain::serve
