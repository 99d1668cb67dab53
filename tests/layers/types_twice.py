"""Types that stand twice: two classes of one name in one namespace, in two files.

Each file compiles; linked together they are one type to the linker, which keeps one of the two move constructors, say, and
calls it for both (ISO C++ [basic.def.odr]). Nothing warns of it unless the whole program is optimised at once.
"""
import re

# A line that opens or closes a namespace, as .clang-format writes them, or begins the definition of a type at its level.
OPENS = re.compile(r"^(?:inline )?namespace(?: ([\w:]+))? \{")
CLOSES = re.compile(r"^\}  // namespace")
DEFINES = re.compile(r"^(?:template <[^{;]*> ?)?(?:struct|class|union|enum(?: class| struct)?) (?:\[\[\w+\]\] )?(\w+(?:::\w+)*)(?: final)?\b(?!.*[;)]\s*$)")


def types_of(text):
    """(line, qualified name) of each type that other files can see: those of unnamed namespaces are their file's own."""
    spaces = []
    for number, line in enumerate(text.splitlines(), 1):
        if match := OPENS.match(line):
            spaces.append(match.group(1))
        elif CLOSES.match(line):
            if spaces:
                spaces.pop()
        elif (match := DEFINES.match(line.split(" //")[0])) and None not in spaces:
            yield number, "::".join([*spaces, match.group(1)])


def check(files, program_of):
    """(violations, number of types) of {file: text}. program_of(file): the program that the file is part of, or None for what
    is part of all: files of two different programs never meet."""
    seen, violations = {}, []
    for file in sorted(files):
        for number, name in types_of(files[file]):
            for other in seen.setdefault(name, []):
                if other != file and (None in (program_of(file), program_of(other)) or program_of(file) == program_of(other)):
                    violations.append(f"{file}:{number}: a second type {name}: the first is in {other}")
                    break
            seen[name].append(file)
    return violations, sum(map(len, seen.values()))
