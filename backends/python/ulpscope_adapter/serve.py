"""The protocol loop: JSON Lines on the socket in ULPSCOPE_FD, one answer for each message."""

import json
import math
import os
import re
import socket
import sys
import time

from ulpscope_adapter.adapter import check_request, check_worker, filled_capabilities
from ulpscope_adapter.dtypes import DTYPES
from ulpscope_adapter.fpenv import fp_environment
from ulpscope_adapter.knobs import own_environment
from ulpscope_adapter.request import Unsupported, parse_request
from ulpscope_adapter.tensor import Tensor, element_bytes, read_safetensors, write_safetensors

PROTOCOL = 1
_MAX_MESSAGE = 16 << 20
_MAX_TEXT = 4096
_MAX_DEPTH = 64
_MAX_NODES = 20000  # of a trace; the rest is cut off, and the cut is said
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_ABSOLUTE_PATH = re.compile(r"(?<![\w/])/(?:[\w.+~-]+/)+([\w.+~-]+)")


def serve(adapter):
    """Answers the harness until `bye` or until it goes away. Does not return."""
    if "ULPSCOPE_FD" not in os.environ:
        sys.exit("This is an ulpscope adapter: `ulpscope doctor --adapter PATH` starts and checks it.")
    # Taken out of the environment and closed on exec: a compiler that the framework starts has no business
    # with it.
    link = socket.socket(fileno=int(os.environ.pop("ULPSCOPE_FD")))
    link.set_inheritable(False)
    conversation = Conversation(adapter, link)
    while conversation.answer_one():
        pass
    sys.exit(0)


class Conversation:
    """One conversation with the harness over a connected socket, a message at a time: for who has other things to wait for."""
    def __init__(self, adapter, link):
        self._link, self._lines, self._worker = link, link.makefile("rb"), _Worker(adapter)

    def fileno(self):
        """To wait on: readable when a message is there, or when the harness went away."""
        return self._link.fileno()

    def answer_one(self):
        """Awaits one message and answers it; False when it was the last. A line that is no message ends the process (SystemExit)."""
        line = self._lines.readline(_MAX_MESSAGE + 1)
        if not line:
            return False
        if len(line) > _MAX_MESSAGE:
            sys.exit("message larger than 16 MiB")
        message = _parse(line)
        verb = message["verb"]
        if verb == "bye":
            return False
        if verb not in ("hello", "run"):
            sys.exit(f"unknown verb {verb!r}")
        answer = self._worker.hello(message) if verb == "hello" else self._worker.run(message)
        self._link.sendall(_line(answer))
        return True

    def close(self):
        self._lines.close()
        self._link.close()


def _line(answer):
    """An answer on its way. A framework's text may hold bytes that are no UTF-8, as os.fsdecode keeps them: one U+FFFD each."""
    text = json.dumps(answer, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return _HALF_PAIR.sub("\ufffd", text).encode() + b"\n"


def _parse(line):
    """One message. Refuses what the protocol refuses: a key twice, deep nesting, what is no object."""
    try:
        message = json.loads(line, object_pairs_hook=_unique)
        _check_depth(message)
    except (ValueError, RecursionError) as error:
        sys.exit(f"this is no message: {error}")
    if not isinstance(message, dict) or not isinstance(message.get("verb"), str):
        sys.exit("this is no message: an object with a verb was expected")
    return message


def _unique(pairs):
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return entries


def _check_depth(message):
    level, depth = [message], 0
    while level:
        depth += 1
        if depth > _MAX_DEPTH + 1:
            raise ValueError(f"nested more than {_MAX_DEPTH} deep")
        level = [
            child for node in level if isinstance(node, (dict, list))
            for child in (node.values() if isinstance(node, dict) else node)
        ]


class _Worker:
    """One (backend, device, knob set), as the hello named it."""
    def __init__(self, adapter):
        self._adapter = adapter
        self._table = None
        self._environment = {}

    def hello(self, message):
        answer = {
            "protocol": PROTOCOL,
            "name": "",
            "backends": [],
            "versions": {},
            "devices": [],
            "knobs": {},
            "ops": [],
            "dtypes": [],
            "scopes": [],
            "capabilities": [],
            "error": ""
        }
        try:
            if message["protocol"] != PROTOCOL:
                raise Unsupported(f"protocol {message['protocol']}: this adapter speaks {PROTOCOL}")
            knobs = dict(message["knobs"])
            self._environment = own_environment(knobs.pop("env", None))
            self._adapter.configure(message["backend"], message["device"], knobs)
            table = filled_capabilities(self._adapter)
            table["knobs"] = {**table["knobs"], **self._environment}
            answer.update({key: table[key] for key in answer if key in table})
            answer["ops"] = sorted(table["ops"])
            check_worker(table, message["backend"], message["device"], message["knobs"])
            self._adapter.start()
            self._table = table
        except (Unsupported, ImportError) as error:
            answer["error"] = plain_text(str(error)) or type(error).__name__
        return answer

    def run(self, message):
        answer = {
            "id": message["id"],
            "outcome": {
                "kind": "completed",
                "class": "",
                "text": ""
            },
            "observations": {},
            "parts": {},
            "knobs": {},
            "casts": [],
            "nodes": [],
            "notes": [],
            "untraced": [],
            "fp": {},
            "durations_ms": {}
        }
        if self._table is None:
            answer["outcome"].update(kind="unsupported", text="no hello was answered without an error")
            return answer
        try:
            request = parse_request(message, read_safetensors(message["inputs"]))
        except (OSError, ValueError, LookupError, TypeError) as error:
            reason = plain_text(str(error)) or type(error).__name__
            answer["outcome"].update(kind="unsupported", text="inputs: " + reason.removeprefix("inputs: "))
            return answer
        refused = self._prepared(request)
        before = fp_environment(self._adapter.threads())
        begin = time.perf_counter()
        try:
            if refused is not None:
                raise refused
            check_request(self._table, request)
            result = self._adapter.run(request)
        except Unsupported as error:
            answer["outcome"].update(kind="unsupported", text=plain_text(str(error)))
        except Exception as error:  # the framework's own: an answer, not a failure of this process
            self._adapter.report_error(error)
            answer["outcome"].update(self._raised(self._adapter.root_cause(error)))
        else:
            _answer_with(answer, result, request, message["outputs"])
        answer["durations_ms"]["run"] = (time.perf_counter() - begin) * 1e3
        answer["fp"] = {"before": before, "after": fp_environment(self._adapter.threads())}
        answer["knobs"] = {key: str(value) for key, value in self._adapter.read_back().items()}
        answer["knobs"].update({key: values[0] for key, values in self._environment.items()})
        return answer

    def _prepared(self, request):
        """None, or the reason why this worker cannot run anything."""
        try:
            self._adapter.prepare(request)
        except Unsupported as error:
            return error
        return None

    def _raised(self, error):
        name = type(error).__name__
        memory = isinstance(error, MemoryError) or name == "OutOfMemoryError"
        return {
            "kind": "out_of_memory" if memory else "raised",
            "class": name,
            "text": plain_text(self._adapter.error_text(error))
        }


def plain_text(text):
    """At most 4 KiB of `text`, absolute paths cut to their last part: they differ from machine to machine."""
    return _ABSOLUTE_PATH.sub(r"\1", text.strip())[:_MAX_TEXT]


def _answer_with(answer, result, request, path):
    """Puts a Result into the answer. A value that is no Result is the adapter's own fault: it is reported as such, and nothing else is
    affected."""
    try:
        tensors = _observed(result, request)
    except (TypeError, ValueError) as error:
        answer["outcome"].update(kind="unsupported", text=plain_text(f"the result cannot be carried: {error}"))
        return
    except Unsupported as error:
        answer["outcome"].update(kind="unsupported", text=plain_text(str(error)))
        return
    try:
        write_safetensors(path, tensors)
    except OSError as error:
        reason = plain_text(error.strerror or type(error).__name__)
        answer["outcome"].update(kind="out_of_memory", text=f"the outputs could not be handed over: {reason}")
        answer["outcome"]["class"] = "outputs"
        return
    answer["observations"] = {key: str(value) for key, value in result.observations.items()}
    answer["observations"].update((name, "none") for name, value in result.values.items() if value is None)
    answer["parts"] = dict(result.parts)
    answer["durations_ms"].update((key, ms) for key, ms in result.durations_ms.items() if math.isfinite(ms))
    answer.update(trace_entries(result.nodes, result.casts, result.notes))
    answer["untraced"] = list(result.untraced)


def _observed(result, request):
    """name -> Tensor of what is written. Every observed name has one answer, and no other name has any."""
    for name in request.observe:
        if (name in result.values) == (name in result.observations):
            said = "is answered twice" if name in result.values else "is not answered by this adapter"
            raise Unsupported(f"observed '{name}' {said}")
    for name in result.values:
        if name not in request.observe:
            raise Unsupported(f"tensor '{name}' is answered and was not observed")
    tensors = {
        name: value if isinstance(value, Tensor) else Tensor.of(value)
        for name, value in result.values.items() if value is not None
    }
    for tensor in tensors.values():
        if tensor.dtype not in DTYPES:
            raise TypeError(f"dtype {tensor.dtype} is none of the harness's")
    return tensors


def trace_entries(nodes, casts, notes):
    """Nodes, casts and notes as an answer carries them; a cut of a trace that is too long is noted."""
    notes, count = list(notes), len(nodes)
    nodes = nodes[:_MAX_NODES]
    kept = {node.id for node in nodes}
    if len(nodes) < count:
        notes.append(f"the trace is cut after {len(nodes)} of {count} nodes")
    return {
        "nodes": [_node_entry(node, kept) for node in nodes],
        "casts": [_cast_entry(cast, kept) for cast in casts],
        "notes": notes
    }


def _node_entry(node, kept):
    entry = {
        "id": node.id,
        "parent": node.parent if node.parent in kept else -1,
        "stage": node.stage,
        "op": node.op,
        "from": [source for source in node.sources if source in kept],
        "inputs": [[dtype, list(shape)] for dtype, shape in node.inputs],
        "outputs": [[dtype, list(shape)] for dtype, shape in node.outputs]
    }
    if node.kind != "compute":
        entry["kind"] = node.kind
    if node.us is not None:
        entry["us"] = node.us
    return entry


def _cast_entry(cast, kept):
    count = 1
    for extent in cast.shape:
        count *= extent
    entry = {
        "from": cast.source,
        "to": cast.target,
        "shape": list(cast.shape),
        "bytes": count * element_bytes(cast.target),
        "under": cast.under,
        "stage": cast.stage,
        "node": cast.node if cast.node in kept else -1
    }
    if cast.us is not None:
        entry["us"] = cast.us
    return entry
