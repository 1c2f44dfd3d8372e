// cuDNN operation graph of a convolution with its fused prologue and epilogue.
//
// cuDNN 9.19 on sm_90: statistics in the epilogue and batch norms applied on load (the normalized_ kinds) have
// precompiled engines for f16 only, with f16 scale, shift and dw, f32 statistics, channels in multiples of 8, any
// stride; tests query each. Engines compiled at run time support neither these reductions nor a wgrad prologue, by
// cuDNN's documentation.
#include "dtrain/core/error.h"
#include "libdtrain/cuda/cudnn_graph.h"

namespace dtrain::cuda {
namespace {

cudnnDataType_t data_type(int64_t dtype) {
  switch (static_cast<DType>(dtype)) {
    case DType::f32:
      return CUDNN_DATA_FLOAT;
    case DType::bf16:
      return CUDNN_DATA_BFLOAT16;
    case DType::f16:
      return CUDNN_DATA_HALF;
    default:
      throw Error(concat("a convolution of ", static_cast<DType>(dtype), ", expected f32, bf16 or f16"));
  }
}

Descriptor convolution(const ConvProblem& o) {
  const std::array<int64_t, 2> before{o.pad_top, o.pad_left}, after{o.pad_bottom, o.pad_right};
  const std::array<int64_t, 2> stride{o.stride_h, o.stride_w}, dilation{o.dilation_h, o.dilation_w};
  Descriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  return made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2})
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::span(before))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, std::span(after))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::span(stride))
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::span(dilation))
      .finalize();
}

// Attribute names of the three convolution operations.
struct OperationNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t alpha, beta, convolution, image, filter, output;
};
constexpr OperationNames kForward{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
constexpr OperationNames kDgrad{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
constexpr OperationNames kWgrad{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};

// Operations of one problem, in insertion order.
class Operations {
 public:
  explicit Operations(const ConvProblem& problem)
      : o_(problem), type_(data_type(problem.dtype)), result_type_(data_type(problem.output_dtype)) {
    switch (o_.kind) {
      case ConvKind::forward:
      case ConvKind::forward_bias:
      case ConvKind::forward_statistics:
      case ConvKind::normalized_forward:
        forward();
        break;
      case ConvKind::dgrad:
      case ConvKind::dgrad_add:
      case ConvKind::normalized_dgrad:
        dgrad();
        break;
      case ConvKind::wgrad:
      case ConvKind::normalized_wgrad:
        convolve(kWgrad, images(), tensor(TensorId::filter, filter_layout(o_), result_type_), gradient());
    }
  }
  const std::vector<Descriptor>& all() const { return all_; }

 private:
  void forward() {
    const Descriptor y = tensor(TensorId::output, output_layout(o_), result_type_);
    const bool adds = o_.kind == ConvKind::forward_bias;
    const Descriptor made = adds ? passing(output_layout(o_)) : y;
    convolve(kForward, images(), filters(), made);
    if (adds)
      combine(CUDNN_POINTWISE_ADD, made, channels(TensorId::extra, o_.k), y);
    else if (o_.kind != ConvKind::forward)
      make_statistics(y);
  }

  void dgrad() {
    const TensorLayout layout = image_layout(o_);
    const Descriptor dx = tensor(TensorId::image, layout, result_type_);
    const bool gated = o_.kind == ConvKind::normalized_dgrad;
    const Descriptor made = gated ? passing(layout) : dx;
    convolve(kDgrad, made, filters(), gradient(), /*beta=*/o_.kind == ConvKind::dgrad_add ? 1.0f : 0.0f);
    if (gated) pass_relu(made, dx);
  }

  // x, after the prologue if there is one.
  Descriptor images() {
    const TensorLayout layout = image_layout(o_);
    Descriptor x = tensor(TensorId::image, layout, type_);
    if (o_.kind != ConvKind::normalized_forward && o_.kind != ConvKind::normalized_wgrad) return x;
    x = combine(CUDNN_POINTWISE_MUL, x, channels(TensorId::scale, o_.c, type_), passing(layout));
    x = combine(CUDNN_POINTWISE_ADD, x, channels(TensorId::shift, o_.c, type_), passing(layout));
    return combine(CUDNN_POINTWISE_RELU_FWD, x, std::nullopt, passing(layout));
  }
  Descriptor filters() { return tensor(TensorId::filter, filter_layout(o_), type_); }
  Descriptor gradient() { return tensor(TensorId::output, output_layout(o_), type_); }

  // dx = dy where the recomputed batch norm of x is positive, else 0; with the reductions of dx for dgamma and dbeta.
  void pass_relu(const Descriptor& dy, const Descriptor& dx) {
    const TensorLayout layout = image_layout(o_);
    const Descriptor x = tensor(TensorId::extra, layout, type_), mean = channels(TensorId::mean, o_.c);
    const Descriptor inv_std = channels(TensorId::inv_std, o_.c), gamma = channels(TensorId::gamma, o_.c);
    Descriptor y = combine(CUDNN_POINTWISE_SUB, x, mean, passing(layout));
    y = combine(CUDNN_POINTWISE_MUL, y, inv_std, passing(layout));
    y = combine(CUDNN_POINTWISE_MUL, y, gamma, passing(layout));
    y = combine(CUDNN_POINTWISE_ADD, y, channels(TensorId::beta, o_.c), passing(layout));
    Descriptor gate(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    gate.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise(CUDNN_POINTWISE_RELU_BWD))
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, y)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, dy)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, dx);
    all_.push_back(gate.finalize());
    Descriptor sums(CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR);
    sums.set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_DATA_FLOAT)
        .set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, x)
        .set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, dx)
        .set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, mean)
        .set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC, inv_std)
        .set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, gamma)
        .set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC, channels(TensorId::dgamma, o_.c))
        .set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC, channels(TensorId::dbeta, o_.c))
        .set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC, channels(TensorId::term_dy, o_.c))
        .set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC, channels(TensorId::term_x, o_.c))
        .set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS, channels(TensorId::term, o_.c));
    all_.push_back(sums.finalize());
  }

  void make_statistics(const Descriptor& y) {
    Descriptor made(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
    made.set(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_GENSTATS_SUM_SQSUM)
        .set(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_DATA_FLOAT)
        .set(CUDNN_ATTR_OPERATION_GENSTATS_XDESC, y)
        .set(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, channels(TensorId::sum, o_.k))
        .set(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, channels(TensorId::sum_of_squares, o_.k));
    all_.push_back(made.finalize());
  }

  // `beta`: factor of the previous contents of the result; 0: they are not read.
  void convolve(const OperationNames& names, const Descriptor& image, const Descriptor& filter,
                const Descriptor& output, float beta = 0) {
    Descriptor made(names.operation);
    made.set(names.alpha, 1.0f).set(names.beta, beta).set(names.convolution, convolution(o_));
    made.set(names.image, image).set(names.filter, filter).set(names.output, output);
    all_.push_back(made.finalize());
  }

  static Descriptor pointwise(cudnnPointwiseMode_t mode) {
    Descriptor made(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    return made.set(CUDNN_ATTR_POINTWISE_MODE, mode).set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT).finalize();
  }
  // result = mode(x, other), in f32.
  Descriptor combine(cudnnPointwiseMode_t mode, const Descriptor& x, const std::optional<Descriptor>& other,
                     const Descriptor& result) {
    Descriptor made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise(mode))
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, result);
    if (other) made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *other);
    all_.push_back(made.finalize());
    return result;
  }

  Descriptor tensor(TensorId id, const TensorLayout& layout, cudnnDataType_t type, bool within = false) {
    Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, static_cast<int64_t>(id))
        .set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
        .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, o_.alignment)
        .set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span(layout.extents))
        .set(CUDNN_ATTR_TENSOR_STRIDES, std::span(layout.strides));
    if (within) made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
    return made.finalize();
  }
  Descriptor channels(TensorId id, int64_t count, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return tensor(id, channels_last(1, count, 1, 1), type);
  }
  // Virtual tensor between two operations.
  Descriptor passing(const TensorLayout& layout) {
    return tensor(static_cast<TensorId>(next_within_++), layout, CUDNN_DATA_FLOAT, true);
  }

  const ConvProblem& o_;
  cudnnDataType_t type_, result_type_;
  std::vector<Descriptor> all_;
  int64_t next_within_ = static_cast<int64_t>(TensorId::first_within);
};

}  // namespace

Descriptor conv_graph(const ConvProblem& problem, const Target& target) {
  const Operations operations(problem);
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (target.handle) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle);
  return graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, std::span<const Descriptor>(operations.all())).finalize();
}

}  // namespace dtrain::cuda
