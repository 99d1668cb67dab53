"""ulpscope-faulty once more, on the Python SDK: the same faults under the same names (`faulty:fault=hang,case=square`).

The correct part is an ordinary SDK adapter. Link stands where the SDK expects its socket, and commits what an adapter built on
the SDK could not. tests/faults.yaml says what the harness must make of each fault, in either language. Needs nothing but the
standard library: no package may stand between a fault and the harness.
"""

import os
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import run_faults  # noqa: E402
import wire_faults  # noqa: E402
from arithmetic import OPS  # noqa: E402
from ulpscope_adapter import Adapter, Result  # noqa: E402
from ulpscope_adapter.serve import Conversation  # noqa: E402

FAULTS = ["none", *run_faults.FAULTS, *wire_faults.ANSWER_FAULTS, *wire_faults.START_FAULTS]


class Plan:
    """The requested fault, from the knobs of the hello."""

    def __init__(self):
        self.fault, self.case_text = "none", ""

    def strikes(self, case):
        return self.case_text in case


class FaultyAdapter(Adapter):
    def __init__(self, plan):
        self._plan, self._threads, self._runs = plan, 1, 0

    def capabilities(self):
        return {
            "name": "faulty",
            "backends": ["faulty"],
            "versions": {"python": "%d.%d.%d" % sys.version_info[:3]},
            # Any text names a case: the one that was asked for is offered.
            "knobs": {"threads": ["1"], "fault": FAULTS, "case": [self._plan.case_text], "flush_denormal": ["off", "on"]},
            "dtypes": ["float32", "bfloat16"],
            "ops": {"matmul": [], "add": [], "cast": ["dtype"]}
        }

    def run(self, request):
        self._runs += 1
        struck = self._plan.strikes(request.case)
        before, after = run_faults.FAULTS.get(self._plan.fault, (None, None)) if struck else (None, None)
        if before is not None:
            before(self._runs)
        values = {tensor.name: tensor.tensor for tensor in request.tensors}
        for step in request.all_steps():
            values[step.name] = OPS[step.op](*step.operands(values), **step.attrs)
        result = Result({name: values[name] for name in request.observe})
        if after is not None:
            after(result, self._runs)
        if struck and self._plan.fault == "threads":
            self._threads = 7
        return result

    def read_back(self):
        return {"threads": "1"}

    def threads(self):
        return self._threads


class Link:
    """The socket to the harness as the SDK uses it; what passes is looked at, and faults are committed."""

    def __init__(self, outside, plan):
        self._outside, self._plan = outside, plan
        self._send, self._outputs = None, ""

    def makefile(self, mode):
        self._lines = self._outside.makefile(mode)
        return self

    def readline(self, limit):
        line = self._lines.readline(limit)
        message = wire_faults.parsed(line)
        self._send = None
        if message.get("verb") == "hello":
            self._plan.fault = message["knobs"].get("fault", "none")
            self._plan.case_text = message["knobs"].get("case", "")
            start = wire_faults.START_FAULTS.get(self._plan.fault)
            if start is not None:
                start(self._outside)
        elif message.get("verb") == "run" and self._plan.strikes(message["case"]):
            self._send, self._outputs = wire_faults.ANSWER_FAULTS.get(self._plan.fault), message["outputs"]
        return line

    def sendall(self, answer):
        if self._send is None:
            self._outside.sendall(answer)
        else:
            self._send(self._outside, answer, self._outputs)


def main():
    if "ULPSCOPE_FD" not in os.environ:
        sys.exit("This is a test's subject: ulpscope doctor --adapter backends/faulty/adapter.py")
    outside = socket.socket(fileno=int(os.environ.pop("ULPSCOPE_FD")))
    outside.set_inheritable(False)
    plan = Plan()
    conversation = Conversation(FaultyAdapter(plan), Link(outside, plan))
    while conversation.answer_one():
        pass


if __name__ == "__main__":
    main()
