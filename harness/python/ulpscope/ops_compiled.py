"""Compares the ops of a compiled run with the eager run's: which results of the eager run occur in it, bit by bit."""

from ulpscope import faithful, recording

# Compilers whose graphs run op by op. Any other compiler fuses, and calls of the dispatcher do not show what it
# computes.
OP_BY_OP = ("aot_eager", )
_MOST_SHOWN = 8


def sentences(f, args, kwargs, eager, compiler, gradients):
    """Findings about torch.compile(f) with the backend `compiler`, compared with the trail of the Recorder `eager`;
    `gradients` is whether the run had them enabled. Results are matched by their bits: a graph may call the same op
    by another name."""
    if compiler not in OP_BY_OP:
        return [f"torch.compile with {compiler} fuses ops into kernels: none of them is observed by itself (check() judges such a program)"]
    graphs, trail = _compiled(f, args, kwargs, gradients)
    if not graphs:
        return [f"torch.compile with {compiler}: no graph was compiled"]
    known = {each for _, _, operands, results in trail for each in (*operands, *results)}
    there = [each for each in eager.trail if set(each[3]) <= known]
    parted = [each for each in eager.trail if set(each[2]) <= known and not set(each[3]) <= known]
    found = [f"torch.compile with {compiler}: {len(trail)} calls of ops in {graphs} {'graph' if graphs == 1 else 'graphs'}; the results of "
             f"{len(there)} of {len(eager.trail)} calls of the eager run occur there bit by bit"]
    found += [f"{compiler}: {op}, {place}: its operands occur in a graph, and its result does not" for op, place, _, _ in parted[:_MOST_SHOWN]]
    if len(parted) > _MOST_SHOWN:
        found.append(f"{compiler}: and {len(parted) - _MOST_SHOWN} more calls")
    return found


def _compiled(f, args, kwargs, gradients):
    """(graphs that were run, the trail of all calls in them) of torch.compile(f), compiled by AOTAutograd and run op by op."""
    import torch
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd
    trail, graphs = [], set()

    def compiler(graph, _):
        def run(*inputs):
            graphs.add(id(graph))
            recorder = recording.Recorder(most_elements=0, screen=0.0, digests=True)
            found = recording.recorded(graph.forward, inputs, {}, recorder)
            trail.extend(recorder.trail)
            return found

        return make_boxed_func(run)

    torch._dynamo.reset()
    with torch.set_grad_enabled(gradients), faithful.one_thread(), faithful.no_gradients_kept(f, args, kwargs) as (own_args, own_kwargs, _):
        torch.compile(f, backend=aot_autograd(fw_compiler=compiler, bw_compiler=compiler))(*own_args, **own_kwargs)
    torch._dynamo.reset()
    return len(graphs), trail
