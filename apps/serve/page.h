// The page that browsers get at /. It has all that it needs in it, and asks the server for predictions as clients do.
#pragma once

#include <string>
#include <string_view>

namespace dtrain::serve {

// HTML in UTF-8 with its style and script.
std::string page();
// The Content-Security-Policy of page(): its own script and style, known by their SHA-256, requests to its server, and
// nothing else.
const std::string& page_policy();

std::string_view page_style();
std::string_view page_script();        // requests, uploads, the comparison and the walk
std::string_view page_views_script();  // what an answer looks like

}  // namespace dtrain::serve
