#include "models/onnx/proto.h"

#include <bit>

namespace dtrain::models {
namespace {

enum WireType : uint64_t { kVarint = 0, kBytes = 2, kFourBytes = 5 };

uint64_t tag(int field, WireType type) { return static_cast<uint64_t>(field) << 3 | type; }

}  // namespace

void ProtoMessage::varint(uint64_t value) {
  for (; value >= 128; value >>= 7) bytes_ += static_cast<char>((value & 127) | 128);
  bytes_ += static_cast<char>(value);
}

ProtoMessage& ProtoMessage::number(int field, int64_t value) {
  varint(tag(field, kVarint));
  varint(static_cast<uint64_t>(value));
  return *this;
}

ProtoMessage& ProtoMessage::real(int field, float value) {
  varint(tag(field, kFourBytes));
  for (auto bits = std::bit_cast<uint32_t>(value), left = uint32_t{4}; left > 0; --left, bits >>= 8)
    bytes_ += static_cast<char>(bits & 255);
  return *this;
}

ProtoMessage& ProtoMessage::text(int field, std::string_view bytes) {
  head(field, bytes.size());
  bytes_ += bytes;
  return *this;
}

ProtoMessage& ProtoMessage::head(int field, uint64_t size) {
  varint(tag(field, kBytes));
  varint(size);
  return *this;
}

}  // namespace dtrain::models
