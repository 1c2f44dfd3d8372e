// HttpClient: HTTP requests over libcurl, with reused connections, timeouts, and a classification of failures.
#pragma once

#include <memory>
#include <string>

#include "libdtrain/io/remote/http_message.h"
#include "libdtrain/io/remote/retries.h"

namespace dtrain::remote {

// Thread-safe. Keeps the connections of finished requests for later ones.
class HttpClient {
 public:
  // Certificates: AWS_CA_BUNDLE, CURL_CA_BUNDLE or SSL_CERT_FILE, and SSL_CERT_DIR, in place of the system's. Proxies:
  // libcurl reads https_proxy, http_proxy, all_proxy and no_proxy itself. A DTRAIN_REMOTE_TIMEOUT below 240 s
  // lowers the timeouts of attempts.
  explicit HttpClient(const Variables& variables);
  ~HttpClient();

  // One attempt. Failures of the transport are in the answer. Throws Error(Fault::resource) without libcurl.
  HttpAnswer send(const HttpRequest& request);
  // Repeats transient failures; returns the last answer.
  HttpAnswer send(const HttpRequest& request, const RetryPolicy& policy, const AnswerCheck& check = {});

 private:
  struct Connections;
  class Lease;  // of a connection
  std::unique_ptr<Connections> connections_;
  std::string ca_file_, ca_folder_;
  HttpTimeouts timeouts_{};
};

}  // namespace dtrain::remote
