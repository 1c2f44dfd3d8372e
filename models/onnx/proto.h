// The little of protobuf's wire format that writing ONNX takes: numbers, texts and messages within messages, one field
// after the other (https://protobuf.dev/programming-guides/encoding).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dtrain::models {

class ProtoMessage {
 public:
  ProtoMessage& number(int field, int64_t value);
  ProtoMessage& real(int field, float value);
  ProtoMessage& text(int field, std::string_view bytes);
  ProtoMessage& message(int field, const ProtoMessage& inner) { return text(field, inner.bytes()); }
  // What stands before `size` bytes that are written elsewhere, as the field's text.
  ProtoMessage& head(int field, uint64_t size);

  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value);

  std::string bytes_;
};

}  // namespace dtrain::models
