"""What suite `kernels` measures: the cases, what each is worth, and the Loom programs for them."""

import dataclasses
import typing

# A power of two of floats that no cache holds, and one that lies in the cache of one core.
OUT = 1 << 25
IN = 1 << 16
EPSILON = "1.0e-5"  # of the norms, as in kernel_problem.h


@dataclasses.dataclass(frozen=True)
class Loom:
    """The kernel that computes a case: names of its sizes, in order, and of its buffers."""
    kernel: str
    sizes: tuple
    inputs: tuple
    scalars: tuple = ()  # between sizes and buffers: (name, type, value)
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
    return Loom(kernel, ("rows", "columns"), inputs, scalars)


_NORM = (("epsilon", "f32", EPSILON),)

KINDS = {
    "gemm_f32": Kind("f32 matrix product", "GFLOP/s", lambda m, n, k: 2 * m * n * k),
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


THREADS = (1, 2)
CUBES = [case("gemm_f32", n, n, n) for n in (512, 1024, 2048)]
STREAMS = [case(kind, n) for kind in ("copy", "copy.stream", "add", "add.stream")
           for n in (IN, OUT) if n == OUT or "stream" not in kind]
SUMS = [case("row_sum", 64, 1024), case("row_sum", 32768, 1024)]
MILLION = case("sum", 1 << 20)
READ = case("sum", OUT)
SOFTMAX = [case("softmax", 64, 1024), case("softmax", 32768, 1024)]
LAYER_NORM = [case("layer_norm", 64, 1024), case("layer_norm", 32768, 1024)]
RMS_NORM = [case("rms_norm", 64, 1024), case("rms_norm", 32768, 1024)]
FMA = case("fma", 1 << 20)


def program_name(one):
    return one.name.replace(":", "_").replace(".", "_")


def _declaration(loom):
    sizes = [f"%{name}: index" for name in loom.sizes]
    scalars = [f"%{name}: {type_}" for name, type_, _ in loom.scalars]
    buffers = [f"%{name}: buffer" for name in (*loom.inputs, "y")]
    return (f"kernel.decl @{loom.kernel}({', '.join(sizes)}) "
            f"launch({', '.join(sizes + scalars + buffers)})\n")


def _program(one, loom):
    name = program_name(one)
    if loom.whole:
        partials = 4 * -(-one.sizes[0] // 65536)
        return loom.whole.format(name=name, sizes=one.sizes, partials=partials)
    buffers = [f"%{name}" for name in (*loom.inputs, "y")]
    sizes = [f"%{name}" for name in loom.sizes]
    lines = [f"command.program.def public @{name}() "
             f"launch({', '.join(buffer + ': buffer' for buffer in buffers)}) {{"]
    lines += [f"  %{name} = index.constant {size} : index"
              for name, size in zip(loom.sizes, one.sizes)]
    lines += [f"  %{name} = scalar.constant {value} : {type_}"
              for name, type_, value in loom.scalars]
    scalars = [f"%{name}" for name, _, _ in loom.scalars]
    types = (["index"] * len(sizes) + [type_ for _, type_, _ in loom.scalars]
             + ["buffer"] * len(buffers))
    lines += [f"  kernel.launch @{loom.kernel}[{', '.join(sizes)}]"
              f"({', '.join(sizes + scalars + buffers)}) : "
              f"[{', '.join(['index'] * len(sizes))}]({', '.join(types)})",
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
