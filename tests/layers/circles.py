"""Circles of includes: between units (a header and its source count as one) and between rooms.

A circle of headers alone would not compile for long; one of units compiles, and means that neither half can be understood,
tested or moved without the other.
"""


def circles(graph):
    """The strongly connected components of {node: set of nodes} that have more than one node, each sorted (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found)


def include_circles(edges, allowed, group_of, what):
    """Violations among `edges` [(file, included file)], files brought together by group_of. `allowed`: circle -> reason."""
    graph = {}
    for source, target in edges:
        a, b = group_of(source), group_of(target)
        if a != b:
            graph.setdefault(a, set()).add(b)
    found = [tuple(circle) for circle in circles(graph)]
    return [f"circle of {what}: {' '.join(circle)}" for circle in found if circle not in allowed] + [
        f"allowed circle of {what} that is none any more: {' '.join(circle)}" for circle in allowed if circle not in found
    ]
