// Spike 0007 on CUDA: the same text and executor, a block of 32 threads a group. Needs no GPU to compile.
#include "0007_reference.h"
#include "0007_simt.h"

namespace {

struct CudaDevice {
  float* cells;
  __device__ int lane() const { return int(threadIdx.x); }
  __device__ int64_t group() const { return blockIdx.x; }
  __device__ int64_t groups() const { return gridDim.x; }
  __device__ void put(int l, float v) { cells[l] = v; }
  __device__ float get(int l) const { return cells[l]; }
  __device__ void barrier() { __syncthreads(); }
};

__global__ void kernel(const float* a, const float* b, float* product, float* sums, float* scans,
                       int64_t lines, int64_t n) {
  __shared__ float cells[spike::kLanes];
  spike::whole_spike(spike::LaneExecutor<CudaDevice>{{cells}}, a, b, product, sums, scans, lines, n);
}

float* on_device(const std::vector<float>& v) {
  float* p = nullptr;
  cudaMalloc(&p, v.size() * sizeof(float));
  cudaMemcpy(p, v.data(), v.size() * sizeof(float), cudaMemcpyHostToDevice);
  return p;
}
void fetch(std::vector<float>& v, const float* p) {
  cudaMemcpy(v.data(), p, v.size() * sizeof(float), cudaMemcpyDeviceToHost);
}
}  // namespace

int main() {
  using namespace spike;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return std::puts("no CUDA device"), 0;
  const std::vector<float> a = input(kLines * kLength, 1), b = input(kLines * kLength, 2);
  std::vector<float> c(a.size()), sums(kLines), scans(a.size());
  float *pc = on_device(c), *ps = on_device(sums), *pr = on_device(scans);
  kernel<<<3, kLanes>>>(on_device(a), on_device(b), pc, ps, pr, kLines, kLength);
  fetch(c, pc);
  fetch(sums, ps);
  fetch(scans, pr);
  return report("pointwise", c, mul_add_expected(a, b)) &
                 report("reduce", sums, sums_expected(a, kLines, kLength, false)) &
                 report("scan", scans, sums_expected(a, kLines, kLength, true))
             ? 0
             : 1;
}
