// libcurl, loaded with dlopen at first use. Declares the part of its binary interface (libcurl.so.4, unchanged since
// 2006) that the client uses, so that a build needs no libcurl, and programs use the system's TLS and certificates.
#pragma once

#include <cstddef>
#include <ctime>

#include "libdtrain/core/shared_library.h"

namespace dtrain::remote {

// As in curl/curl.h, without the prefixes; tests/io/remote/curl_interface_test.cpp compares them.
using CurlHandle = void;
struct CurlList;

enum CurlOption : int {
  kWriteData = 10001,
  kUrl = 10002,
  kReadData = 10009,
  kErrorBuffer = 10010,
  kPostFields = 10015,
  kUserAgent = 10018,
  kLowSpeedLimit = 19,
  kLowSpeedTime = 20,
  kHttpHeader = 10023,
  kHeaderData = 10029,
  kCustomRequest = 10036,
  kNoBody = 44,
  kUpload = 46,
  kPost = 47,
  kFollowLocation = 52,
  kCaInfo = 10065,
  kMaxRedirects = 68,
  kHttpVersion = 84,
  kCaPath = 10097,
  kNoSignal = 99,
  kTimeoutMs = 155,
  kConnectTimeoutMs = 156,
  kNoProxy = 10177,
  kProtocols = 181,
  kRedirectProtocols = 182,
  kTcpKeepAlive = 213,
  kPathAsIs = 234,
  kSuppressConnectHeaders = 265,
  kWriteFunction = 20011,
  kReadFunction = 20012,
  kHeaderFunction = 20079,
  kInFileSize = 30115,
  kPostFieldSize = 30120,
};
enum CurlCode : int {
  kCurlOk = 0,
  kUnsupportedProtocol = 1,
  kWrongUrl = 3,
  kPartialFile = 18,
  kWriteError = 23,
  kTooManyRedirects = 47,
  kCertificate = 60,
  kCaFile = 77,
};
constexpr long kGlobalAll = 3, kHttp11 = 2, kProtocolHttp = 1, kProtocolHttps = 2;
constexpr size_t kErrorBytes = 256;

struct CurlLibrary {
  SharedLibrary library;
  CurlCode (*global_init)(long) = library.symbol("curl_global_init");
  const char* (*version)() = library.symbol("curl_version");
  CurlHandle* (*init)() = library.symbol("curl_easy_init");
  void (*reset)(CurlHandle*) = library.symbol("curl_easy_reset");
  void (*cleanup)(CurlHandle*) = library.symbol("curl_easy_cleanup");
  CurlCode (*set)(CurlHandle*, CurlOption, ...) = library.symbol("curl_easy_setopt");
  CurlCode (*perform)(CurlHandle*) = library.symbol("curl_easy_perform");
  const char* (*error_text)(CurlCode) = library.symbol("curl_easy_strerror");
  CurlList* (*append)(CurlList*, const char*) = library.symbol("curl_slist_append");
  void (*free_list)(CurlList*) = library.symbol("curl_slist_free_all");
  time_t (*date)(const char*, const time_t*) = library.symbol("curl_getdate");
};

// Throws Error(Fault::resource), with advice, where libcurl is not installed.
const CurlLibrary& curl();

}  // namespace dtrain::remote
