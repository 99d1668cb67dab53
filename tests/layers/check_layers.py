#!/usr/bin/env python3
"""The layers of harness/README.md as a table, and every #include of the tree against it; circles of includes; lists of
words that have a home elsewhere; types that stand twice; names whose header a file does not reach.

    check_layers.py [ROOT]

Prints what is against the rules and how much was looked at; exits 1 on a violation and when it saw none at all.
"""
import pathlib
import re
import sys

import circles
import names_reached
import types_twice
import word_lists

# Folders that everything may include.
BOTTOM = ["harness/base", "harness/num", "harness/words", "harness/model"]

# Layer (the longest matching folder counts) -> the project's folders that it may include from, its own apart.
MAY_USE = {
    "harness/base": [],
    "harness/num": ["harness/base"],
    "harness/words": ["harness/base", "harness/num"],
    "harness/model": ["harness/base", "harness/num", "harness/words"],
    "oracles": BOTTOM,
    # A fill may take the rows of a record, a safetensors file.
    "harness/casefile": BOTTOM + ["backends/sdk"],
    "harness/judge": BOTTOM,
    "harness/ledger": BOTTOM,
    "harness/record": BOTTOM + ["backends/sdk"],
    "harness/run": BOTTOM + ["harness/record", "backends/sdk"],
    "reports": BOTTOM,
    # Parts that commands share, from the folders that they are given to reports.
    "harness/repro": BOTTOM,
    "harness/workspace": BOTTOM + ["harness/casefile", "harness/judge", "harness/record", "harness/run"],
    "harness/hybrid": BOTTOM + ["harness/casefile", "harness/ledger", "harness/record", "harness/run", "harness/workspace"],
    "harness/judging": BOTTOM + ["harness/casefile", "harness/hybrid", "harness/judge", "harness/ledger", "harness/record", "harness/run",
                                 "harness/workspace", "oracles", "reports"],
    "harness/shrink": BOTTOM + ["harness/casefile", "harness/judging", "harness/record", "harness/run", "harness/workspace"],
    "harness/compare": BOTTOM + ["harness/casefile", "harness/hybrid", "harness/judge", "harness/judging", "harness/ledger",
                                 "harness/run", "harness/workspace", "oracles", "reports"],
    # Parts that request more of an adapter than a run of cases; commands alone use them.
    "harness/probe": BOTTOM + ["harness/casefile", "harness/judge", "harness/run", "oracles"],
    "harness/conform": BOTTOM + ["harness/casefile", "harness/judge", "harness/record", "harness/run", "oracles", "backends/sdk"],
    "harness/cli": ["harness", "oracles", "reports", "backends/sdk"],
    "backends/sdk": ["harness/base", "harness/num", "harness/words"],
    "backends/emulated": BOTTOM + ["oracles", "backends/sdk"],
    # Every other adapter: the SDK and its own vendor library.
    "backends": ["harness/base", "harness/num", "harness/words", "backends/sdk"],
    "tests": ["harness", "oracles", "reports", "backends", "tests"],
}

# Third-party headers -> the only layers that may include them. Headers that are not named here may be included anywhere.
OWNERS = {
    r"boost/": ["oracles"],
    r"yaml-cpp/": ["harness/casefile"],
    r"CLI/": ["harness/cli"],
    r"pugixml": ["reports"],
    r"sqlite3": ["harness/record"],
    r"zlib": ["harness/run", "harness/record"],
    r"(torch|ATen|c10|caffe2)/": ["backends/torch"],
    r"cblas\.h": ["backends/cblas"],
    r"blis\.h": ["backends/cblas"],
    r"(cublas|cuda)": ["backends/cublas"],
    r"oneapi/dnnl": ["backends/onednn"],
    r"(mpfr|gmp)": [],
    r"(gtest|gmock|rapidcheck)": [],
    # torch ships its own fmt 12: a second one in the same process does not link, so the adapters do without.
    r"fmt/": ["harness", "oracles", "reports"],
    r"nlohmann/": ["harness/run", "harness/record", "harness/conform", "harness/cli", "reports", "backends"],
}

# Circles that stand, each with its reason. One that is none any more has to go.
UNIT_CIRCLES = {}
ROOM_CIRCLES = {}

# Vocabulary -> the files that own its words (word_lists.py). Each literal of theirs that is one word counts.
HOMES = {
    "ops": ["harness/words/ops.def"],
    "facets": ["harness/words/facets.cc", "harness/words/accumulators.cc"],
    "knobs": ["harness/words/knobs.cc"],
    "dtypes": ["harness/num/dtype.cc", "harness/num/float_format.cc"],
    "trace": ["harness/words/trace_words.h"],
}

# (file, vocabulary) -> why these words stand there again. An entry that is not needed any more has to go.
COPY = "a copy: to be read from the home"
KNOBS = "an adapter names each knob that it sets or reads back, beside the call that does it"
OPS = "an adapter names each op that it computes by itself, beside the function that does"
NAMES = "an adapter runs where no table of the harness is: it names what its framework calls otherwise"
LISTS_ALLOWED = {
    ("backends/faulty/main.cc", "knobs"): KNOBS,
    ("backends/cublas/gemm_ex.cc", "knobs"): KNOBS,
    ("backends/cublas/lt.cc", "knobs"): KNOBS,
    ("backends/jax/ops.py", "ops"): NAMES,
    ("backends/python/ulpscope_torch/ops.py", "ops"): NAMES,
    ("backends/sdk/gemm.cc", "ops"): OPS,
    ("backends/sdk/glue_ops.cc", "ops"): OPS,
    ("backends/torch/knobs.cc", "knobs"): KNOBS,
    ("backends/torch/machine.cc", "ops"): "the ops that are no call of a schema",
    ("backends/torch/traced.cc", "ops"): "the ops that a TorchScript graph cannot hold",
    ("backends/torch_compile/evidence.py", "trace"): "the stages that this stack shows, each from another log",
    ("backends/torch_compile/knobs.py", "knobs"): KNOBS,
    ("harness/casefile/width.cc", "ops"): COPY,
    ("harness/repro/torch_step.cc", "ops"): "a script says in its framework's own terms what the adapter does",
    ("oracles/models.cc", "facets"): COPY,
    ("oracles/expand.cc", "ops"): COPY,
}

# The judge computes; it neither reads nor writes.
NO_IO = re.compile(r"^<(fstream|iostream|filesystem|unistd\.h|cstdio|sys/.*)>$")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"][^>"]+[>"])', re.MULTILINE)
FOLDERS = ("harness", "oracles", "reports", "backends", "tests")


def layer_of(path):
    """The longest key of MAY_USE that `path` lies under; an adapter counts as its own folder."""
    keys = [key for key in MAY_USE if path == key or path.startswith(key + "/")]
    if not keys:
        return None
    key = max(keys, key=len)
    if key == "backends":
        return "/".join(path.split("/")[:2])
    return key


def rule_of(layer):
    return MAY_USE.get(layer, MAY_USE["backends"] if layer.startswith("backends/") else [])


def inside(path, folders):
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def check_include(path, include):
    """Why `path` may not include `include` (with its quotes or brackets); None if it may."""
    layer = layer_of(path)
    name = include[1:-1]
    if name.split("/")[0] in FOLDERS:
        target = layer_of(name)
        if target is None or not inside(name, [layer] + rule_of(layer)):
            return f"{layer} may not use {target or name}"
        return None
    if include.startswith('"'):
        return "includes are written from the root"
    if layer == "tests":
        return None
    if layer == "harness/judge" and NO_IO.match(include):
        return "the judge does no input or output"
    for pattern, owners in OWNERS.items():
        if re.match(pattern, name) and not inside(path, owners):
            return f"only {', '.join(owners) or 'tests'} may include <{name}>"
    return None


def unit_of(path):
    """A header and its source are one unit."""
    return path.rsplit(".", 1)[0]


def check_words(root):
    """Violations in the product's C++ and Python."""
    files = {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for folder in FOLDERS[:-1]
        for path in (root / folder).rglob("*")
        if path.suffix in (".h", ".cc", ".def", ".py") and path.is_file()
    }
    return word_lists.check(files, HOMES, LISTS_ALLOWED)


def program_of(path):
    """The program that `path` is linked into alone; None for what is in all. Each adapter is one, each folder of tests another."""
    parts = path.split("/")
    alone = parts[0] in ("backends", "tests") and parts[1] not in ("sdk", "support") and len(parts) > 2
    return "/".join(parts[:2]) if alone else None


def sources_of(root):
    """{path: text} of the C++ of the tree."""
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for folder in FOLDERS
        for path in (root / folder).rglob("*")
        if path.suffix in (".h", ".cc") and path.is_file()
    }


def check_types(root):
    """(violations, number of types)"""
    return types_twice.check(sources_of(root), program_of)


def check_names(root):
    """(violations, number of uses)"""
    return names_reached.check(sources_of(root), program_of)


def includes_of(root):
    """(path, line, include with its quotes or brackets) of every include; (path, 0, None) once for each file."""
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in (".h", ".cc") or not file.is_file():
                continue
            path = file.relative_to(root).as_posix()
            text = file.read_text(encoding="utf-8")
            yield path, 0, None
            for match in INCLUDE.finditer(text):
                yield path, text.count("\n", 0, match.start(1)) + 1, match.group(1)


def check_tree(root):
    """(violations, number of includes, number of files)"""
    violations, includes, files = [], 0, 0
    for path, line, include in includes_of(root):
        files += include is None
        includes += include is not None
        why = check_include(path, include) if include else None
        if why:
            violations.append(f"{path}:{line}: #include {include}: {why}")
    return violations, includes, files


def check_circles(root, units=None, rooms=None):
    """Circles of includes that are not in `units` and `rooms`, by default those that the tables above allow."""
    edges = [(path, include[1:-1]) for path, _, include in includes_of(root) if include and include.startswith('"')]
    return circles.include_circles(
        edges, UNIT_CIRCLES if units is None else units, unit_of, "units"
    ) + circles.include_circles(
        edges, ROOM_CIRCLES if rooms is None else rooms, lambda path: layer_of(path) or path, "rooms"
    )


def main(argv):
    root = pathlib.Path(argv[1]) if len(argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    violations, includes, files = check_tree(root)
    second_types, types = check_types(root)
    unreached, uses = check_names(root)
    violations += check_circles(root) + check_words(root) + second_types + unreached
    for violation in violations:
        print(violation)
    print(f"{includes} includes in {files} files, {types} types and {uses} uses of names checked, {len(violations)} against the rules")
    return 1 if violations or not includes or not types or not uses else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
