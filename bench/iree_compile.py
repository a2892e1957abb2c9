"""Peer of suite `compile`: IREE's compiler in this process. Runs inside build/bench-venv.

usage: iree_compile.py FLAGS_JSON FILE... (--check | --repeat=N)
Every FILE `kernel-NAME.mlir` holds one function @NAME over two tensors. Prints one JSON object:
milliseconds from the source in memory to the module in memory, for each NAME.
"""

import json
import pathlib
import statistics
import sys
import time

from iree.compiler.api import Output, Session, Source, _initializeGlobalCL


def compile_once(session, text):
    invocation = session.invocation()
    invocation.enable_console_diagnostics()
    source = Source.wrap_buffer(session, text)
    if not invocation.parse_source(source) or not invocation.execute():
        raise SystemExit("IREE's compiler failed")
    output = Output.open_membuffer()
    invocation.output_vm_bytecode(output)
    return bytes(output.map_memory())


def check(name, text, module):
    """Runs the module and compares with the recurrence `acc = acc * x + y`."""
    import iree.runtime as runtime
    import numpy

    steps = text.count(b"arith.mulf")
    x = numpy.linspace(0.0, 0.5, 1024, dtype=numpy.float32)
    y = numpy.linspace(-1.0, 1.0, 1024, dtype=numpy.float32)
    want = y.copy()
    for _ in range(steps):
        want = want * x + y
    config = runtime.Config("local-sync")
    context = runtime.SystemContext(config=config)
    context.add_vm_module(runtime.VmModule.copy_buffer(config.vm_instance, module))
    got = context.modules.module[name](x, y).to_host()
    numpy.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def main():
    flags, *files, mode = sys.argv[1:]
    # One kernel gives its thread pool nothing to do; without it the compiler is faster.
    _initializeGlobalCL("iree_compile.py", "--mlir-disable-threading")
    session = Session()
    session.set_flags(*json.loads(flags))
    result = {}
    for path in map(pathlib.Path, files):
        name = path.stem.removeprefix("kernel-")
        text = path.read_bytes() + b"\0"
        module = compile_once(session, text)  # also warms the process up
        if mode == "--check":
            check(name, text, module)
            continue
        times = []
        for _ in range(int(mode.removeprefix("--repeat="))):
            begin = time.perf_counter()
            compile_once(session, text)
            times.append(1e3 * (time.perf_counter() - begin))
        result[name] = statistics.median(times)
    print(json.dumps(result))


main()
