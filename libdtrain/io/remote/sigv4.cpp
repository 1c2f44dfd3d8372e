#include "libdtrain/io/remote/sigv4.h"

#include <sodium.h>

#include <array>

#include "dtrain/core/error.h"

namespace dtrain::remote {
namespace {

constexpr const char *kAlgorithm = "AWS4-HMAC-SHA256", *kService = "s3", *kEnd = "aws4_request";
using Mac = std::array<unsigned char, crypto_auth_hmacsha256_BYTES>;

template <size_t kBytes>
std::string hex(const std::array<unsigned char, kBytes>& bytes) {
  std::array<char, 2 * kBytes + 1> digits;
  return sodium_bin2hex(digits.data(), digits.size(), bytes.data(), bytes.size());
}

const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

Mac hmac(const unsigned char* key, size_t key_bytes, std::string_view text) {
  crypto_auth_hmacsha256_state state;
  Mac mac;
  crypto_auth_hmacsha256_init(&state, key, key_bytes);
  crypto_auth_hmacsha256_update(&state, bytes_of(text), text.size());
  crypto_auth_hmacsha256_final(&state, mac.data());
  return mac;
}

Mac hmac(const Mac& key, std::string_view text) { return hmac(key.data(), key.size(), text); }

bool is_unreserved(unsigned char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.' || c == '~';
}

// Without outer spaces, and with single inner spaces.
std::string trimmed(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == ' ' && (text.empty() || text.back() == ' ')) continue;
    text += c;
  }
  if (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace

std::string uri_encoded(std::string_view text, bool keeps_slash) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char character : text) {
    const auto c = static_cast<unsigned char>(character);
    if (is_unreserved(c) || (keeps_slash && c == '/'))
      encoded += character;
    else
      encoded += {'%', kDigits[c >> 4], kDigits[c & 15]};
  }
  return encoded;
}

std::string encoded_query(const std::map<std::string, std::string>& query) {
  std::map<std::string, std::string> sorted;  // by the encoded name
  for (const auto& [name, value] : query) sorted[uri_encoded(name, false)] = uri_encoded(value, false);
  std::string text;
  for (const auto& [name, value] : sorted) text += concat(text.empty() ? "" : "&", name, "=", value);
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash;
  crypto_hash_sha256(hash.data(), bytes_of(bytes), bytes.size());
  return hex(hash);
}

void sign(SignedRequest& request, const SigningKey& key, const std::string& region, time_t now) {
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 17> time{};
  std::strftime(time.data(), time.size(), "%Y%m%dT%H%M%SZ", &utc);
  const std::string date(time.data(), 8), scope = concat(date, "/", region, "/", kService, "/", kEnd);
  request.headers["x-amz-date"] = time.data();
  request.headers["x-amz-content-sha256"] = sha256_hex(request.body);
  if (!key.session_token.empty()) request.headers["x-amz-security-token"] = key.session_token;

  std::map<std::string, std::string> headers = request.headers;
  headers["host"] = request.host;
  std::string lines, names;
  for (const auto& [name, value] : headers) {
    lines += concat(name, ":", trimmed(value), "\n");
    names += concat(names.empty() ? "" : ";", name);
  }
  const std::string canonical = concat(request.method, "\n", request.path, "\n", encoded_query(request.query), "\n",
                                       lines, "\n", names, "\n", request.headers["x-amz-content-sha256"]);
  const std::string text = concat(kAlgorithm, "\n", time.data(), "\n", scope, "\n", sha256_hex(canonical));
  const std::string secret = "AWS4" + key.secret_key;
  Mac mac = hmac(bytes_of(secret), secret.size(), date);
  for (const std::string_view part : {std::string_view(region), std::string_view(kService), std::string_view(kEnd)})
    mac = hmac(mac, part);
  request.headers["authorization"] = concat(kAlgorithm, " Credential=", key.access_key, "/", scope,
                                            ", SignedHeaders=", names, ", Signature=", hex(hmac(mac, text)));
}

}  // namespace dtrain::remote
