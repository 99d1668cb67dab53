#!/usr/bin/env python3
"""Checks who includes whom: the layers of harness/README.md as a table, and every #include of the tree against it.

    check_layers.py [ROOT]

Prints each include that the table forbids and how many it looked at; exits 1 on a violation and when it saw none at all.
"""
import pathlib
import re
import sys

# What everything may include.
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
    "harness/record": BOTTOM + ["backends/sdk"],
    "harness/run": BOTTOM + ["harness/record", "backends/sdk"],
    "reports": BOTTOM,
    # What asks an adapter for more than a run of cases; commands alone use them.
    "harness/probe": BOTTOM + ["harness/casefile", "harness/judge", "harness/run", "oracles"],
    "harness/conform": BOTTOM + ["harness/casefile", "harness/judge", "harness/record", "harness/run", "oracles", "backends/sdk"],
    "harness/cli": ["harness", "oracles", "reports", "backends/sdk"],
    "backends/sdk": ["harness/base", "harness/num", "harness/words"],
    "backends/emulated": BOTTOM + ["oracles", "backends/sdk"],
    # Every other adapter: the SDK and its own vendor library.
    "backends": ["harness/base", "harness/num", "harness/words", "backends/sdk"],
    "tests": ["harness", "oracles", "reports", "backends", "tests"],
}

# Third-party headers -> the only layers that may include them. What is not named here may be included anywhere.
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


def check_tree(root):
    """(violations, number of includes, number of files)"""
    violations, includes, files = [], 0, 0
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in (".h", ".cc") or not file.is_file():
                continue
            files += 1
            path = file.relative_to(root).as_posix()
            text = file.read_text(encoding="utf-8")
            for match in INCLUDE.finditer(text):
                includes += 1
                why = check_include(path, match.group(1))
                if why:
                    line = text.count("\n", 0, match.start(1)) + 1
                    violations.append(f"{path}:{line}: #include {match.group(1)}: {why}")
    return violations, includes, files


def main(argv):
    root = pathlib.Path(argv[1]) if len(argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    violations, includes, files = check_tree(root)
    for violation in violations:
        print(violation)
    print(f"{includes} includes in {files} files checked, {len(violations)} against the layers")
    return 1 if violations or not includes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
