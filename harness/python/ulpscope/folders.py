"""Temporary folders that are removed with the object that refers to them."""

import os
import pathlib
import shutil
import tempfile
import weakref


class Temporary:
    """A folder of its own in `path`. It is removed when this object is gone, at the end of the process at the latest."""

    def __init__(self, prefix="ulpscope-run-"):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix=prefix))
        self._end = weakref.finalize(self, _remove, self.path, os.getpid())


def _remove(path, pid):
    # A child that was forked has a copy of this object, and ends before its parent does.
    if os.getpid() == pid:
        shutil.rmtree(path, ignore_errors=True)


def kept(out, prefix="ulpscope-run-"):
    """(the folder `out`, None), or (a temporary one, the object that it lives as long as)."""
    if out:
        return pathlib.Path(out), None
    temporary = Temporary(prefix)
    return temporary.path, temporary
