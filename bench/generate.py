"""Writes the generated inputs of the benchmarks; every text depends only on its arguments."""

import pathlib

# One row an operation: (what it stands for, Loom text, MLIR text). `{name}` fields are filled in
# for each function. Both columns hold the same number of operations of the same kind, so the two
# files of a pair differ only in spelling.
_SCALE = [
    ("func.def @scale_{k}(%input: buffer, %output: buffer, %factor: f32) {{",
     "func.func @scale_{k}(%input: memref<?xi8>, %output: memref<?xi8>, %factor: f32) {{"),
    ("  %base = index.constant {base} : offset",
     "  %base = arith.constant {base} : index"),
    ("  %source = buffer.view %input[%base] : buffer -> view<{n}xf32>",
     "  %source = memref.view %input[%base][] : memref<?xi8> to memref<{n}xf32>"),
    ("  %target = buffer.view %output[%base] : buffer -> view<{n}xf32>",
     "  %target = memref.view %output[%base][] : memref<?xi8> to memref<{n}xf32>"),
    ("  %first = index.constant 0 : index",
     "  %first = arith.constant 0 : index"),
    ("  %count = index.constant {n} : index",
     "  %count = arith.constant {n} : index"),
    ("  %step = index.constant 1 : index",
     "  %step = arith.constant 1 : index"),
    ("  scf.for %element = [%first to %count step %step] {{",
     "  scf.for %element = %first to %count step %step {{"),
    ("    %value = view.load %source[%element] : view<{n}xf32> -> f32",
     "    %value = memref.load %source[%element] : memref<{n}xf32>"),
    ("    %scaled = scalar.mulf %value, %factor : f32",
     "    %scaled = arith.mulf %value, %factor : f32"),
    ("    view.store %scaled, %target[%element] : f32, view<{n}xf32>",
     "    memref.store %scaled, %target[%element] : memref<{n}xf32>"),
    ("  }}", "  }}"),
    ("  func.return", "  func.return"),
    ("}}", "}}"),
]

_SUM = [
    ("func.def @sum_{k}(%input: buffer, %seed: f32) -> (f32) {{",
     "func.func @sum_{k}(%input: memref<?xi8>, %seed: f32) -> f32 {{"),
    ("  %base = index.constant {base} : offset",
     "  %base = arith.constant {base} : index"),
    ("  %source = buffer.view %input[%base] : buffer -> view<{n}xf32>",
     "  %source = memref.view %input[%base][] : memref<?xi8> to memref<{n}xf32>"),
    ("  %first = index.constant 0 : index",
     "  %first = arith.constant 0 : index"),
    ("  %count = index.constant {n} : index",
     "  %count = arith.constant {n} : index"),
    ("  %step = index.constant 1 : index",
     "  %step = arith.constant 1 : index"),
    ("  %total = scf.for %element = [%first to %count step %step](%sum = %seed : f32) -> (f32) {{",
     "  %total = scf.for %element = %first to %count step %step iter_args(%sum = %seed) -> (f32) {{"),
    ("    %value = view.load %source[%element] : view<{n}xf32> -> f32",
     "    %value = memref.load %source[%element] : memref<{n}xf32>"),
    ("    %square = scalar.mulf %value, %value : f32",
     "    %square = arith.mulf %value, %value : f32"),
    ("    %next = scalar.addf %sum, %square : f32",
     "    %next = arith.addf %sum, %square : f32"),
    ("    scf.yield %next : f32",
     "    scf.yield %next : f32"),
    ("  }}", "  }}"),
    ("  func.return %total : f32", "  func.return %total : f32"),
    ("}}", "}}"),
]

_MIX = [
    ("func.def @mix_{k}(%a: f32, %b: f32, %c: f32) -> (f32) {{",
     "func.func @mix_{k}(%a: f32, %b: f32, %c: f32) -> f32 {{"),
    ("  %half = scalar.constant 0.5 : f32", "  %half = arith.constant 0.5 : f32"),
    ("  %bias = scalar.constant {n}.25 : f32", "  %bias = arith.constant {n}.25 : f32"),
    ("  %product = scalar.mulf %a, %b : f32", "  %product = arith.mulf %a, %b : f32"),
    ("  %shifted = scalar.addf %product, %bias : f32",
     "  %shifted = arith.addf %product, %bias : f32"),
    ("  %centre = scalar.mulf %shifted, %half : f32",
     "  %centre = arith.mulf %shifted, %half : f32"),
    ("  %spread = scalar.subf %centre, %c : f32", "  %spread = arith.subf %centre, %c : f32"),
    ("  %square = scalar.mulf %spread, %spread : f32",
     "  %square = arith.mulf %spread, %spread : f32"),
    ("  %above = scalar.cmpf ogt, %square, %bias : f32",
     "  %above = arith.cmpf ogt, %square, %bias : f32"),
    ("  %limited = scf.select %above, %bias, %square : f32",
     "  %limited = arith.select %above, %bias, %square : f32"),
    ("  %ratio = scalar.divf %limited, %half : f32", "  %ratio = arith.divf %limited, %half : f32"),
    ("  %result = scalar.maximumf %ratio, %c : f32", "  %result = arith.maximumf %ratio, %c : f32"),
    ("  func.return %result : f32", "  func.return %result : f32"),
    ("}}", "}}"),
]

_PICK = [
    ("func.def @pick_{k}(%row: index, %column: index, %input: buffer) -> (f32) {{",
     "func.func @pick_{k}(%row: index, %column: index, %input: memref<?xi8>) -> f32 {{"),
    ("  %base = index.constant {base} : offset", "  %base = arith.constant {base} : index"),
    ("  %source = buffer.view %input[%base] : buffer -> view<{n}x16xf32>",
     "  %source = memref.view %input[%base][] : memref<?xi8> to memref<{n}x16xf32>"),
    ("  %rows = index.constant {n} : index", "  %rows = arith.constant {n} : index"),
    ("  %width = index.constant 16 : index", "  %width = arith.constant 16 : index"),
    ("  %moved = index.add %row, %column : index", "  %moved = arith.addi %row, %column : index"),
    ("  %wide = index.mul %moved, %width : index", "  %wide = arith.muli %moved, %width : index"),
    ("  %inside = index.cmp slt, %wide, %rows : index",
     "  %inside = arith.cmpi slt, %wide, %rows : index"),
    ("  %picked = scf.if %inside -> (f32) {{", "  %picked = scf.if %inside -> (f32) {{"),
    ("    %value = view.load %source[%row, %column] : view<{n}x16xf32> -> f32",
     "    %value = memref.load %source[%row, %column] : memref<{n}x16xf32>"),
    ("    scf.yield %value : f32", "    scf.yield %value : f32"),
    ("  }} else {{", "  }} else {{"),
    ("    %zero = scalar.constant 0.0 : f32", "    %zero = arith.constant 0.0 : f32"),
    ("    scf.yield %zero : f32", "    scf.yield %zero : f32"),
    ("  }}", "  }}"),
    ("  %mixed = func.call @mix_{k}(%picked, %picked, %picked) : (f32, f32, f32) -> (f32)",
     "  %mixed = func.call @mix_{k}(%picked, %picked, %picked) : (f32, f32, f32) -> f32"),
    ("  func.return %mixed : f32", "  func.return %mixed : f32"),
    ("}}", "}}"),
]

_SHAPES = [_SCALE, _SUM, _MIX, _PICK]


def twins(functions, loom_path, mlir_path):
    """Writes the same program in Loom and in MLIR; returns the operations spelled in each.

    `functions` is a multiple of four. Terminators that both languages leave out are not counted.
    """
    ops = 0
    with open(loom_path, "w") as loom, open(mlir_path, "w") as mlir:
        for number in range(functions):
            rows = _SHAPES[number % len(_SHAPES)]
            fields = {"k": f"{number // len(_SHAPES):05d}", "n": 8 + number * 7 % 4089,
                      "base": 64 * (number % 31)}
            if number:
                loom.write("\n")
                mlir.write("\n")
            for loom_row, mlir_row in rows:
                loom.write(loom_row.format(**fields) + "\n")
                mlir.write(mlir_row.format(**fields) + "\n")
                ops += not loom_row.lstrip().startswith("}}")
    return ops


_UNIT_CONFIG = """\
  %unit = index.constant 1 : index
  kernel.launch.config workgroups(%unit, %unit, %unit) workgroup_size(%unit, %unit, %unit) : index
"""


def library(symbols, library_path, main_path):
    """A library of `symbols` exported kernels and a primary module whose one root launches three."""
    with open(library_path, "w") as out:
        for number in range(symbols):
            if number:
                out.write("\n")
            out.write(f"""\
kernel.def export("block_{number}") @block_{number}(%count: index) {{
  %unit = index.constant 1 : index
  kernel.launch.config workgroups(%count, %unit, %unit) workgroup_size(%unit, %unit, %unit) : index
}} launch(%input: buffer, %output: buffer) {{
  %element = kernel.workgroup.id<x> : index
  %base = index.constant 0 : offset
  %source = buffer.view %input[%base] : buffer -> view<64xf32>
  %target = buffer.view %output[%base] : buffer -> view<64xf32>
  %factor = scalar.constant {number}.5 : f32
  %value = view.load %source[%element] : view<64xf32> -> f32
  %scaled = scalar.mulf %value, %factor : f32
  view.store %scaled, %target[%element] : f32, view<64xf32>
  kernel.return
}}
""")
    used = [symbols // 7, symbols // 2, symbols - 1]
    with open(main_path, "w") as out:
        for number in used:
            out.write(f"kernel.decl @block_{number}(%count: index) "
                      "launch(%input: buffer, %output: buffer)\n")
        out.write("\ncommand.program.def public @main() launch(%state: buffer) {\n"
                  "  %count = index.constant 64 : index\n")
        for number in used:
            out.write(f"  kernel.launch @block_{number}[%count](%state, %state) : "
                      "[index](buffer, buffer)\n")
        out.write("  command.return\n}\n")


LAUNCHES_A_LAYER = 8


def model(launches, path):
    """A layered model of `launches` launches: every layer has eight, each with its own weights."""
    layers = launches // LAUNCHES_A_LAYER
    stages = ["norm", "query", "key", "value", "attend", "project", "expand", "reduce"]
    with open(path, "w") as out:
        for stage in stages:
            out.write(f"""\
kernel.def export("{stage}") @{stage}(%count: index) {{
  %unit = index.constant 1 : index
  %lanes = index.constant 4 : index
  %round = index.constant 3 : index
  %padded = index.add %count, %round : index
  %groups = index.div %padded, %lanes : index
  kernel.launch.config workgroups(%groups, %unit, %unit) workgroup_size(%lanes, %unit, %unit) : index
}} launch(%weights: view<8xf32>, %input: buffer, %output: buffer) {{
  %element = kernel.workitem.dispatch.id<x> : index
  %base = index.constant 0 : offset
  %source = buffer.view %input[%base] : buffer -> view<8xf32>
  %target = buffer.view %output[%base] : buffer -> view<8xf32>
  %weight = view.load %weights[%element] : view<8xf32> -> f32
  %value = view.load %source[%element] : view<8xf32> -> f32
  %result = scalar.mulf %value, %weight : f32
  view.store %result, %target[%element] : f32, view<8xf32>
  kernel.return
}}

""")
        bindings = "launch(%parameters: buffer, %state: buffer, %scratch: buffer)"
        out.write(f"command.program.def @layer(%layer: index, %count: index) {bindings} "
                  f"where [range(%layer, 0, {max(layers - 1, 1)}), range(%count, 1, 8)] {{\n")
        for number, stage in enumerate(stages):
            source, target = ("%state", "%scratch") if number % 2 == 0 else ("%scratch", "%state")
            out.write(f"""\
  %{stage} = command.parameter %parameters, "blk.{{}}.{stage}.weight"[%layer] : view<8xf32>
  kernel.launch @{stage}[%count](%{stage}, {source}, {target}) : [index](view<8xf32>, buffer, buffer)
""")
        out.write(f"""\
  command.return
}}

command.program.def public @model() {bindings} {{
  %count = index.constant 8 : index
  %first = index.constant 0 : index
  %layers = index.constant {layers} : index
  %step = index.constant 1 : index
  scf.for %layer = [%first to %layers step %step] unroll {{
    command.program.launch @layer[%layer, %count](%parameters, %state, %scratch) : [index, index](buffer, buffer, buffer)
  }}
  command.return
}}
""")


def dispatches(count, path):
    """Programs of `count` dispatches: empty kernels to time, counting kernels to check.

    `@serial_K` is a chain, `@fork_K` a chain of forks of two siblings with a join after each; K is
    `empty` (touches nothing) or `count` (adds one to element 0 of its buffer). `@one_work` launches
    once, `@fork_work` forks two, a kernel that takes `state[1]` through as many steps of a recurrence
    as `state[0]` says.
    """
    with open(path, "w") as out:
        out.write(f"""\
kernel.def export("empty") @empty() {{
{_UNIT_CONFIG}}} launch(%state: buffer) {{
  kernel.return
}}

kernel.def export("count") @count() {{
{_UNIT_CONFIG}}} launch(%state: buffer) {{
  %base = index.constant 0 : offset
  %first = index.constant 0 : index
  %one = scalar.constant 1.0 : f32
  %view = buffer.view %state[%base] : buffer -> view<1xf32>
  %value = view.load %view[%first] : view<1xf32> -> f32
  %next = scalar.addf %value, %one : f32
  view.store %next, %view[%first] : f32, view<1xf32>
  kernel.return
}}

kernel.def export("work") @work() {{
{_UNIT_CONFIG}}} launch(%state: buffer) {{
  %base = index.constant 0 : offset
  %first = index.constant 0 : index
  %one = index.constant 1 : index
  %factor = scalar.constant 1664525 : i32
  %term = scalar.constant 1013904223 : i32
  %view = buffer.view %state[%base] : buffer -> view<2xi32>
  %steps = view.load %view[0] : view<2xi32> -> i32
  %end = index.cast %steps : i32 to index
  %start = view.load %view[1] : view<2xi32> -> i32
  %last = scf.for %i = [%first to %end step %one](%x = %start : i32) -> (i32) {{
    %product = scalar.muli %x, %factor : i32
    %next = scalar.addi %product, %term : i32
    scf.yield %next : i32
  }}
  view.store %last, %view[1] : i32, view<2xi32>
  kernel.return
}}

command.program.def public @one_work() launch(%left: buffer) {{
  kernel.launch @work(%left) : (buffer)
  command.return
}}

command.program.def public @fork_work() launch(%left: buffer, %right: buffer) {{
  command.concurrent {{
    kernel.launch @work(%left) : (buffer)
    kernel.launch @work(%right) : (buffer)
  }}
  command.return
}}
""")
        loop = """\
  %first = index.constant 0 : index
  %count = index.constant {trips} : index
  %step = index.constant 1 : index
  scf.for %i = [%first to %count step %step] unroll {{
"""
        for kernel in ("empty", "count"):
            out.write(f"\ncommand.program.def public @serial_{kernel}() launch(%left: buffer) {{\n"
                      + loop.format(trips=count)
                      + f"    kernel.launch @{kernel}(%left) : (buffer)\n"
                      "  }\n  command.return\n}\n")
            out.write(f"\ncommand.program.def public @fork_{kernel}() "
                      "launch(%left: buffer, %right: buffer) {\n"
                      + loop.format(trips=count // 2)
                      + "    command.concurrent {\n"
                      f"      kernel.launch @{kernel}(%left) : (buffer)\n"
                      f"      kernel.launch @{kernel}(%right) : (buffer)\n"
                      "    }\n  }\n  command.return\n}\n")


ELEMENTS = 1024
KERNEL_STEPS = {"small": 1, "large": 64}


def kernel(size, path):
    """One elementwise kernel over `ELEMENTS` values: `acc = acc * x + y`, 1 or 64 times."""
    body = []
    previous = "%y"
    for step in range(KERNEL_STEPS[size]):
        body.append(f"  %product_{step} = scalar.mulf {previous}, %x : f32\n"
                    f"  %sum_{step} = scalar.addf %product_{step}, %y : f32\n")
        previous = f"%sum_{step}"
    pathlib.Path(path).write_text(f"""\
kernel.def export("{size}") @{size}() {{
  %unit = index.constant 1 : index
  %count = index.constant {ELEMENTS} : index
  kernel.launch.config workgroups(%count, %unit, %unit) workgroup_size(%unit, %unit, %unit) : index
}} launch(%left: buffer, %right: buffer, %output: buffer) {{
  %element = kernel.workgroup.id<x> : index
  %base = index.constant 0 : offset
  %left_view = buffer.view %left[%base] : buffer -> view<{ELEMENTS}xf32>
  %right_view = buffer.view %right[%base] : buffer -> view<{ELEMENTS}xf32>
  %target = buffer.view %output[%base] : buffer -> view<{ELEMENTS}xf32>
  %x = view.load %left_view[%element] : view<{ELEMENTS}xf32> -> f32
  %y = view.load %right_view[%element] : view<{ELEMENTS}xf32> -> f32
{"".join(body)}  view.store {previous}, %target[%element] : f32, view<{ELEMENTS}xf32>
  kernel.return
}}

command.program.def public @run() launch(%left: buffer, %right: buffer, %output: buffer) {{
  kernel.launch @{size}(%left, %right, %output) : (buffer, buffer, buffer)
  command.return
}}
""")


def cases(count, path):
    """Small check cases over one kernel, each with its own data and size."""
    with open(path, "w", encoding="utf-8") as out:
        out.write("""kernel.def @axpb(%n: index) {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%n, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%n: index, %x: buffer, %y: buffer) where [range(%n, 1, 1048576)] {
  %base = index.constant 0 : offset
  %two = scalar.constant 2.0 : f32
  %one = scalar.constant 1.0 : f32
  %i = kernel.workgroup.id<x> : index
  %source = buffer.view %x[%base] : buffer -> view<[%n]xf32>
  %target = buffer.view %y[%base] : buffer -> view<[%n]xf32>
  %value = view.load %source[%i] : view<[%n]xf32> -> f32
  %product = scalar.mulf %value, %two : f32
  %sum = scalar.addf %product, %one : f32
  view.store %sum, %target[%i] : f32, view<[%n]xf32>
  kernel.return
}
""")
        for number in range(count):
            n = 16 + number % 7
            out.write(f"""
check.case @small_{number} {{
  %n = index.constant {n} : index
  %x = check.generate.iota offset({number}.0) step(0.5) : tensor<{n}xf32>
  %y = check.generate.fill value(0.0) : tensor<{n}xf32>
  %want = check.generate.iota offset({2 * number + 1}.0) step(1.0) : tensor<{n}xf32>
  kernel.launch @axpb[%n](%n, %x, %y) : [index](index, tensor<{n}xf32>, tensor<{n}xf32>)
  check.expect.equal actual(%y) expected(%want) : tensor<{n}xf32>
  check.return
}}
""")


def iree_kernel(size):
    """The same function over tensors, as text for IREE's compiler."""
    shape = f"tensor<{ELEMENTS}xf32>"
    lines = [f"func.func @{size}(%x: {shape}, %y: {shape}) -> {shape} {{"]
    previous = "%y"
    for step in range(KERNEL_STEPS[size]):
        lines.append(f"  %product_{step} = arith.mulf {previous}, %x : {shape}")
        lines.append(f"  %sum_{step} = arith.addf %product_{step}, %y : {shape}")
        previous = f"%sum_{step}"
    return "\n".join(lines + [f"  return {previous} : {shape}", "}"]) + "\n"


def iree_dispatches(count):
    """`count` dependent dispatches in one command buffer, each adding one to the same element.

    Explicit executables keep the compiler from fusing them; it has no empty dispatch, an addition
    in place is the least it accepts.
    """
    tensor = "tensor<1xf32>"
    head = f"""\
!io = !iree_tensor_ext.dispatch.tensor<readwrite:{tensor}>
#same = affine_map<(d0) -> (d0)>
flow.executable private @step {{
  flow.executable.export public @step workgroups() -> (index, index, index) {{
    %unit = arith.constant 1 : index
    flow.return %unit, %unit, %unit : index, index, index
  }}
  builtin.module {{
    func.func @step(%io: !io) {{
      %one = arith.constant 1.0 : f32
      %old = iree_tensor_ext.dispatch.tensor.load %io, offsets = [0], sizes = [1], strides = [1] : !io -> {tensor}
      %place = tensor.empty() : {tensor}
      %new = linalg.generic {{indexing_maps = [#same, #same], iterator_types = ["parallel"]}} ins(%old : {tensor}) outs(%place : {tensor}) {{
      ^bb0(%value: f32, %unused: f32):
        %sum = arith.addf %value, %one : f32
        linalg.yield %sum : f32
      }} -> {tensor}
      iree_tensor_ext.dispatch.tensor.store %new, %io, offsets = [0], sizes = [1], strides = [1] : {tensor} -> !io
      return
    }}
  }}
}}
func.func @main(%input: {tensor}) -> {tensor} {{
  %v0 = flow.tensor.clone %input : {tensor}
"""
    body = "".join(f"  %v{i + 1} = flow.dispatch @step::@step(%v{i}) : ({tensor}) -> %v{i}\n"
                   for i in range(count))
    return head + body + f"  return %v{count} : {tensor}\n}}\n"
