// MPI_Allreduce counterpart of dtrain-allreduce-benchmark.
// mpirun ... mpi_allreduce SIZES ITERATIONS WARMUP. SIZES are in bytes, separated by commas. Rank 0 prints a line of
// JSON: seconds by size, the median over the iterations of the slowest rank's time.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include <mpi.h>

namespace {

double measure(size_t bytes, int iterations, int warmup) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const size_t count = bytes / sizeof(float);
  const std::vector<float> terms(count, static_cast<float>(rank));
  std::vector<float> sums(count);
  std::vector<double> times;
  for (int i = 0; i < warmup + iterations; ++i) {
    sums = terms;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, sums.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (i >= warmup) times.push_back(MPI_Wtime() - begin);
  }
  std::vector<double> slowest(times.size());
  MPI_Allreduce(times.data(), slowest.data(), static_cast<int>(times.size()), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  const auto middle = slowest.begin() + static_cast<std::ptrdiff_t>(slowest.size() / 2);
  std::nth_element(slowest.begin(), middle, slowest.end());
  return *middle;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s SIZES ITERATIONS WARMUP\n", argv[0]);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  std::istringstream sizes(argv[1]);
  std::string line;
  for (std::string size; std::getline(sizes, size, ',');) {
    const double seconds = measure(std::stoull(size), std::atoi(argv[2]), std::atoi(argv[3]));
    line += (line.empty() ? "\"" : ", \"") + size + "\": " + std::to_string(seconds);
  }
  if (rank == 0) std::printf("{%s}\n", line.c_str());
  MPI_Finalize();
  return 0;
}
