// Texts and pictures as parts of a page of HTML.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace dtrain::cli {

// `text` as a part of a page, in quotes or not: escaped() of messages.h, with entities for & < > " '.
std::string html_text(std::string_view text);

// A file as a data: URI, so that the page needs no other file. `type`: "image/png".
std::string data_uri(std::string_view type, std::span<const std::byte> bytes);

}  // namespace dtrain::cli
