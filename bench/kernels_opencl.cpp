// PoCL on kernels with barriers, written in OpenCL C.
//
// usage: bench_kernels_opencl SOURCE BUDGET_MS CASE@THREADS...
// SOURCE is the text of the kernels. How many threads PoCL has is settled when the process starts,
// by POCL_MAX_PTHREAD_COUNT; the number in a case is its name only.

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "common.h"
#include "kernel_cases.h"

namespace loom::bench {
namespace {

void demand(cl_int status, std::string_view what) {
  require(status == CL_SUCCESS, fmt::format("{}: OpenCL status {}", what, status));
}

cl_device_id pocl_device() {
  std::array<cl_platform_id, 8> platforms = {};
  cl_uint count = 0;
  demand(clGetPlatformIDs(platforms.size(), platforms.data(), &count), "platforms");
  for (cl_uint i = 0; i < std::min<cl_uint>(count, platforms.size()); ++i) {
    std::array<char, 256> name = {};
    clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, name.size() - 1, name.data(), nullptr);
    cl_device_id device = nullptr;
    if (std::string_view(name.data()) == "Portable Computing Language" &&
        clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &device, nullptr) == CL_SUCCESS) {
      return device;
    }
  }
  fail("there is no PoCL");
}

class OpenCl {
 public:
  explicit OpenCl(const std::string& path) : source_(read_input(path)), device_(pocl_device()) {
    cl_int status = 0;
    context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &status);
    demand(status, "context");
    queue_ = clCreateCommandQueue(context_, device_, 0, &status);
    demand(status, "queue");
    const char* text = source_.c_str();
    program_ = clCreateProgramWithSource(context_, 1, &text, nullptr, &status);
    demand(status, "program");
    demand(clBuildProgram(program_, 1, &device_, "", nullptr, nullptr), "build");
  }

  Run make(const Problem& problem) {
    const std::string& kind = problem.kind();
    const bool scan = kind == "row_scan.barrier";
    const bool sum = kind == "row_sum.barrier";
    require(scan || sum || kind == "gemm_f32.barrier",
            fmt::format("no kernel is written for '{}'", kind));
    cl_int status = 0;
    const cl_kernel kernel = clCreateKernel(program_,
                                            scan  ? "barrier_row_scan"
                                            : sum ? "barrier_row_sum"
                                                  : "barrier_gemm",
                                            &status);
    demand(status, "kernel");
    cl_uint place = 0;
    for (size_t i = 0; i < problem.input_count(); ++i) bind(kernel, place++, problem.input(i));
    bind(kernel, place++, problem.output());
    const auto number = [&](size_t value) {
      const auto word = static_cast<cl_uint>(value);
      demand(clSetKernelArg(kernel, place++, sizeof(word), &word), "argument");
    };
    if (scan || sum) {
      if (sum) number(problem.size(1));
      return launch(kernel, {problem.size(0) * 256, 1}, {256, 1});
    }
    number(problem.size(1));
    number(problem.size(2));
    return launch(kernel, {problem.size(1), problem.size(0)}, {16, 16});
  }

 private:
  using Extent = std::array<size_t, 2>;

  // The memory itself; nothing is copied.
  void bind(cl_kernel kernel, cl_uint place, const Memory& memory) {
    cl_int status = 0;
    const cl_mem buffer = clCreateBuffer(context_, CL_MEM_USE_HOST_PTR | CL_MEM_READ_WRITE,
                                         memory.bytes().size(), memory.bytes().data(), &status);
    demand(status, "buffer");
    demand(clSetKernelArg(kernel, place, sizeof(cl_mem), static_cast<const void*>(&buffer)),
           "argument");
  }

  Run launch(cl_kernel kernel, const Extent& items, const Extent& group) const {
    return [this, kernel, items, group] {
      demand(clEnqueueNDRangeKernel(queue_, kernel, 2, nullptr, items.data(), group.data(), 0,
                                    nullptr, nullptr),
             "launch");
      demand(clFinish(queue_), "wait");
    };
  }

  std::string source_;
  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  cl_program program_ = nullptr;
};

}  // namespace
}  // namespace loom::bench

int main(int argc, char** argv) {
  using namespace loom::bench;
  require(argc > 2, "usage: bench_kernels_opencl SOURCE BUDGET_MS CASE@THREADS...");
  OpenCl program(argv[1]);
  return measure_cases(argc, argv, 2,
                       [&](const Problem& problem, unsigned) { return program.make(problem); });
}
