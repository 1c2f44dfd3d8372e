// Concatenation along channels against a loop.
#include "dtrain/ops/concat_channels.h"

#include "dtrain/ops/pointwise.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Vars = std::vector<Var>;
using Arrays = std::vector<Array>;

int64_t channels_of(const Array& x) { return x.dim(x.shape.rank() - 1); }

Array reference(const Arrays& parts) {
  int64_t channels = 0;
  for (const Array& part : parts) channels += channels_of(part);
  Shape shape;
  for (int i = 0; i + 1 < parts[0].shape.rank(); ++i) shape.append(parts[0].dim(i));
  shape.append(channels);
  Array y(shape);
  int64_t begin = 0;
  for (const Array& part : parts) {
    const int64_t count = channels_of(part);
    for (int64_t i = 0; i < part.count(); ++i) y[i / count * channels + begin + i % count] = part[i];
    begin += count;
  }
  return y;
}

OpCase concat_case(Shape leading, const std::vector<int64_t>& channels) {
  OpCase test{
      .name = concat("concat_channels of ", leading), .inputs = {}, .op = concat_channels, .reference = reference};
  for (int64_t c : channels) {
    Shape shape = leading;
    shape.append(c);
    test.inputs.push_back(random_array(shape, static_cast<uint64_t>(c)));
    test.name += concat(" ", c);
  }
  test.exact = true;
  return test;
}

TEST(ConcatChannels, ValueAndGradients) {
  check_op({concat_case({}, {3, 1}), concat_case({2, 5, 3}, {8, 16}), concat_case({2, 5, 3}, {8, 3, 16}),
            concat_case({7}, {5}), concat_case({2, 40, 40}, {24, 8, 32, 16})});
}

TEST(ConcatChannels, OfATensorWithItself) {
  check_op({.name = "x beside x",
            .inputs = {random_array({4, 6}, 1)},
            .op =
                [](Tape& t, const Vars& v) {
                  return concat_channels(t, {v[0], v[0]});
                },
            .reference =
                [](const Arrays& a) {
                  return reference({a[0], a[0]});
                },
            .exact = true});
}

TEST(ConcatChannels, PartsWithoutGradient) {
  const Array constant = random_array({4, 8}, 2);
  check_op({.name = "constant beside x",
            .inputs = {random_array({4, 6}, 1)},
            .op =
                [=](Tape& t, const Vars& v) {
                  return concat_channels(t, {t.constant(to_device(t.context(), constant)), v[0]});
                },
            .reference =
                [=](const Arrays& a) {
                  return reference({constant, a[0]});
                },
            .exact = true,
            .f32_only = true});
}

TEST(ConcatChannels, RefusesWhatDoesNotFit) {
  const auto context = make_cpu_context();
  Tape tape(*context);
  const auto zeros = [&](Shape shape, DType dtype = DType::f32) { return tape.constant(context->zeros(shape, dtype)); };
  expect_error([&] { concat_channels(tape, {}); }, Fault::config, "expected parts [..., c], found none");
  expect_error([&] { concat_channels(tape, {zeros({})}); }, Fault::config, "found a scalar");
  expect_error(
      [&] {
        concat_channels(tape, {zeros({2, 3}), zeros({3, 3})});
      },
      Fault::config, "parts [2, 3] of f32 and [3, 3] of f32");
  expect_error([&] { concat_channels(tape, {zeros({2, 3}), zeros({2, 1, 3})}); }, Fault::config, "[2, 1, 3]");
  expect_error([&] { concat_channels(tape, {zeros({2, 3}), zeros({2, 3}, DType::f16)}); }, Fault::config, "of f16");
}

TEST(ConcatChannels, RowsOfEachImageAreJoined) {
  for (const auto& context : devices()) {
    const Tensor a = to_device<float>(*context, {2, 1, 2}, {1, 2, 3, 4});
    const Tensor b = to_device<float>(*context, {2, 2, 2}, {5, 6, 7, 8, 9, 10, 11, 12});
    const Tensor joined = join_rows(*context, {a, b});
    EXPECT_EQ(joined.shape(), (Shape{2, 3, 2}));
    EXPECT_EQ(values_of<float>(*context, joined), (std::vector<float>{1, 2, 5, 6, 7, 8, 3, 4, 9, 10, 11, 12}));
    expect_error([&] { join_rows(*context, {}); }, Fault::config, "no parts");
    expect_error([&] { join_rows(*context, {a, context->zeros({2, 2, 3})}); }, Fault::config, "equal n and width");
  }
}

}  // namespace
}  // namespace dtrain
