"""Faults on the wire and at start-up: every way to answer wrongly (wire_faults.cc in Python)."""

import json
import os
import signal
import time

from run_faults import die_of, hang
from ulpscope_adapter import Tensor
from ulpscope_adapter.tensor import read_safetensors, write_safetensors


def parsed(line):
    """The message, or an empty one: what is no message the SDK refuses."""
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def says(line):
    def send(outside, _answer, _outputs):
        outside.sendall(line)
    return send


def with_answer(change):
    """Sends the answer with something of it changed."""
    def send(outside, answer, _outputs):
        message = json.loads(answer)
        change(message)
        outside.sendall(json.dumps(message).encode() + b"\n")
    return send


def with_tensors(change):
    """Changes the written tensors before the answer is sent."""
    def send(outside, answer, outputs):
        tensors = read_safetensors(outputs)
        change(tensors)
        write_safetensors(outputs, tensors)
        outside.sendall(answer)
    return send


def with_file(change):
    """Does something with the written file before the answer is sent."""
    def send(outside, answer, outputs):
        change(outputs)
        outside.sendall(answer)
    return send


def changed_bytes(change):
    def rewrite(outputs):
        with open(outputs, "rb") as file:
            data = file.read()
        with open(outputs, "wb") as file:
            file.write(change(data))
    return with_file(rewrite)


def with_an_axis_more(tensors):
    name = min(tensors)
    tensors[name] = Tensor(tensors[name].dtype, (*tensors[name].shape, 1), tensors[name].data)


def in_place_of(outputs, make):
    os.unlink(outputs)
    make(outputs)


def litter(outputs):
    os.mkdir(outputs + ".litter", 0o700)
    with open(os.path.join(outputs + ".litter", "file"), "w"):
        pass


def short_frame(outside, answer, _outputs):
    outside.sendall(answer[:len(answer) // 2])
    os.close(outside.detach())  # close() would wait for the file that reads from it
    hang()


def oversize_frame(outside, _answer, _outputs):
    for _ in range(20):
        outside.sendall(b"x" * (1 << 20))
    hang()


def closed_socket(outside, _answer, _outputs):
    os.close(outside.detach())
    hang()


def slow_drip(outside, answer, _outputs):
    for at in range(len(answer)):
        outside.sendall(answer[at:at + 1])
        time.sleep(0.1)


def die_after(outside, answer, _outputs):
    outside.sendall(answer)
    os._exit(0)


def late_line(outside, answer, _outputs):
    outside.sendall(answer)
    time.sleep(0.02)
    outside.sendall(answer)


ANSWER_FAULTS = {
    "garbage": says(b"Segmentation fault (just kidding)\n"),
    "not_utf8": says(b'{"id": 1, "outcome": {"kind": "\xff\xfe"}}\n'),
    "no_object": says(b"[1, 2, 3]\n"),
    "two_lines": lambda outside, answer, _outputs: outside.sendall(answer + answer),
    "bytes_after": lambda outside, answer, _outputs: outside.sendall(answer + b"}"),
    "wrong_id": with_answer(lambda message: message.update(id=message["id"] + 1)),
    "unknown_outcome": with_answer(lambda message: message["outcome"].update(kind="splendid")),
    "wrong_type": with_answer(lambda message: message.update(notes=7)),
    "surrogate": with_answer(lambda message: message.update(notes=["\ud800"])),
    "unasked_observation": with_answer(lambda message: message["observations"].update({"nobody.asked": "float32"})),
    "short_frame": short_frame,
    "oversize_frame": oversize_frame,
    "deep_json": says(b"[" * 100000 + b"]" * 100000 + b"\n"),
    "closed_socket": closed_socket,
    "slow_drip": slow_drip,
    "wrong_size": changed_bytes(lambda data: data[:-1]),
    "wrong_dtype": changed_bytes(lambda data: data.replace(b'"F32"', b'"Q32"', 1)),
    "wrong_shape": with_tensors(with_an_axis_more),
    "missing_tensor": with_tensors(lambda tensors: tensors.pop(min(tensors))),
    "extra_tensor": with_tensors(lambda tensors: tensors.update(extra=tensors[min(tensors)])),
    "no_outputs": with_file(os.unlink),
    "fifo_outputs": with_file(lambda outputs: in_place_of(outputs, os.mkfifo)),
    "linked_outputs": with_file(lambda outputs: in_place_of(outputs, lambda path: os.symlink("/etc/passwd", path))),
    "shm_litter": with_file(litter),
    "die_after": die_after,
    "late_line": late_line,
}


def answers_hello(line):
    def start(outside):
        outside.sendall(line)
        hang()
    return start


START_FAULTS = {
    "start_crash": lambda _outside: die_of(signal.SIGSEGV)(0),
    "start_exit": lambda _outside: os._exit(127),
    "start_hang": lambda _outside: hang(),
    "start_slow": lambda _outside: time.sleep(1),
    "start_garbage": answers_hello(b"Traceback (most recent call last):\n"),
    "start_protocol": answers_hello(b'{"protocol": 99, "name": "faulty", "backends": ["faulty"], "error": ""}\n'),
    "start_backend": answers_hello(b'{"protocol": 1, "name": "faulty", "backends": ["someone-else"], "error": ""}\n'),
    "start_refused": answers_hello(
        b'{"protocol": 1, "name": "faulty", "backends": ["faulty"], "error": "no accelerator found"}\n'),
}
