"""python -m ulpscope capture FILE.py:FUNCTION --args FILE.py:ARGS -o case.yaml"""

import argparse
import importlib.util
import os
import pathlib
import sys

from ulpscope import places


class _Usage(Exception):
    pass


def program():
    """The command `ulpscope` of the wheel: the harness, on the Python that this is, and the commands of this package beside its own."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["capture"]:
        sys.exit(main(arguments))
    try:
        binary = str(places.binary())
    except places.NotInstalled as error:
        sys.exit(f"ulpscope: {error}")
    os.execve(binary, ["ulpscope", *arguments], {"ULPSCOPE_PYTHON": sys.executable, **os.environ})


def main(arguments=None):
    """Exits as the harness does: 0 done, 1 the case is not faithful, 4 usage, or a program that no case can say."""
    parser = argparse.ArgumentParser(prog="python -m ulpscope", description="Your own program as a case.")
    commands = parser.add_subparsers(dest="command", required=True)
    capture = commands.add_parser("capture", help="write the case that a function, or a module, is")
    capture.add_argument("function", help="FILE.py:NAME")
    capture.add_argument("--args", help="FILE.py:NAME of a tuple of arguments, a dict of them by name, or a function that gives one")
    capture.add_argument("-o", "--out", help="the case file (default: NAME.yaml)")
    capture.add_argument("--name", help="of the case")
    capture.add_argument("--data", choices=["auto", "real", "inline", "synthetic"], default="auto", help="whose values the tensors have, and where they stand")
    capture.add_argument("--backward", action="store_true", help="gradients too")
    capture.add_argument("--verify", default="torch-eager", help="backends on which its bits are compared; empty for none")
    given = parser.parse_args(arguments)
    try:
        return _capture(given)
    except (_Usage, ValueError, places.NotInstalled) as error:
        print(f"ulpscope: {error}", file=sys.stderr)
        return 1 if type(error).__name__ == "Unfaithful" else 4


def _capture(given):
    from ulpscope.capturing import capture
    modules = {}
    f = _load(given.function, modules)
    arguments = _load(given.args, modules) if given.args else ()
    if callable(arguments) and not isinstance(arguments, tuple):
        arguments = arguments()
    args, kwargs = ((), arguments) if isinstance(arguments, dict) else (arguments, {})
    if not isinstance(args, (tuple, list)):
        args = (args, )
    verify = tuple(each for each in given.verify.split(",") if each)
    if isinstance(f, type):
        f = f()
    case = capture(f, args, kwargs, name=given.name, data=given.data, backward=given.backward, verify=verify)
    path = case.save(given.out or f"{case.name}.yaml")
    compared = f", compared in bits on {', '.join(verify)}" if verify else ""
    print(f"{path}: {len(list(case.all_steps()))} steps, {len(case.inputs)} tensors, observes {', '.join(case.observe)}{compared}")
    for note in case.notes:
        print(f"  {note}")
    return 0


def _load(text, modules):
    file, _, name = text.rpartition(":")
    path = pathlib.Path(file)
    if not file or not path.is_file():
        raise _Usage(f"'{text}' is no FILE.py:NAME of an existing file")
    if path not in modules:
        sys.path.insert(0, str(path.resolve().parent))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        modules[path] = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = modules[path]
        spec.loader.exec_module(modules[path])
    found = modules[path]
    for part in name.split("."):
        if not hasattr(found, part):
            raise _Usage(f"no {name} in {file}")
        found = getattr(found, part)
    return found


if __name__ == "__main__":
    sys.exit(main())
