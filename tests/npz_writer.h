// Writes NumPy's archives of arrays for tests, sound ones and others.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace dtrain {

struct NpzWriter {
  struct Member {
    std::string name, bytes;  // unpacked
    bool deflated = false;
  };
  std::vector<Member> members{};

  template <class T>
  static std::string text_of(T number) {
    std::string bytes(sizeof number, '\0');
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
  }

  // A whole .npy: its header as text, then the elements.
  static std::string npy(const std::string& header, const std::string& data, int version = 1) {
    const auto length = static_cast<uint32_t>(header.size());
    return std::string("\x93NUMPY") + static_cast<char>(version) + '\0' +
           (version == 1 ? text_of(static_cast<uint16_t>(length)) : text_of(length)) + header + data;
  }

  void add(const std::string& name, const std::string& shape, const std::vector<float>& values, bool deflated = false) {
    const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }\n";
    std::string data(values.size() * sizeof(float), '\0');
    if (!values.empty()) std::memcpy(data.data(), values.data(), data.size());
    members.push_back({name + ".npy", npy(header, data), deflated});
  }

  static std::string deflated_of(const std::string& bytes) {
    z_stream z{};
    deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    std::string packed(deflateBound(&z, bytes.size()), '\0');
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    z.avail_in = static_cast<uInt>(bytes.size());
    z.next_out = reinterpret_cast<Bytef*>(packed.data());
    z.avail_out = static_cast<uInt>(packed.size());
    deflate(&z, Z_FINISH);
    packed.resize(z.total_out);
    deflateEnd(&z);
    return packed;
  }

  std::string archive() const {
    std::string bytes, directory;
    for (const Member& member : members) {
      const std::string packed = member.deflated ? deflated_of(member.bytes) : member.bytes;
      const auto crc = static_cast<uint32_t>(
          crc32(0, reinterpret_cast<const Bytef*>(member.bytes.data()), static_cast<uInt>(member.bytes.size())));
      const std::string common = text_of(uint16_t{20}) + text_of(uint16_t{0}) +
                                 text_of(uint16_t(member.deflated ? 8 : 0)) + text_of(uint32_t{0}) + text_of(crc) +
                                 text_of(static_cast<uint32_t>(packed.size())) +
                                 text_of(static_cast<uint32_t>(member.bytes.size())) +
                                 text_of(static_cast<uint16_t>(member.name.size())) + text_of(uint16_t{0});
      directory += "PK\1\2" + text_of(uint16_t{20}) + common + std::string(10, '\0') +
                   text_of(static_cast<uint32_t>(bytes.size())) + member.name;
      bytes += "PK\3\4" + common + member.name + packed;
    }
    const auto count = static_cast<uint16_t>(members.size());
    return bytes + directory + "PK\5\6" + std::string(4, '\0') + text_of(count) + text_of(count) +
           text_of(static_cast<uint32_t>(directory.size())) + text_of(static_cast<uint32_t>(bytes.size())) +
           std::string(2, '\0');
  }
};

}  // namespace dtrain
