"""The autograd graph before a backward() walks it: its nodes, with the dtypes that each expects of its gradients.

A node's input metadata is what the engine makes a gradient fit before it enters the node; where a gradient
has another dtype the engine casts it, and no compiler's graph shows that. backends/torch/autograd.cc reads the same
graph where the tensors live in C++.
"""

import torch

from ulpscope_adapter import TraceNode
from ulpscope_torch import ops


def nodes_of(root, title, first):
    """TraceNodes with ids from `first`: one called `title`, and below it each node after all that feed it."""
    found = [TraceNode(id=first, stage="dispatch", op=title)]
    if not root.requires_grad:
        return found
    order = _in_order(torch.autograd.graph.get_gradient_edge(root).node)
    place = {node: first + 1 + index for index, node in enumerate(order)}
    feeding = {node: [] for node in order}
    for node in order:
        for below, _ in node.next_functions:
            if below is not None and place[node] not in feeding[below]:
                feeding[below].append(place[node])
    for node in order:
        below = [_described(other, index) for other, index in node.next_functions if other is not None]
        found.append(
            TraceNode(id=place[node], parent=first, stage="dispatch", op=node.name(),
                      sources=tuple(feeding[node]), inputs=tuple(filter(None, map(_tensor, node._input_metadata))),
                      outputs=tuple(filter(None, below))))
    return found


def _in_order(start):
    """The nodes that gradients reach from `start`, each after all that feed it."""
    finished, seen, pending = [], {start}, [(start, iter(start.next_functions))]
    while pending:
        node, following = pending[-1]
        below = next((other for other, _ in following if other is not None and other not in seen), None)
        if below is None:
            finished.append(node)
            pending.pop()
        else:
            seen.add(below)
            pending.append((below, iter(below.next_functions)))
    return finished[::-1]


def _described(node, index):
    metadata = node._input_metadata
    return _tensor(metadata[index]) if index < len(metadata) else None


def _tensor(metadata):
    """(dtype, shape); nothing for an input that no gradient is taken for."""
    if metadata is None:
        return None
    return ops.dtype_name(metadata.dtype), tuple(map(int, metadata.shape))
