// The transforms of Winograd's F(4x4, 3x3) with the points 0, 1, -1, 2, -2, for any T with + - *.
//   y = A^T [(G g G^T) . (B^T d B)] A,  g a 3x3 filter, d a 6x6 tile of the image, y 4x4
#pragma once

namespace dtrain::cpu::DT_ISA {

// One row or column of B^T d.
template <class T>
inline void winograd_input(const T d[6], T out[6]) {
  const T a = d[4] - 4.0f * d[2], b = d[3] - 4.0f * d[1];
  const T e = d[4] - d[2], f = 2.0f * (d[3] - d[1]);
  out[0] = 4.0f * d[0] - 5.0f * d[2] + d[4];
  out[1] = a + b;
  out[2] = a - b;
  out[3] = e + f;
  out[4] = e - f;
  out[5] = 4.0f * d[1] - 5.0f * d[3] + d[5];
}

// A^T m
template <class T>
inline void winograd_output(const T m[6], T out[4]) {
  const T a = m[1] + m[2], b = m[1] - m[2];
  const T e = m[3] + m[4], f = m[3] - m[4];
  out[0] = m[0] + a + e;
  out[1] = b + 2.0f * f;
  out[2] = a + 4.0f * e;
  out[3] = b + 8.0f * f + m[5];
}

// G g
template <class T>
inline void winograd_filter(const T g[3], T out[6]) {
  const T a = g[0] + g[2], e = g[0] + 4.0f * g[2], f = 2.0f * g[1];
  out[0] = 0.25f * g[0];
  out[1] = (-1.0f / 6) * (a + g[1]);
  out[2] = (-1.0f / 6) * (a - g[1]);
  out[3] = (1.0f / 24) * (e + f);
  out[4] = (1.0f / 24) * (e - f);
  out[5] = g[2];
}

// A dy: the adjoint of winograd_output, for the gradient of the filters.
template <class T>
inline void winograd_output_adjoint(const T y[4], T out[6]) {
  const T a = y[0] + y[2], b = y[1] + y[3];
  const T e = y[0] + 4.0f * y[2], f = 2.0f * y[1] + 8.0f * y[3];
  out[0] = y[0];
  out[1] = a + b;
  out[2] = a - b;
  out[3] = e + f;
  out[4] = e - f;
  out[5] = y[3];
}

// G^T u: the adjoint of winograd_filter.
template <class T>
inline void winograd_filter_adjoint(const T u[6], T out[3]) {
  const T a = u[1] + u[2], b = u[1] - u[2];
  const T e = u[3] + u[4], f = u[3] - u[4];
  out[0] = 0.25f * u[0] - (1.0f / 6) * a + (1.0f / 24) * e;
  out[1] = (1.0f / 12) * f - (1.0f / 6) * b;
  out[2] = (1.0f / 6) * (e - a) + u[5];
}

// A separable transform of an N x N block into an M x M block: columns first, then rows.
template <int N, int M, class T, class Transform>
inline void transform_2d(const T (&in)[N][N], T (&out)[M][M], Transform&& one) {
  T half[M][N];
  for (int j = 0; j < N; ++j) {
    T column[N], result[M];
    for (int i = 0; i < N; ++i) column[i] = in[i][j];
    one(column, result);
    for (int i = 0; i < M; ++i) half[i][j] = result[i];
  }
  for (int i = 0; i < M; ++i) one(half[i], out[i]);
}

}  // namespace dtrain::cpu::DT_ISA
