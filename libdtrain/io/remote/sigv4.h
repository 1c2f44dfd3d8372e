// Signature Version 4 of AWS for requests to S3.
//
// libcurl has a signer, too (CURLOPT_AWS_SIGV4, since 7.75). It is not used: which requests it signs correctly differs
// between its versions. 7.68 (Debian 11, Ubuntu 20.04) has none; 7.88 (Debian 12) signs queries in the order and
// encoding of the URL; up to 8.8, keys with '=' or '*' get wrong signatures.
#pragma once

#include <ctime>
#include <map>
#include <string>
#include <string_view>

namespace dtrain::remote {

struct SigningKey {
  std::string access_key, secret_key;
  std::string session_token;  // empty: none
};

// A request to sign. Names and values are not encoded.
struct SignedRequest {
  std::string method, host;
  std::string path;  // encoded: "/bucket/a%20b"
  std::map<std::string, std::string> query;
  std::map<std::string, std::string> headers;  // names in lower case, without host
  std::string_view body;
};

// Percent-encoding of all bytes except A-Z a-z 0-9 - _ . ~ and, in paths, '/'.
std::string uri_encoded(std::string_view text, bool keeps_slash);
// "a=1&b=%20", sorted: the query of the URL and of the signature.
std::string encoded_query(const std::map<std::string, std::string>& query);

// Adds the headers x-amz-date, x-amz-content-sha256, x-amz-security-token and authorization.
void sign(SignedRequest& request, const SigningKey& key, const std::string& region, time_t now);

// Lower-case hexadecimal digits of SHA-256.
std::string sha256_hex(std::string_view bytes);

}  // namespace dtrain::remote
