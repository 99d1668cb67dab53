"""Printed lists: where a bracket closes, and the parts between commas."""

import re


def closing(text, start):
    """The position of the bracket that closes the one at `start`; the end of the text when none does."""
    depth = 0
    for position in range(start, len(text)):
        if text[position] in "([{":
            depth += 1
        elif text[position] in ")]}":
            depth -= 1
            if depth == 0:
                return position
    return len(text)


def split(text):
    """The parts of a list, split at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()] if text.strip() else []


def extents(text):
    """The integers of a printed shape, "4, 8"; what is no number is left out."""
    return tuple(map(int, re.findall(r"\b\d+\b", text)))
