"""Run folders to attack: small cases, a folder made once, and copies of it."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import ULPSCOPE  # noqa: E402

CASE = """
  - name: {name}
    tags: [ci]
    tensors:
      x: {{dtype: float32, shape: [{size}], fill: normal}}
    program:
      - {{op: {op}, of: [x], as: r}}
    observe: [r]
"""


def cases(names, op="neg", size=4):
    return "about: attacked\ncases:" + "".join(CASE.format(name=name, op=op, size=size) for name in names)


def _hears_all():
    """Tests under nohup have SIGHUP ignored, and a program that they start would ignore it too."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class InFolder(unittest.TestCase):
    """Each test in a temporary folder of its own."""

    def setUp(self):
        held = tempfile.TemporaryDirectory(prefix="hostile-")
        self.addCleanup(held.cleanup)
        self.root = pathlib.Path(held.name)

    def write(self, name, text):
        (self.root / name).write_text(text, encoding="utf-8")

    def call(self, *arguments, timeout=60, **variables):
        """The ended program; a hang is a failure."""
        try:
            return subprocess.run([str(ULPSCOPE), *map(str, arguments)], cwd=self.root, capture_output=True, text=True, timeout=timeout,
                                  check=False, stdin=subprocess.DEVNULL, env={**os.environ, **variables})
        except subprocess.TimeoutExpired:
            self.fail(f"ulpscope {' '.join(map(str, arguments))} hangs")

    def good(self, *arguments, **variables):
        ended = self.call(*arguments, **variables)
        self.assertEqual(ended.returncode, 0, f"{arguments}: {ended.stdout}{ended.stderr}")
        return ended

    def start(self, *arguments, **variables):
        return subprocess.Popen([str(ULPSCOPE), *map(str, arguments)], cwd=self.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, stdin=subprocess.DEVNULL, env={**os.environ, **variables}, preexec_fn=_hears_all)

    def copy(self, folder, to):
        shutil.rmtree(self.root / to, ignore_errors=True)
        shutil.copytree(self.root / folder, self.root / to)
        return self.root / to
