"""python -m ulpscope capture FILE.py:FUNCTION --args FILE.py:ARGS -o case.yaml
python -m ulpscope check --per-op FILE.py:FUNCTION --args FILE.py:ARGS"""

import argparse
import importlib.util
import os
import pathlib
import sys

from ulpscope import places


class _Usage(Exception):
    pass


def program():
    """The command `ulpscope` of the wheel: the harness, run with this Python, and this package's commands besides the
    harness's own."""
    arguments = sys.argv[1:]
    if arguments[:1] in (["capture"], ["check"]):
        sys.exit(main(arguments))
    try:
        binary = str(places.binary())
    except places.NotInstalled as error:
        sys.exit(f"ulpscope: {error}")
    os.execve(binary, ["ulpscope", *arguments], {"ULPSCOPE_PYTHON": sys.executable, **os.environ})


def main(arguments=None):
    """Exits as the harness does: 0 done, 1 the case is not faithful, 4 usage, or a program that no case can express."""
    parser = argparse.ArgumentParser(prog="python -m ulpscope", description="Your own program, as a case or judged.")
    commands = parser.add_subparsers(dest="command", required=True)
    capture = commands.add_parser("capture", help="write the case that a function, or a module, is")
    capture.add_argument("function", help="FILE.py:NAME")
    capture.add_argument("--args", help="FILE.py:NAME of a tuple of arguments, a dict of them by name, or a function that gives one")
    capture.add_argument("-o", "--out", help="the case file (default: NAME.yaml)")
    capture.add_argument("--name", help="of the case")
    capture.add_argument("--data", choices=["auto", "real", "inline", "synthetic"], default="auto", help="whose values the tensors have, and where they stand")
    capture.add_argument("--backward", action="store_true", help="gradients too")
    capture.add_argument("--verify", default="torch-eager", help="backends on which its bits are compared; empty for none")
    check = commands.add_parser("check", help="run a function on backends and judge it, or each op of a run of it")
    check.add_argument("function", help="FILE.py:NAME")
    check.add_argument("--args", help="FILE.py:NAME of a tuple of arguments, a dict of them by name, or a function that gives one")
    check.add_argument("--per-op", action="store_true", help="run it in eager PyTorch, and judge every op from the operands that it had")
    check.add_argument("-b", "--backends", help="joined by commas (default: torch-eager and torch-inductor; with --per-op torch-eager)")
    check.add_argument("--minutes", type=float, default=10, help="with --per-op: after which nothing more is judged")
    check.add_argument("-o", "--out", help="the run folder (default: a temporary one)")
    given = parser.parse_args(arguments)
    try:
        return _capture(given) if given.command == "capture" else _check(given)
    except (_Usage, ValueError, places.NotInstalled) as error:
        print(f"ulpscope: {error}", file=sys.stderr)
        return 1 if type(error).__name__ == "Unfaithful" else 4


def _capture(given):
    from ulpscope.capturing import capture
    f, args, kwargs = _function(given)
    verify = tuple(each for each in given.verify.split(",") if each)
    case = capture(f, args, kwargs, name=given.name, data=given.data, backward=given.backward, verify=verify)
    path = case.save(given.out or f"{case.name}.yaml")
    compared = f", compared in bits on {', '.join(verify)}" if verify else ""
    print(f"{path}: {len(list(case.all_steps()))} steps, {len(case.inputs)} tensors, observes {', '.join(case.observe)}{compared}")
    for note in case.notes:
        print(f"  {note}")
    return 0


def _check(given):
    import ulpscope
    f, args, kwargs = _function(given)
    backends = [each for each in given.backends.split(",") if each] if given.backends is not None else None
    if given.per_op:
        report = ulpscope.check_ops(f, args, kwargs, backends=backends, minutes=given.minutes, out=given.out)
    else:
        report = ulpscope.check(f, args, kwargs, backends=backends, out=given.out)
    print(report)
    return 0 if report.ok else 1


def _function(given):
    """(the function, its arguments by place, its arguments by name) that a command line names."""
    modules = {}
    f = _load(given.function, modules)
    arguments = _load(given.args, modules) if given.args else ()
    if callable(arguments) and not isinstance(arguments, tuple):
        arguments = arguments()
    args, kwargs = ((), arguments) if isinstance(arguments, dict) else (arguments, {})
    if not isinstance(args, (tuple, list)):
        args = (args, )
    return f() if isinstance(f, type) else f, args, kwargs


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
