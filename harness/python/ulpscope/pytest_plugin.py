"""pytest --ulpscope: case files as test files, one item for each case on each backend; and the fixture `ulpscope`.

    pytest --ulpscope cases/                                    # every installed default backend
    pytest --ulpscope --ulpscope-backends torch-eager,jax cases/seeds -k matmul_out -m smoke -x
    def test_kernel(ulpscope): ulpscope.assert_precision(my_kernel, (x, w), acc="float32")

All items of a session (or of an xdist worker) are one run of the harness. A result for which `ulpscope run` exits with
1 or 6 fails, SKIP is skipped, XFAIL is an expected failure, PASS passes; differences between backends fail nothing, and
are listed at the end.
"""

import pathlib
import re
import shlex
import tempfile
import textwrap

import pytest

from ulpscope import batch, places

_BACKENDS, _BATCH, _FOLDER = pytest.StashKey(), pytest.StashKey(), pytest.StashKey()
_TIERS = ("smoke", "ci", "nightly")


def pytest_addoption(parser):
    group = parser.getgroup("ulpscope")
    group.addoption("--ulpscope", action="store_true", help="collect ulpscope's case files (*.yaml)")
    group.addoption("--ulpscope-backends", metavar="LIST", help="as `ulpscope run -b` (default: ulpscope_backends of the ini-file, else "
                    "every installed default backend)")
    group.addoption("--ulpscope-adapter", action="append", default=[], metavar="FILE", help="as `ulpscope run --adapter`")
    group.addoption("--ulpscope-knob", action="append", default=[], metavar="K=V", help="as `ulpscope run --knob`")
    group.addoption("--ulpscope-run", default="", metavar="ARGUMENTS", help="more arguments for `ulpscope run`: '--seed 1 --jobs 2'")
    group.addoption("--ulpscope-out", metavar="DIR", help="where run folders are kept (default: pytest's temporary folder)")
    parser.addini("ulpscope_backends", "backends that cases, and check() of the fixture, run on", default="")
    parser.addini("ulpscope_run", "more arguments for `ulpscope run`", default="")


def pytest_configure(config):
    for tier in _TIERS:
        config.addinivalue_line("markers", f"{tier}: cases of this tier, and of those that are quicker (ulpscope)")
    if config.getoption("ulpscope"):
        if not hasattr(config, "workerinput") and not config.getoption("help"):
            _backends(config)
        if config.pluginmanager.hasplugin("xdist"):
            config.pluginmanager.register(_Controller(), "ulpscope-controller")


class _Controller:
    """The message of the process that distributes to the workers: the backends are probed once, and all results are in
    one folder."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node):
        node.workerinput["ulpscope"] = {"backends": _backends(node.config), "folder": str(_folder(node.config))}


def _backends(config):
    """The columns, as the harness calls them."""
    if _BACKENDS not in config.stash:
        told = getattr(config, "workerinput", {}).get("ulpscope")
        try:
            config.stash[_BACKENDS] = told["backends"] if told else _ask_backends(config)
        except (batch.BadCases, places.NotInstalled) as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[_BACKENDS]


def _ask_backends(config):
    asked = []
    if named := config.getoption("ulpscope_backends") or config.getini("ulpscope_backends"):
        asked += ["-b", named]
    for knob in config.getoption("ulpscope_knob"):
        asked += ["--knob", knob]
    found = [row["backend"] for row in batch.ask("list", "backends", "--chosen", *asked, *_adapters(config))]
    if not found:
        raise batch.BadCases("no backend is installed; `ulpscope doctor` says what is missing")
    return found


def _adapters(config):
    return [part for each in config.getoption("ulpscope_adapter") for part in ("--adapter", each)]


def _folder(config):
    if _FOLDER not in config.stash:
        told = getattr(config, "workerinput", {}).get("ulpscope")
        if told:
            config.stash[_FOLDER] = pathlib.Path(told["folder"])
        elif named := config.getoption("ulpscope_out"):
            pathlib.Path(named).mkdir(parents=True, exist_ok=True)
            config.stash[_FOLDER] = pathlib.Path(tempfile.mkdtemp(prefix="session-", dir=named)).resolve()
        else:
            temporary = getattr(config, "_tmp_path_factory", None)
            config.stash[_FOLDER] = temporary.mktemp("ulpscope") if temporary else pathlib.Path(tempfile.mkdtemp(prefix="ulpscope-"))
    return config.stash[_FOLDER]


def pytest_report_header(config):
    if config.getoption("ulpscope") and not hasattr(config, "workerinput"):
        return f"ulpscope: {', '.join(_backends(config))}"
    return None


def pytest_collect_file(file_path, parent):
    if not parent.config.getoption("ulpscope") or file_path.suffix != ".yaml":
        return None
    return CaseFile.from_parent(parent, path=file_path) if parent.session.isinitpath(file_path) or _holds_cases(file_path) else None


def _holds_cases(path):
    """Whether a file of a folder means to be a case file: other tools keep YAML too. One that is named is taken at its word."""
    try:
        return re.search(r"^cases\s*:", path.read_text(encoding="utf-8"), re.MULTILINE) is not None
    except (OSError, ValueError):
        return False


class CaseFile(pytest.File):
    """A file of cases."""

    def collect(self):
        try:
            rows = batch.ask("list", "cases", self.path)
        except (batch.BadCases, places.NotInstalled) as error:
            raise self.CollectError(str(error)) from None
        for row in rows:
            for backend in _backends(self.config):
                yield CaseItem.from_parent(self, name=f"{row['id']}[{backend}]", row=row, backend=backend)


class CaseItem(pytest.Item):
    """A case on a backend. Its tags are marks, and so are the tiers that hold it: -m ci takes what is tagged smoke too."""

    def __init__(self, *, row, backend, **others):
        super().__init__(**others)
        self.case, self.backend, self._line = row["id"], backend, int(row["line"])
        tags = [each for each in row["tags"].split(",") if each]
        quickest = min((_TIERS.index(each) for each in tags if each in _TIERS), default=_TIERS.index("ci"))
        for tag in dict.fromkeys([*tags, *_TIERS[quickest:]]):
            if tag not in _TIERS:
                self.config.addinivalue_line("markers", f"{tag}: a tag of ulpscope's cases")
            self.add_marker(tag)

    def runtest(self):
        try:
            self.found = self.config.stash[_BATCH].result(self.path, self.case, self.backend)
        except (batch.BadCases, places.NotInstalled) as error:
            raise Fails({"status": "HARNESS", "reason": str(error), "repro": ""}, [], None) from None
        result, report, folder = self.found
        if result["status"] == "SKIP":
            pytest.skip(result["reason"] or result["outcome"]["text"])
        if result["status"] == "XFAIL":
            pytest.xfail(result["reason"])
        if result["status"] != "PASS":
            parts = [each["sentence"] for each in report["divergences"]
                     if each["case"] == self.case and each["kind"] != "outcome" and any(self.backend in group for group in each["backends"])]
            raise Fails(result, list(dict.fromkeys(parts)), folder)

    def reportinfo(self):
        return self.path, self._line - 1, self.name

    def repr_failure(self, excinfo):
        if not isinstance(excinfo.value, Fails):
            return super().repr_failure(excinfo)
        result, parts, folder = excinfo.value.args
        reason = result["reason"] or result.get("outcome", {}).get("text", "")
        lines = textwrap.wrap(f"{result['status']}  {self.case}  {self.backend}  {reason}", 110, subsequent_indent="      ",
                              break_long_words=False, break_on_hyphens=False)
        for each in parts:
            lines += textwrap.wrap(each, 110, initial_indent="      ", subsequent_indent="      ", break_long_words=False,
                                   break_on_hyphens=False)
        lines.append(f"    {batch.shown(self.path)}:{self._line}")
        if result["repro"]:
            lines.append(f"    {result['repro']}")
        if folder:
            lines.append(f"    ulpscope explain {shlex.quote(f'{self.case}@{self.backend}')} --run {shlex.quote(str(folder))}")
        return "\n".join(lines)


class Fails(Exception):
    """Shown instead of a traceback: a result, the findings of its case, its run folder."""


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if not isinstance(item, CaseItem) or call.when != "call":
        return
    if report.skipped and isinstance(report.longrepr, tuple):
        report.longrepr = (str(item.path), item.reportinfo()[1] + 1, report.longrepr[2])
    if hasattr(item, "found"):
        # The item's own duration, without the time that it waited for a run of many.
        took = item.found[1]["volatile"]["durations"].get("cases_ms", {}).get(f"{item.case}@{item.backend}", {})
        report.duration = sum(took.values()) / 1000


def pytest_collection_finish(session):
    config = session.config
    items = [item for item in session.items if isinstance(item, CaseItem)]
    if not items or config.getoption("collectonly"):
        return
    worker = getattr(config, "workerinput", None)
    index, of = (int(worker["workerid"].removeprefix("gw")), worker["workercount"]) if worker else (0, 1)
    options = shlex.split(config.getini("ulpscope_run")) + shlex.split(config.getoption("ulpscope_run"))
    planned = [(item.path, item.case, item.backend) for item in items]
    config.stash[_BATCH] = batch.Batch(_folder(config), planned, index=index, of=of, options=[*options, *_adapters(config)])
    if worker:  # another worker may get the items of this one's part
        config.stash[_BATCH].start()


def pytest_sessionfinish(session, exitstatus):
    if (held := session.config.stash.get(_BATCH, None)) is not None:
        worker = hasattr(session.config, "workerinput")
        held.close(stop=not worker or exitstatus == pytest.ExitCode.INTERRUPTED)


def pytest_terminal_summary(terminalreporter, config):
    if hasattr(config, "workerinput") or not config.getoption("ulpscope") or _FOLDER not in config.stash:
        return
    runs = list(batch.Batch(_folder(config), []).ended())
    if not runs:
        return
    terminalreporter.section("ulpscope")
    for folder, printed, report in runs:
        if config.get_verbosity() > 0:
            terminalreporter.write_line(printed.rstrip())
        parted = len({each["sentence"] for each in report["divergences"]}) if report else 0
        also = " (-v shows them)" if parted and config.get_verbosity() <= 0 else ""
        terminalreporter.write_line(f"{parted} divergences between backends{also}: ulpscope report {folder}")


class Bound:
    """The package's functions for one test: what they keep lies in the test's tmp_path."""

    def __init__(self, folder, backends):
        self.folder, self._backends, self._count = folder, backends, 0

    def check(self, f, args=(), kwargs=None, **options):
        """ulpscope.check(); `backends` are by default those of the session, where it names some."""
        __tracebackhide__ = True
        from ulpscope import checking
        if named := self._backends():
            options.setdefault("backends", named)
        options.setdefault("out", self._own("check"))
        return checking.check(f, args, kwargs, **options)

    def assert_precision(self, kernel, args, **asked):
        """ulpscope.assert_precision()."""
        __tracebackhide__ = True
        from ulpscope import precision
        asked.setdefault("keep", self._own("precision"))
        return precision.assert_precision(kernel, args, **asked)

    def backend(self, name, ops, arrays="torch"):
        """ulpscope.backend()."""
        from ulpscope import kernels
        return kernels.backend(name, ops, arrays)

    def capture(self, f, args=(), kwargs=None, **options):
        """ulpscope.capture()."""
        __tracebackhide__ = True
        from ulpscope import capturing
        return capturing.capture(f, args, kwargs, **options)

    def _own(self, name):
        self._count += 1
        return self.folder / f"ulpscope-{name}-{self._count}"


@pytest.fixture
def ulpscope(request, tmp_path):
    """ulpscope.check, assert_precision, backend and capture, with run folders below tmp_path."""
    config = request.config
    named = config.getoption("ulpscope_backends") or config.getini("ulpscope_backends")
    return Bound(tmp_path, lambda: _backends(config) if named else None)
