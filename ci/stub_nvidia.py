"""CI trick: empty stand-ins for the NVIDIA libraries that a CUDA build of PyTorch is linked with.

    python ci/stub_nvidia.py VENV

A machine without a GPU calls none of them, but the loader wants every one: 5 GB of wheels. Each missing library
becomes one that defines, under the right symbol version, what PyTorch's libraries leave undefined, as functions
that return 0. They are written beside PyTorch's own, where the loader looks last, so real ones win. Never for
an environment that is to see a GPU: there the wheels are installed. Nothing here is part of a backend.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

_ZERO = "int {0}(void) {{ return 0; }}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folders = list(pathlib.Path(sys.argv[1]).glob("lib/python3*/site-packages/torch/lib"))
    if len(folders) != 1:
        sys.exit(f"{sys.argv[1]} holds {len(folders)} installations of PyTorch, expected one")
    libraries = sorted(folders[0].glob("lib*.so"))
    wanted = _wanted(libraries, folders[0])
    symbols = _symbols(libraries, wanted)
    for soname in sorted(wanted):
        _build(folders[0] / soname, symbols.get(soname, {}))
    count = sum(len(names) for versions in symbols.values() for names in versions.values())
    print(f"{len(wanted)} stand-ins with {count} symbols in {folders[0]}")


def _output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _wanted(libraries, folder):
    """Sonames that the libraries need and that neither their folder nor the system has."""
    system = {line.split()[0] for line in _output("/sbin/ldconfig", "-p").splitlines()[1:] if line.strip()}
    wanted = set()
    for library in libraries:
        for line in _output("readelf", "-d", library).splitlines():
            if "(NEEDED)" in line:
                wanted.add(line.partition("[")[2].partition("]")[0])
    # libcuda comes with the driver; only libcaffe2_nvrtc needs it, which is opened when a GPU is there.
    return {
        name for name in wanted
        if name not in system and not (folder / name).exists() and not name.startswith("libcuda.")
    }


def _symbols(libraries, wanted):
    """soname -> {version ("" for none): names}. Unversioned names do not say whose they are: any stub will do."""
    defined = set()
    for library in libraries:
        defined |= {line.split()[-1].partition("@")[0] for line in _names(library, "--defined-only")}
    symbols = {}
    for library in libraries:
        owners = _owners(library)
        for line in _names(library, "--undefined-only"):
            kind, name = line.split()[-2:]
            name, _, version = name.partition("@")
            if owners.get(version) in wanted:
                symbols.setdefault(owners[version], {}).setdefault(version, set()).add(name)
            elif not version and kind == "U" and name not in defined and not name.startswith(("Py", "_Py", "_Z")):
                symbols.setdefault(min(wanted), {}).setdefault("", set()).add(name)
    return symbols


def _owners(library):
    """Symbol version -> soname of the library that the loader will ask for it."""
    owners, file = {}, ""
    for line in _output("readelf", "-VW", library).partition("Version needs section")[2].splitlines():
        words = line.split()
        file = words[words.index("File:") + 1] if "File:" in words else file
        if "Name:" in words:
            owners[words[words.index("Name:") + 1]] = file
    return owners


def _names(library, which):
    return [line for line in _output("nm", "-D", which, library).splitlines() if line.strip()]


def _build(path, versions):
    with tempfile.TemporaryDirectory() as folder:
        source, script = os.path.join(folder, "stub.c"), os.path.join(folder, "versions")
        with open(source, "w") as file:
            file.writelines(_ZERO.format(name) + "\n" for names in versions.values() for name in sorted(names))
        named = {version: names for version, names in versions.items() if version}
        with open(script, "w") as file:
            for version, names in named.items():
                file.write(f"{version} {{ global: {'; '.join(sorted(names))}; }};\n")
        subprocess.run([
            "gcc", "-shared", "-fPIC", "-w", f"-Wl,-soname,{path.name}",
            *([f"-Wl,--version-script={script}"] if named else []), "-o", path, source
        ], check=True)


if __name__ == "__main__":
    main()
