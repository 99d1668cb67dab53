"""Names that a file uses and whose header it does not reach: what compiles where sources are compiled together, and nowhere else.

Types of the project that one header alone defines, and what everyone takes from the standard library. A header is reached through any
of a file's includes, as for a compiler that sees this file alone.
"""
import re

import types_twice

QUOTED = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)
ANGLED = re.compile(r"^[ \t]*#[ \t]*include[ \t]+<([^>]+)>", re.MULTILINE)
# Comments, literals, and what else holds no use of a name.
SILENT = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#[ \t]*include[^\n]*'
                    r"|^TEST\w*\([^)]*\)", re.MULTILINE | re.DOTALL)
WORD = re.compile(r"\b[A-Za-z_]\w+\b")

# Header -> the names that it alone has.
STANDARD = {
    "vector": r"std::vector\b", "map": r"std::(?:multi)?map\b", "set": r"std::(?:multi)?set\b", "optional": r"std::(?:optional|nullopt)\b",
    "functional": r"std::function\b", "memory": r"std::(?:unique_ptr|shared_ptr|make_unique|make_shared)\b", "array": r"std::array\b",
    "variant": r"std::(?:variant|visit|get_if|holds_alternative)\b", "thread": r"std::(?:thread|this_thread)\b",
    "mutex": r"std::(?:mutex|lock_guard|unique_lock)\b",
    "atomic": r"std::atomic\b", "regex": r"std::regex\b", "fstream": r"std::[io]fstream\b", "sstream": r"std::[io]?stringstream\b",
    "filesystem": r"std::filesystem\b", "chrono": r"std::chrono\b", "span": r"std::span\b", "limits": r"std::numeric_limits\b",
    "unordered_map": r"std::unordered_map\b", "unordered_set": r"std::unordered_set\b", "bit": r"std::(?:bit_cast|bit_floor|countr_zero)\b",
    "fmt/format.h": r"fmt::format\b",
}


def check(files, program_of):
    """(violations, number of uses looked at) of {file: text}. Names of one word are other things elsewhere: of types those of two and more
    are asked. program_of(file): as in types_twice."""
    bare = {file: SILENT.sub(" ", text) for file, text in files.items()}
    quoted = {file: [name for name in QUOTED.findall(text) if name in files] for file, text in files.items()}
    reached, angled = {}, {}
    for file in files:
        seen, left = {file}, [file]
        while left:
            for name in quoted[left.pop()]:
                if name not in seen:
                    seen.add(name)
                    left.append(name)
        reached[file] = seen
        angled[file] = {name for each in seen for name in ANGLED.findall(files[each])}
    homes = {}
    for file, text in files.items():
        for _, name in types_twice.types_of(text):
            homes.setdefault(name.rpartition("::")[2], set()).add(file)
    own = {name: next(iter(where)) for name, where in homes.items()
           if len(where) == 1 and next(iter(where)).endswith(".h") and len(re.findall("[A-Z]", name)) > 1}
    violations, uses = [], 0
    for file, text in sorted(bare.items()):
        declared = set(re.findall(r"\b(?:class|struct|enum class|enum|using) (\w+)", text))
        for name in sorted(set(WORD.findall(text)) & own.keys()):
            if program_of(own[name]) not in (None, program_of(file)):
                continue
            uses += 1
            if own[name] not in reached[file] and name not in declared:
                violations.append(f"{file}: uses {name} and includes {own[name]} nowhere")
        for header, pattern in STANDARD.items():
            found = re.search(pattern, text)
            uses += found is not None
            if found and header not in angled[file]:
                violations.append(f"{file}: uses {found.group()} and includes <{header}> nowhere")
    return violations, uses
