// Compares libdtrain/io/remote/curl_library.h with curl.h of the installed libcurl.
#include <curl/curl.h>

#include "libdtrain/io/remote/curl_library.h"
#include "tests/testing.h"

namespace dtrain::remote {
namespace {

constexpr int code(int number) { return number; }

static_assert(code(kWriteData) == CURLOPT_WRITEDATA && code(kUrl) == CURLOPT_URL &&
              code(kReadData) == CURLOPT_READDATA);
static_assert(code(kErrorBuffer) == CURLOPT_ERRORBUFFER && code(kPostFields) == CURLOPT_POSTFIELDS);
static_assert(code(kUserAgent) == CURLOPT_USERAGENT && code(kLowSpeedLimit) == CURLOPT_LOW_SPEED_LIMIT);
static_assert(code(kLowSpeedTime) == CURLOPT_LOW_SPEED_TIME && code(kHttpHeader) == CURLOPT_HTTPHEADER);
static_assert(code(kHeaderData) == CURLOPT_HEADERDATA && code(kCustomRequest) == CURLOPT_CUSTOMREQUEST);
static_assert(code(kNoBody) == CURLOPT_NOBODY && code(kUpload) == CURLOPT_UPLOAD && code(kPost) == CURLOPT_POST);
static_assert(code(kFollowLocation) == CURLOPT_FOLLOWLOCATION && code(kCaInfo) == CURLOPT_CAINFO);
static_assert(code(kMaxRedirects) == CURLOPT_MAXREDIRS && code(kHttpVersion) == CURLOPT_HTTP_VERSION);
static_assert(code(kCaPath) == CURLOPT_CAPATH && code(kNoSignal) == CURLOPT_NOSIGNAL);
static_assert(code(kTimeoutMs) == CURLOPT_TIMEOUT_MS && code(kConnectTimeoutMs) == CURLOPT_CONNECTTIMEOUT_MS);
static_assert(code(kNoProxy) == CURLOPT_NOPROXY && code(kProtocols) == 181 && code(kRedirectProtocols) == 182);
static_assert(code(kTcpKeepAlive) == CURLOPT_TCP_KEEPALIVE && code(kPathAsIs) == CURLOPT_PATH_AS_IS);
static_assert(code(kSuppressConnectHeaders) == CURLOPT_SUPPRESS_CONNECT_HEADERS);
static_assert(code(kWriteFunction) == CURLOPT_WRITEFUNCTION && code(kReadFunction) == CURLOPT_READFUNCTION);
static_assert(code(kHeaderFunction) == CURLOPT_HEADERFUNCTION && code(kInFileSize) == CURLOPT_INFILESIZE_LARGE);
static_assert(code(kPostFieldSize) == CURLOPT_POSTFIELDSIZE_LARGE);
static_assert(code(kCurlOk) == CURLE_OK && code(kUnsupportedProtocol) == CURLE_UNSUPPORTED_PROTOCOL);
static_assert(code(kWrongUrl) == CURLE_URL_MALFORMAT && code(kTooManyRedirects) == CURLE_TOO_MANY_REDIRECTS);
static_assert(code(kPartialFile) == CURLE_PARTIAL_FILE && code(kWriteError) == CURLE_WRITE_ERROR);
static_assert(code(kCertificate) == CURLE_PEER_FAILED_VERIFICATION && code(kCaFile) == CURLE_SSL_CACERT_BADFILE);
static_assert(kGlobalAll == CURL_GLOBAL_ALL && kHttp11 == CURL_HTTP_VERSION_1_1 && kErrorBytes == CURL_ERROR_SIZE);
static_assert(kProtocolHttp == CURLPROTO_HTTP && kProtocolHttps == CURLPROTO_HTTPS);
static_assert(sizeof(curl_off_t) == sizeof(int64_t));

TEST(CurlLibrary, IsLoaded) { EXPECT_EQ(std::string(curl().version()).substr(0, 8), "libcurl/"); }

}  // namespace
}  // namespace dtrain::remote
