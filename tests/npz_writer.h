// Writes valid and invalid NumPy .npz archives for tests.
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
  bool large = false;  // ZIP64: always 64-bit sizes and offsets

  template <class T>
  static std::string text_of(T number) {
    std::string bytes(sizeof number, '\0');
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
  }

  // A .npy file: header text, then the elements.
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
      const uint64_t unpacked_size = member.bytes.size(), packed_size = packed.size(), header = bytes.size();
      const auto crc = static_cast<uint32_t>(
          crc32(0, reinterpret_cast<const Bytef*>(member.bytes.data()), static_cast<uInt>(member.bytes.size())));
      const std::string before = text_of(uint16_t{20}) + text_of(uint16_t{0}) +
                                 text_of(static_cast<uint16_t>(member.deflated ? 8 : 0)) + text_of(uint32_t{0}) +
                                 text_of(crc);
      const std::string name_length = text_of(static_cast<uint16_t>(member.name.size()));
      const std::string extra = large ? text_of(uint16_t{1}) + text_of(uint16_t{24}) + text_of(unpacked_size) +
                                            text_of(packed_size) + text_of(header)
                                      : "";
      directory += "PK\1\2" + text_of(uint16_t{20}) + before + limited(packed_size) + limited(unpacked_size) +
                   name_length + text_of(static_cast<uint16_t>(extra.size())) + std::string(10, '\0') +
                   limited(header) + member.name + extra;
      bytes += "PK\3\4" + before + limited(packed_size) + limited(unpacked_size) + name_length + text_of(uint16_t{0}) +
               member.name + packed;
    }
    const uint64_t offset = bytes.size(), count = members.size(), size = directory.size();
    bytes += directory;
    if (large)
      bytes += "PK\6\6" + text_of(uint64_t{44}) + std::string(12, '\0') + text_of(count) + text_of(count) +
               text_of(size) + text_of(offset) + "PK\6\7" + std::string(4, '\0') + text_of(offset + size) +
               text_of(uint32_t{1});
    const std::string short_count = text_of(static_cast<uint16_t>(large ? 0xffff : count));
    return bytes + "PK\5\6" + std::string(4, '\0') + short_count + short_count + limited(size) + limited(offset) +
           std::string(2, '\0');
  }

 private:
  std::string limited(uint64_t number) const { return text_of(large ? 0xffffffffu : static_cast<uint32_t>(number)); }
};

}  // namespace dtrain
