// Elements of an XML file, parsed by Boost.PropertyTree within limits.
#pragma once

#include <string>
#include <string_view>

#include <boost/property_tree/ptree_fwd.hpp>

namespace dtrain::data::annotations {

// Limits: PropertyTree holds the whole file and recurses into each element.
inline constexpr size_t kMaxXmlBytes = size_t{16} << 20, kMaxXmlElements = 1'000'000;
inline constexpr int kMaxXmlDepth = 32;

// Parses a UTF-8 document without an internal DTD, so that it defines no entities. Throws Error(Fault::data), "WHERE:
// line 7: ...", for other or invalid text and beyond the limits.
boost::property_tree::ptree parse_xml(std::string_view text, const std::string& where);

}  // namespace dtrain::data::annotations
