// The self-contained HTML page at /, which uses the same API as clients.
#pragma once

#include <string>
#include <string_view>

namespace dtrain::serve {

// UTF-8 HTML with inline style and script.
std::string page();
// The Content-Security-Policy of page(): its own script and style by SHA-256, and requests to its server only.
const std::string& page_policy();

std::string_view page_style();
std::string_view page_script();        // requests, uploads, comparison and image browsing
std::string_view page_views_script();  // rendering of predictions

}  // namespace dtrain::serve
