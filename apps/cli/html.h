// HTML escaping and embedded images.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace dtrain::cli {

// Escapes `text` for HTML content and attributes: escaped() of messages.h, with entities for & < > " '.
std::string html_text(std::string_view text);

// A file as a data: URI, for self-contained pages. `type`: MIME type, e.g. "image/png".
std::string data_uri(std::string_view type, std::span<const std::byte> bytes);

}  // namespace dtrain::cli
