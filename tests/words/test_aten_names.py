#!/usr/bin/env python3
"""harness/words/aten_names.inc names every op of the dispatcher of the PyTorch that is installed. `--write` writes it anew."""
import pathlib
import re
import sys
import textwrap
import unittest

import torch

FILE = pathlib.Path(__file__).resolve().parents[2] / "harness/words/aten_names.inc"


def of_torch():
    names = {name.removeprefix("aten::").partition(".")[0] for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")}
    return {name for name in names if not (name.endswith("_") and name[:-1] in names)}


def written():
    return re.findall(r'"(\w+)"', FILE.read_text(encoding="utf-8"))


class AtenNames(unittest.TestCase):
    def test_every_op_that_is_installed_is_named(self):
        names = of_torch()
        self.assertGreater(len(names), 1000)
        self.assertEqual(sorted(names - set(written())), [])

    def test_in_order_and_once(self):
        names = written()
        self.assertEqual(names, sorted(set(names)))

    def test_the_ops_that_write_without_saying_so_are_listed(self):
        """An op that a schema marks as writing shows it by its name or overload; all others stand in aten.cc."""
        source = FILE.with_name("aten.cc").read_text(encoding="utf-8")
        listed = set(re.findall(r'"(\w+)"', source[source.index("kWriters"):]))
        silent = set()
        for schema in torch._C._jit_get_all_schemas():
            name = schema.name.removeprefix("aten::")
            writes = any(each.alias_info is not None and each.alias_info.is_write and not each.kwarg_only for each in schema.arguments)
            tensors = any("Tensor" in str(each.type) for each in schema.arguments) and any("Tensor" in str(each.type)
                                                                                          for each in schema.returns)
            if schema.name.startswith("aten::") and "::" not in name and writes and tensors and name in of_torch():
                if not name.endswith("_") and not schema.overload_name.endswith("out"):
                    silent.add(name)
        self.assertEqual(sorted(silent - listed), [])


if __name__ == "__main__":
    if "--write" in sys.argv:
        listed = textwrap.fill(", ".join(f'"{name}"' for name in sorted(of_torch())), 118) + ",\n"
        FILE.write_text(f"// Ops of PyTorch {torch.__version__.partition('+')[0]}'s dispatcher; written by tests/words/test_aten_names.py "
                        f"--write.\n{listed}", encoding="utf-8")
    else:
        unittest.main()
