#!/usr/bin/env python3
"""An adapter that sends a given text wherever the protocol takes text. The texts stand in the file `said` beside it, one a line; the
operand of `neg` decides how it answers.
"""
import json
import os
import pathlib
import socket
import struct
import sys

SAID = (pathlib.Path(__file__).parent / "said").read_text(encoding="utf-8").splitlines()


def negated(message):
    data = pathlib.Path(message["inputs"]).read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    begin, end = header["x"]["data_offsets"]
    values = bytearray(data[8 + length:][begin:end])
    for i in range(3, len(values), 4):
        values[i] ^= 0x80
    text = json.dumps({"r": {"dtype": "F32", "shape": header["x"]["shape"], "data_offsets": [0, len(values)]}}).encode()
    pathlib.Path(message["outputs"]).write_bytes(struct.pack("<Q", len(text)) + text + values)


def answer(message):
    everything = "; ".join(SAID)
    if message["verb"] == "hello":
        versions = {f"part{i}": text for i, text in enumerate(SAID)}
        return {"protocol": 1, "name": "talking", "backends": ["talking"], "versions": versions, "devices": ["cpu"],
                "knobs": {"threads": ["1"]}, "ops": ["neg"], "dtypes": ["float32"], "scopes": [], "capabilities": [], "error": ""}
    case = message["case"]
    if case.endswith("raises"):
        return {"id": message["id"], "outcome": {"kind": "raised", "class": "Error", "text": everything}}
    if case.endswith("crashes"):
        print("\n".join(SAID), file=sys.stderr, flush=True)
        print("\n".join(SAID), flush=True)
        os._exit(3)
    negated(message)
    return {"id": message["id"], "outcome": {"kind": "completed", "class": "", "text": ""}, "notes": SAID, "knobs": {"threads": everything},
            "casts": [{"from": "bfloat16", "to": "float32", "shape": [1], "bytes": 4, "under": everything, "stage": "dispatch"}],
            "nodes": [{"id": i, "parent": -1, "stage": "dispatch", "kind": "compute", "op": text} for i, text in enumerate(SAID)]}


def main():
    link = socket.socket(fileno=int(os.environ["ULPSCOPE_FD"]))
    for line in link.makefile("r", encoding="utf-8"):
        message = json.loads(line)
        if message["verb"] == "bye":
            return
        link.sendall((json.dumps(answer(message)) + "\n").encode())


main()
