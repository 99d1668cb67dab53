"""The shape of a generated C++ kernel: blocks, loops and statements. Nothing is evaluated here.

Inductor writes plain code: loops over int64_t, blocks, one assignment a statement, lambdas only as masked
bodies or inside an argument list. The main body and the remainder of a vectorised loop compute the same
values; a remainder (a C10_UNLIKELY branch beside its C10_LIKELY one, or a loop that goes on where the one
before it ended) is therefore left out, and the loop before it counts all its elements.
"""

import re
from dataclasses import dataclass, field

from ulpscope_adapter import brackets

_FOR = re.compile(r"for\s*\(\s*[\w:]+ (\w+)\s*=\s*([^;]+);\s*\1\s*<\s*([^;]+);")
_INDEX_CAST = re.compile(r"static_cast<(?:int64_t|int32_t|long|int)>\((-?\w+)\)")
_LITERAL = re.compile(r"\b(\d+)L{1,2}\b")
_BLOCK_HEADER = re.compile(r"(for|if|else|while|do|switch)\b|extern\b|$")
_LAMBDA_HEADER = re.compile(r"\[[&=]?\]\s*(\([^()]*\))?\s*(->\s*\w+)?$")
_FUNCTION_HEADER = re.compile(r"\bvoid\s+\w+\s*\(")


@dataclass
class Block:
    """The statements between two braces, under their header: a loop, a condition, a lambda, a function."""

    header: str = ""
    parts: list = field(default_factory=list)  # statements (str) and Blocks, in order

    @property
    def loop(self):
        """(variable, first, end) of a for loop over integers, as written; None for anything else."""
        match = _FOR.match(self.header)
        return match.groups() if match else None


def parse(source):
    """The tree of a kernel's source; headers and statements without casts of indices, each on one line."""
    lines = (line.partition("//")[0] for line in source.splitlines() if not line.lstrip().startswith("#"))
    reader = _Reader(_simplified(" ".join(lines)))
    root = Block()
    reader.read_into(root)
    _drop_remainders(root)
    return root


def _simplified(text):
    previous = None
    text = _LITERAL.sub(r"\1", re.sub(r"\s+", " ", text))
    while previous != text:
        previous, text = text, _INDEX_CAST.sub(r"\1", text)
    return text


class _Reader:
    """Reads statements and blocks; brackets inside a statement are skipped over whole."""

    _STOP = re.compile(r"[;{}(\[]")

    def __init__(self, text):
        self._text = text
        self._position = 0

    def read_into(self, block):
        begin = self._position
        while self._position < len(self._text):
            match = self._STOP.search(self._text, self._position)
            if match is None:
                return
            character = match[0]
            if character in "([":
                self._position = brackets.closing(self._text, match.start()) + 1
                continue
            pending = self._text[begin:match.start()].strip()
            if character == "{" and not self._opens_block(pending):  # an initialiser
                self._position = brackets.closing(self._text, match.start()) + 1
                continue
            self._position = match.end()
            if character == "{":
                inner = Block(pending)
                self.read_into(inner)
                block.parts.append(inner)
            elif pending:
                block.parts.append(pending)
            if character == "}":
                return
            begin = self._position

    @staticmethod
    def _opens_block(pending):
        return bool(
            _BLOCK_HEADER.match(pending) or _LAMBDA_HEADER.search(pending) or
            _FUNCTION_HEADER.search(pending))


def _drop_remainders(block):
    kept = []
    for part in block.parts:
        before = kept[-1] if kept and isinstance(kept[-1], Block) else None
        if not isinstance(part, Block) or not _is_remainder(part, before):
            kept.append(part)
        elif part.loop:
            before.header = before.header.replace(f"<{before.loop[2]};", f"<{part.loop[2]};", 1)
    block.parts = kept
    for part in kept:
        if isinstance(part, Block):
            _drop_remainders(part)


def _is_remainder(block, before):
    if before is None:
        return False
    if block.header.startswith("if(C10_UNLIKELY"):
        return before.header.startswith("if(C10_LIKELY")
    here, there = block.loop, before.loop
    return bool(here and there and here[0] == there[0] and here[1] == there[2] and there[2] not in ("0", "1"))
