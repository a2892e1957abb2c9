"""What suite `kernels` measures: the cases, what each is worth, and the Loom programs for them."""

import dataclasses
import typing

# Floats of an array that no cache holds, that the cache of all cores holds, and that of one core.
OUT = 1 << 25
SHARED = 1 << 20
IN = 1 << 16
EPSILON = "1.0e-5"  # of the norms, as in kernel_problem.h


@dataclasses.dataclass(frozen=True)
class Loom:
    """The kernel that computes a case: names of its sizes, in order, and of its buffers."""
    kernel: str
    sizes: tuple
    inputs: tuple
    workload: int = 3  # that many sizes decide the launch
    # Between sizes and buffers: (name, type, value), the value perhaps a function of the sizes.
    scalars: tuple = ()
    whole: str = ""  # instead: the text of a program, with {sizes}


@dataclasses.dataclass(frozen=True)
class Kind:
    what: str  # with {sizes}
    unit: str
    work: typing.Callable  # of the sizes: bytes or operations of one call
    loom: Loom | None = None


def _elementwise(kernel, inputs):
    return Loom(kernel, ("n",), inputs)


def _rows(kernel, inputs=("x",), scalars=()):
    return Loom(kernel, ("rows", "columns"), inputs, scalars=scalars)


def _weights(kernel):
    return Loom(kernel, ("rows", "columns"), ("w", "x"), workload=1)


def _product(kernel, inputs=("a", "b")):
    return Loom(kernel, ("m", "n", "k"), inputs)


_STRIDES = (("a_stride", "index", lambda _, m, n, k: m * k),
            ("b_stride", "index", lambda _, m, n, k: k * n),
            ("c_stride", "index", lambda _, m, n, k: m * n))
_NORM = (("epsilon", "f32", EPSILON),)

KINDS = {
    "gemm_f32": Kind("f32 matrix product", "GFLOP/s", lambda m, n, k: 2 * m * n * k,
                     _product("gemm_f32")),
    "gemm_bf16": Kind("bf16 matrix product", "GFLOP/s", lambda m, n, k: 2 * m * n * k,
                      _product("gemm_bf16")),
    "gemm_rounded_bf16": Kind("bf16 matrix product to bf16", "GFLOP/s",
                              lambda m, n, k: 2 * m * n * k, _product("gemm_rounded_bf16")),
    "gemm_f16": Kind("f16 matrix product", "GFLOP/s", lambda m, n, k: 2 * m * n * k,
                     _product("gemm_f16")),
    "gemm_i8": Kind("i8 matrix product to i32", "GOP/s", lambda m, n, k: 2 * m * n * k,
                    _product("gemm_i8")),
    "gemm_batched_f32": Kind("batch of f32 matrix products", "GFLOP/s",
                             lambda batch, m, n, k: 2 * batch * m * n * k,
                             Loom("gemm_batched_f32", ("batch", "m", "n", "k"), ("a", "b"), 4,
                                  _STRIDES)),
    "gemm_fused_f32": Kind("f32 matrix product with bias and gelu", "GFLOP/s",
                           lambda m, n, k: 2 * m * n * k,
                           Loom("gemm_fused_f32", ("m", "n", "k"), ("a", "b", "bias"), whole="""\
kernel.decl @gemm_fused_f32(%m: index, %n: index, %k: index) launch(%m: index, %n: index, \
%k: index, %has_bias: index, %activation: index, %has_residual: index, %a: buffer, %b: buffer, \
%bias: buffer, %residual: buffer, %c: buffer)

command.program.def public @{name}() launch(%a: buffer, %b: buffer, %bias: buffer, %c: buffer) {{
  %m = index.constant {sizes[0]} : index
  %n = index.constant {sizes[1]} : index
  %k = index.constant {sizes[2]} : index
  %no = index.constant 0 : index
  %yes = index.constant 1 : index
  %gelu = index.constant 3 : index
  kernel.launch @gemm_fused_f32[%m, %n, %k](%m, %n, %k, %yes, %gelu, %no, %a, %b, %bias, %c, \
%c) : [index, index, index](index, index, index, index, index, index, buffer, buffer, buffer, \
buffer, buffer)
  command.return
}}
""")),
    "gemv_f32": Kind("f32 matrix by vector", "GB/s", lambda r, c: 4 * r * c, _weights("gemv_f32")),
    "gemv_f16": Kind("f16 matrix by vector", "GB/s", lambda r, c: 2 * r * c, _weights("gemv_f16")),
    "gemv_bf16": Kind("bf16 matrix by vector", "GB/s", lambda r, c: 2 * r * c,
                      _weights("gemv_bf16")),
    "gemv_q8_0": Kind("q8_0 matrix by vector", "GB/s", lambda r, c: 34 * r * c // 32,
                      _weights("gemv_q8_0")),
    "gemv_q4_0": Kind("q4_0 matrix by vector", "GB/s", lambda r, c: 18 * r * c // 32,
                      _weights("gemv_q4_0")),
    "copy": Kind("copy", "GB/s", lambda n: 8 * n, _elementwise("copy_f32", ("x",))),
    "copy.stream": Kind("copy around the caches", "GB/s", lambda n: 8 * n,
                        _elementwise("copy_stream_f32", ("x",))),
    "add": Kind("sum of two arrays", "GB/s", lambda n: 12 * n,
                _elementwise("add_f32", ("x", "z"))),
    "add.stream": Kind("sum of two arrays around the caches", "GB/s", lambda n: 12 * n,
                       _elementwise("add_stream_f32", ("x", "z"))),
    "row_sum": Kind("row sums", "GB/s", lambda r, c: 4 * r * c, _rows("row_sum_f32")),
    "sum": Kind("sum of an array", "GB/s", lambda n: 4 * n, Loom("sum_f32", ("n",), ("x",), whole="""\
command.program.decl @sum_f32(%n: index) launch(%x: buffer, %partials: buffer, %y: buffer)

command.program.def public @{name}() launch(%x: buffer, %y: buffer) {{
  %n = index.constant {sizes[0]} : index
  %bytes = index.constant {partials} : offset
  %partials = buffer.alloca<global> align(64) %bytes : buffer
  command.program.launch @sum_f32[%n](%x, %partials, %y) : [index](buffer, buffer, buffer)
  command.return
}}
""")),
    "softmax": Kind("row softmax", "GB/s", lambda r, c: 8 * r * c, _rows("softmax_f32")),
    "layer_norm": Kind("LayerNorm", "GB/s", lambda r, c: 8 * r * c + 8 * c,
                       _rows("layer_norm_f32", ("x", "gamma", "beta"), _NORM)),
    "rms_norm": Kind("RMSNorm", "GB/s", lambda r, c: 8 * r * c + 4 * c,
                     _rows("rms_norm_f32", ("x", "gamma"), _NORM)),
    "attention": Kind("attention", "GFLOP/s", lambda h, n, d: 4 * h * n * n * d,
                      Loom("attention_f32", ("heads", "length", "width"), ("q", "k", "v"), whole="""\
kernel.decl @attention_f32(%heads: index, %queries: index) launch(%heads: index, %kv_heads: index, \
%queries: index, %keys: index, %dim: index, %causal: index, %scale: f32, %q: buffer, %k: buffer, \
%v: buffer, %o: buffer)

command.program.def public @{name}() launch(%q: buffer, %k: buffer, %v: buffer, %o: buffer) {{
  %heads = index.constant {sizes[0]} : index
  %length = index.constant {sizes[1]} : index
  %width = index.constant {sizes[2]} : index
  %causal = index.constant 0 : index
  %scale = scalar.constant {scale} : f32
  kernel.launch @attention_f32[%heads, %length](%heads, %heads, %length, %length, %width, %causal, \
%scale, %q, %k, %v, %o) : [index, index](index, index, index, index, index, index, f32, buffer, \
buffer, buffer, buffer)
  command.return
}}
""")),
    # By the kernels of barriers.loom and barriers.cl.
    "row_scan.barrier": Kind("row scan with barriers", "GB/s", lambda r, c: 8 * r * c,
                             _rows("barrier_row_scan")),
    "row_sum.barrier": Kind("row sums with barriers", "GB/s", lambda r, c: 4 * r * c,
                            _rows("barrier_row_sum")),
    "gemm_f32.barrier": Kind("f32 matrix product with barriers", "GFLOP/s",
                             lambda m, n, k: 2 * m * n * k,
                             Loom("barrier_gemm", ("m", "n", "k"), ("a", "b"))),
    "fma": Kind("multiply-adds in registers", "GFLOP/s", lambda n: 160 * n),
}


@dataclasses.dataclass(frozen=True)
class Case:
    kind: str
    sizes: tuple

    @property
    def name(self):
        """As the programs of this suite read it."""
        return ":".join([self.kind, *map(str, self.sizes)])

    @property
    def title(self):
        return f"{KINDS[self.kind].what} of {' x '.join(f'{size:,}' for size in self.sizes)}"

    @property
    def unit(self):
        return KINDS[self.kind].unit

    def rate(self, nanoseconds):
        return KINDS[self.kind].work(*self.sizes) / nanoseconds


def case(kind, *sizes):
    return Case(kind, sizes)


def _rows_of(kind):
    """A matrix of rows of 1,024 for each of the three places."""
    return [case(kind, size // 1024, 1024) for size in (IN, SHARED, OUT)]


THREADS = (1, 2)
CUBES = [case("gemm_f32", n, n, n) for n in (512, 1024, 2048)]
HALF_CUBES = [case("gemm_bf16", n, n, n) for n in (512, 1024, 2048)]
ROUNDED = case("gemm_rounded_bf16", 1024, 1024, 1024)
SHORT = case("gemm_f16", 1024, 1024, 1024)
BYTES = case("gemm_i8", 1024, 1024, 1024)
BATCH = case("gemm_batched_f32", 64, 128, 128, 128)
FUSED = case("gemm_fused_f32", 1024, 1024, 1024)
PRODUCTS = [ROUNDED, SHORT, BYTES, BATCH, FUSED]
STREAMS = [case(kind, n) for kind in ("copy", "add") for n in (IN, SHARED, OUT)]
STREAMS += [case(kind, OUT) for kind in ("copy.stream", "add.stream")]
SUMS = _rows_of("row_sum")
MILLION = case("sum", SHARED)
READ = case("sum", OUT)
SOFTMAX = _rows_of("softmax")
LAYER_NORM = _rows_of("layer_norm")
RMS_NORM = _rows_of("rms_norm")
# 64 MiB of weights and more.
WEIGHTS = [case("gemv_f32", 8192, 4096), case("gemv_bf16", 16384, 4096),
           case("gemv_f16", 8192, 4096),
           case("gemv_q8_0", 32768, 4096), case("gemv_q4_0", 65536, 4096)]
ATTENTION = case("attention", 8, 1024, 64)
BARRIERS = [case("row_scan.barrier", 4096, 256), case("row_sum.barrier", 1024, 1024),
            case("gemm_f32.barrier", 512, 512, 512)]
FMA = case("fma", SHARED)


def program_name(one):
    return one.name.replace(":", "_").replace(".", "_")


def _declaration(loom):
    sizes = [f"%{name}: index" for name in loom.sizes]
    scalars = [f"%{name}: {type_}" for name, type_, _ in loom.scalars]
    buffers = [f"%{name}: buffer" for name in (*loom.inputs, "y")]
    return (f"kernel.decl @{loom.kernel}({', '.join(sizes[:loom.workload])}) "
            f"launch({', '.join(sizes + scalars + buffers)})\n")


def _program(one, loom):
    name = program_name(one)
    if loom.whole:
        partials = 4 * -(-one.sizes[0] // 65536)
        return loom.whole.format(name=name, sizes=one.sizes, partials=partials,
                                 scale=one.sizes[-1] ** -0.5)
    buffers = [f"%{name}" for name in (*loom.inputs, "y")]
    sizes = [f"%{name}" for name in loom.sizes]
    lines = [f"command.program.def public @{name}() "
             f"launch({', '.join(buffer + ': buffer' for buffer in buffers)}) {{"]
    lines += [f"  %{name} = index.constant {size} : index"
              for name, size in zip(loom.sizes, one.sizes)]
    lines += [f"  %{name} = {'index' if type_ == 'index' else 'scalar'}.constant "
              f"{value(*one.sizes) if callable(value) else value} : {type_}"
              for name, type_, value in loom.scalars]
    scalars = [f"%{name}" for name, _, _ in loom.scalars]
    types = (["index"] * len(sizes) + [type_ for _, type_, _ in loom.scalars]
             + ["buffer"] * len(buffers))
    workload = sizes[:loom.workload]
    lines += [f"  kernel.launch @{loom.kernel}[{', '.join(workload)}]"
              f"({', '.join(sizes + scalars + buffers)}) : "
              f"[{', '.join(['index'] * len(workload))}]({', '.join(types)})",
              "  command.return", "}"]
    return "\n".join(lines) + "\n"


def loom_programs(cases):
    """One program a case, over kernels of the library."""
    parts, declared = [], set()
    for one in cases:
        loom = KINDS[one.kind].loom
        program = _program(one, loom)
        if loom.whole:
            declaration, program = program.split("\n\n", 1)
            declaration += "\n"
        else:
            declaration = _declaration(loom)
        if loom.kernel not in declared:
            declared.add(loom.kernel)
            parts.insert(0, declaration)
        parts.append(program)
    return "\n".join(parts)
