"""Compiles programs for torch-aoti: each becomes an AOTInductor package, and a list of what it takes and gives.

The C++ adapter starts this program when a package is not in its cache, sends one JSON object a line on
standard input and reads one a line from the descriptor in ULPSCOPE_REPLY_FD (frameworks print to standard
output). It ends with its input.

    -> {"steps": [...], "inputs": [{"name", "dtype", "shape", "strides", "requires_grad", "same_as"}],
        "wanted": ["y"], "package": "/path.pt2", "knobs": {...}}
    <- {"outcome": {"kind", "class", "text"}, "outputs": ["y"], "gradients": ["w"], "casts", "nodes", "notes",
        "knobs", "durations_ms"}
"""

import json
import os
import sys
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

import knobs as knob_table  # noqa: E402
from ulpscope_adapter import Unsupported  # noqa: E402
from ulpscope_adapter.serve import plain_text, trace_entries  # noqa: E402


def main():
    replies = os.fdopen(int(os.environ.pop("ULPSCOPE_REPLY_FD")), "w")
    compiler = None
    for line in sys.stdin:
        message = json.loads(line)
        compiler = compiler or Compiler(message["knobs"])
        replies.write(json.dumps(compiler.answer(message)) + "\n")
        replies.flush()


class Compiler:
    """One process of compilation; its knobs are those of its first message."""
    def __init__(self, knobs):
        knob_table.set_before_import(knobs)
        import torch._inductor.config
        import aoti_evidence
        knob_table.apply("torch-aoti", "cpu", knobs)
        torch._inductor.config.compile_threads = 1
        self._recorder = aoti_evidence.PackageRecorder()
        self._recorder.attach()

    def answer(self, message):
        """The reply to one message. An exception that the program makes torch raise is a reply; an error of this file is none."""
        import aoti_program
        self._recorder.clear(trace=True)
        reply = {"outcome": {"kind": "completed", "class": "", "text": ""}}
        try:
            program = aoti_program.Program(message)
        except Unsupported as error:
            reply["outcome"] = {"kind": "unsupported", "class": "", "text": plain_text(str(error))}
            return reply
        try:
            reply["durations_ms"] = _package(program, message["package"])
        except Exception as error:
            reply["outcome"] = _raised(error)
        else:
            reply.update(outputs=program.outputs, gradients=program.gradients,
                         **trace_entries(*self._recorder.trace()))
        reply["knobs"] = knob_table.read_back("torch-aoti", "cpu")
        return reply


def _package(program, path):
    """Exports and compiles; gives what each took, in milliseconds."""
    import torch
    begin = time.perf_counter()
    module, examples = program.exportable()
    exported = torch.export.export(module, examples, strict=False)
    exported_at = time.perf_counter()
    partial = path.removesuffix(".pt2") + ".partial.pt2"
    torch._inductor.aoti_compile_and_package(exported, package_path=partial)
    os.replace(partial, path)
    return {"export": (exported_at - begin) * 1e3, "compile": (time.perf_counter() - exported_at) * 1e3}


def _raised(error):
    from failures import innermost
    traceback.print_exc()
    error = innermost(error)
    return {"kind": "raised", "class": type(error).__name__, "text": plain_text(str(error))}


if __name__ == "__main__":
    main()
