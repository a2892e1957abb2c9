// Kernels with barriers, step by step as in barriers.loom beside it.

kernel void barrier_row_scan(global const float* x, global float* y) {
  local float shared[256];
  const size_t item = get_local_id(0);
  const size_t place = get_group_id(0) * 256 + item;
  shared[item] = x[place];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 0; step < 8; ++step) {
    const size_t distance = 1 << step;
    const float term = item >= distance ? shared[item - distance] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    shared[item] += term;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  y[place] = shared[item];
}

kernel void barrier_row_sum(global const float* x, global float* y, uint columns) {
  local float shared[256];
  const size_t item = get_local_id(0);
  const size_t row = get_group_id(0);
  float mine = 0.0f;
  for (size_t column = item; column < columns; column += 256) mine += x[row * columns + column];
  shared[item] = mine;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 0; step < 8; ++step) {
    const size_t width = 128 >> step;
    if (item < width) shared[item] += shared[item + width];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (item == 0) y[row] = shared[0];
}

kernel void barrier_gemm(global const float* a, global const float* b, global float* y, uint n,
                         uint k) {
  local float left[16][16];
  local float right[16][16];
  const size_t x = get_local_id(0), y_item = get_local_id(1);
  const size_t column = get_group_id(0) * 16 + x;
  const size_t row = get_group_id(1) * 16 + y_item;
  float sum = 0.0f;
  for (size_t t = 0; t < k; t += 16) {
    left[y_item][x] = a[row * k + t + x];
    right[y_item][x] = b[(t + y_item) * n + column];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int q = 0; q < 16; ++q) sum = fma(left[y_item][q], right[q][x], sum);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  y[row * n + column] = sum;
}
