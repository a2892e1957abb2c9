"""PyTorch on its CPU device, into outputs that are there already.

usage: kernels_torch.py BUDGET_MS CASE@THREADS...
"""

import kernel_peer
import torch
import torch.nn.functional as F


def make(problem, threads):
    torch.set_num_threads(threads)
    inputs = [torch.from_numpy(one) for one in problem.inputs]
    out = torch.empty(problem.output_shape(),
                      dtype=torch.int32 if problem.kind == "gemm_i8" else torch.float32)
    columns = [problem.sizes[-1]]
    if problem.kind == "gemm_f32":
        work = lambda: torch.mm(*inputs, out=out)
    elif problem.kind == "gemm_bf16":
        halves = [one.to(torch.bfloat16) for one in inputs]
        out = out.to(torch.bfloat16)
        work = lambda: torch.mm(*halves, out=out)
    elif problem.kind == "gemm_i8":
        work = lambda: torch.ops.aten._int_mm.out(*inputs, out=out)
        return work, out.numpy
    elif problem.kind == "softmax":
        work = lambda: torch.softmax(inputs[0], 1, out=out)
    elif problem.kind == "layer_norm":
        moments = torch.empty(2, problem.sizes[0], 1)
        norm = torch.ops.aten.native_layer_norm.out
        work = lambda: norm(inputs[0], columns, inputs[1], inputs[2], kernel_peer.EPSILON,
                            out0=out, out1=moments[0], out2=moments[1])
    elif problem.kind == "rms_norm":
        holder = []
        work = lambda: holder.__setitem__(
            slice(None), [F.rms_norm(inputs[0], columns, inputs[1], kernel_peer.EPSILON)])
        return work, lambda: holder[0].numpy()
    elif problem.kind == "attention":
        holder = []
        heads = [one[None] for one in inputs]
        work = lambda: holder.__setitem__(slice(None), [F.scaled_dot_product_attention(*heads)[0]])
        return work, lambda: holder[0].numpy()
    else:
        raise ValueError(f"there is no '{problem.kind}' here")
    return work, lambda: out.to(torch.float32).numpy()


if __name__ == "__main__":
    with torch.inference_mode():
        kernel_peer.main(make)
