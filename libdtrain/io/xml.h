// Elements of an XML document, parsed by Boost.PropertyTree within limits.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <boost/property_tree/ptree_fwd.hpp>

namespace dtrain {

struct XmlOptions {
  // Limits: PropertyTree holds the whole document and recurses into each element.
  size_t most_bytes = size_t{16} << 20, most_elements = 1'000'000;
  int most_depth = 32;
  bool trims = true;  // removes spaces around texts, and all but one inside of them
};

// Parses a UTF-8 document without an internal DTD, so that it defines no entities. Throws Error(Fault::data), "WHERE:
// line 7: ...", for other or invalid text and beyond the limits.
boost::property_tree::ptree parse_xml(std::string_view text, const std::string& where, const XmlOptions& options = {});

}  // namespace dtrain
