#include "apps/serve/page.h"

#include <sodium.h>

#include <array>

#include <fmt/format.h>

#include "dtrain/core/error.h"

namespace dtrain::serve {
namespace {

constexpr std::string_view kBody = R"HTML(
<a class="skip" href="#main">To the image</a>
<header><h1>Predictions</h1><p id="status" role="status">Connecting to the server.</p></header>
<main id="main">
<form id="access" class="card" hidden>
<label for="token">Bearer token</label>
<input id="token" type="password" autocomplete="off" required> <button>Use</button>
</form>
<p id="message" role="alert"></p>
<section class="card" aria-labelledby="image-title">
<h2 id="image-title">Image</h2>
<div id="drop"><label for="file">Choose an image, or drop one here</label>
<input id="file" type="file" accept="image/jpeg,image/png,image/webp,image/gif,image/bmp,image/tiff"></div>
<div id="controls" hidden>
<span><label for="score">Minimum score</label>
<input id="score" type="range" min="0" max="1" step="0.01" value="0.5"> <output id="score-value">0.50</output></span>
<span><label for="category">Class</label> <select id="category"><option value="">all</option></select></span>
</div>
</section>
<section aria-labelledby="answers-title">
<h2 id="answers-title">Answers</h2>
<div id="answers" aria-live="polite"><p>No image selected.</p></div>
</section>
<section id="walk" class="card" aria-labelledby="walk-title" hidden>
<h2 id="walk-title">Validation images</h2>
<p><button id="random" type="button">Random image</button>
<button id="sort" type="button">Predict all and sort</button>
<span id="order-of" hidden><label for="order">by the</label> <select id="order"></select></span>
<button id="previous" type="button" disabled>Previous</button>
<button id="next" type="button" disabled>Next</button> <span id="progress" role="status"></span></p>
<p id="measure"></p>
<ol id="images"></ol>
</section>
</main>
)HTML";

std::string script() { return concat(page_views_script(), page_script()); }

// A source expression of a Content-Security-Policy.
std::string source_of(std::string_view text) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash{};
  crypto_hash_sha256(hash.data(), reinterpret_cast<const unsigned char*>(text.data()), text.size());
  std::array<char, sodium_base64_ENCODED_LEN(crypto_hash_sha256_BYTES, sodium_base64_VARIANT_ORIGINAL)> base64{};
  sodium_bin2base64(base64.data(), base64.size(), hash.data(), hash.size(), sodium_base64_VARIANT_ORIGINAL);
  return concat("'sha256-", base64.data(), "'");
}

}  // namespace

const std::string& page_policy() {
  static const std::string policy = fmt::format(
      "default-src 'none'; connect-src 'self'; img-src blob: data:; style-src {}; script-src {}; form-action 'none'; "
      "base-uri 'none'; frame-ancestors 'none'",
      source_of(page_style()), source_of(script()));
  return policy;
}

std::string page() {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n"
      "<title>Predictions</title>\n<style>{}</style>\n</head>\n<body>{}<script>{}</script>\n</body>\n</html>\n",
      page_style(), kBody, script());
}

}  // namespace dtrain::serve
