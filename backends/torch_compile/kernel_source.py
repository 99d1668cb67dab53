"""The dataflow of one generated C++ kernel: what it loads, converts, computes and stores, as Nodes.

A kernel's source, not the graph above it, shows where a fused computation rounds. Graphs convert after every op of a narrow dtype; inductor
keeps such a conversion in the source and goes on from the unrounded value, so that its result is never used and the compiler removes it. So
a conversion counts only if what it makes is *used*: if it reaches a store into one of the kernel's buffers. One that does not is a node
too, of the op "unused convert", and no cast.

The shape of a value is the extents of the loops that its indices depend on: as many elements as there are
different values, though perhaps flattened.
"""

import re
from dataclasses import dataclass, field

import cpp_blocks
from ulpscope_adapter import brackets
from ulpscope_adapter.dtypes import float8_names
from ulpscope_adapter.graph import Node

# C++ names without const, at:: and c10:: -> long names.
DTYPES = {
    "double": "float64",
    "float": "float32",
    "BFloat16": "bfloat16",
    "bfloat16": "bfloat16",
    "Half": "float16",
    "half": "float16",
    **float8_names(lambda code: f"Float8_{code}"),
    "int64_t": "int64",
    "long": "int64",
    "int32_t": "int32",
    "int": "int32",
    "int16_t": "int16",
    "int8_t": "int8",
    "uint8_t": "uint8",
    "bool": "bool"
}
_FUNCTION = re.compile(r"\bvoid\s+(\w+)\s*\(")
_PARAMETER = re.compile(
    r"(?P<const>const )?\s*(?P<type>[\w:]+)\s*(?P<star>\*?)\s*(?:__restrict__\s*)?(?P<name>\w+)$")
_ASSIGN = re.compile(
    r"(?P<type>[\w:<>,*\s\[\]]*?[\w>*\]]\s+)?(?P<name>\w+)\s*(?P<index>\[.*\])?\s*[-+*/|&]?=(?!=)\s*"
    r"(?P<value>.+)$")
_DECLARE = re.compile(r"(?P<type>[\w:]+(?:<[^()]*>)?)\s+(?P<name>\w+)\s*(?P<index>\[.*\])?$")
_STORE = re.compile(r"(?P<value>.+)\.store\((?P<where>.+)\)$")
_CONVERSION = re.compile(r"(?:at::vec::convert|c10::convert|static_cast)<(?P<types>[^<>()]*)>\("
                         r"|(?<![\w:<>.])(?P<type>float|double|bool|at::BFloat16|at::Half)\(")
_LOAD = re.compile(
    r"(?:at::vec::Vectorized(?:N)?<(?P<type>[\w:]+)(?:,\d+)?>::loadu\(\s*)?(?P<name>\w+)(?P<index>\[| \+ )")
_BROADCAST = re.compile(
    r"(?:at::vec::Vectorized(?:N)?<[\w:]+(?:,\d+)?>|decltype\(\w+\))?\(?\s*([\w$]+)\s*\)?$")
_ELEMENT = re.compile(r"<\s*([\w:]+)")
_COMPARE = re.compile(r" (?:<|>|<=|>=|==|!=) |at::vec::VecMask<|&&|\|\|")
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_METHOD = re.compile(r"[\w$]+\.(\w+)\(")
_CALL = re.compile(r"([A-Za-z_]\w*)(?:<[^()]*>)?\(")
_OPERATORS = ((" * ", "mul"), (" + ", "add"), (" - ", "sub"), (" / ", "div"))


@dataclass(frozen=True)
class _Loop:
    """A loop over the elements of a dimension; `place` distinguishes it from others over a variable of that name."""

    place: int
    variable: str
    extent: int


@dataclass(eq=False)
class _Variable:
    """A name of the source. `made` are the operations that give it a value."""

    dtype: str = ""
    loops: frozenset = frozenset()  # those that its value depends on
    inside: tuple = ()  # loops around its declaration
    made: list = field(default_factory=list)
    pointer: bool = False
    local: bool = True  # False: a buffer of the caller's
    output: bool = False  # one that the kernel may write
    label: str = ""


@dataclass(eq=False)
class _Operation:
    op: str
    dtype: str
    loops: frozenset
    reads: list
    converts: _Variable | None = None
    sink: bool = False
    moves: bool = False  # loads or stores, the value unchanged
    live: bool = False
    name: str = ""


def kernel_nodes(source, prefix, parent, makers=None):
    """The nodes of a kernel, under names that begin with `prefix`; their parent is the node `parent`.

    `makers`: of the kernel's pointers, by name, the nodes that made what they point to.
    """
    return _Kernel(source, makers or {}).nodes(prefix, parent)


def nodes_or_problem(source, kernel, parent, makers=None):
    """(nodes, problems): those of a kernel called `kernel`, or the message for a source that is not understood."""
    try:
        return kernel_nodes(source, f"{parent}:", parent, makers), []
    except (IndexError, KeyError, RecursionError, ValueError) as error:
        return [], [f"generated: the source of {kernel} was not understood ({type(error).__name__})"]


def parameters(source):
    """[(dtype, name, "in" or "out")] of a kernel's pointers, in order; an in_out pointer is "out"."""
    match = _FUNCTION.search(source)
    if match is None:
        return []
    text = source[match.end():brackets.closing(source, match.end() - 1)]
    found = []
    for declaration in brackets.split(text):
        parameter = _PARAMETER.match(re.sub(r"\s+", " ", declaration))
        if parameter and parameter["star"]:
            found.append(
                (long_name(parameter["type"]), parameter["name"], "in" if parameter["const"] else "out"))
    return found


def long_name(cpp_type):
    """The long name of a C++ type, "" for one that is no element type."""
    plain = cpp_type.replace("const", "").replace("*", "").strip().removeprefix("at::").removeprefix("c10::")
    return DTYPES.get(plain, "")


class _Kernel:
    """Walks the blocks of one kernel, then marks what reaches a store."""
    def __init__(self, source, makers):
        self._makers = makers
        self._operations = []
        self._loops = 0
        self._temporaries = 0
        top = {}
        for dtype, name, direction in parameters(source):
            top[name] = _Variable(dtype=dtype, pointer=True, local=False, output=direction == "out",
                                  label=name)
        self._walk(cpp_blocks.parse(source), [top], (), None)
        self._mark()

    def nodes(self, prefix, parent):
        emitted = [operation for operation in self._operations if operation.live or operation.converts]
        nodes = []
        for place, operation in enumerate(emitted):
            nodes.append(self._node(operation, parent, f"{prefix}{place}"))
            operation.name = nodes[-1].name
        return nodes

    def _node(self, operation, parent, name):
        # Only what stands before: what a loop carries over to its next step is left out.
        made = {id(read): [maker.name for maker in read.made if maker.name] for read in operation.reads}
        inputs = tuple(dict.fromkeys(name for names in made.values() for name in names))
        outside = [read for read in operation.reads if read.pointer and not made[id(read)]]
        shape, cast_of, op = _shape(operation.loops), "", operation.op
        kind = "move" if operation.moves else "compute"
        if operation.converts is not None:
            kind, op = "convert", "convert" if operation.live else "unused convert"
            cast_of = next(iter(made[id(operation.converts)]), "") if operation.live else ""
        return Node(name=name, dtype=operation.dtype, shape=shape, op=op, kind=kind, inputs=inputs, cast_of=cast_of,
                    parent=parent, reads=tuple((read.dtype, shape) for read in outside),
                    after=tuple(filter(None, (self._makers.get(read.label) for read in outside))))

    def _mark(self):
        waiting = [operation for operation in self._operations if operation.sink]
        while waiting:
            operation = waiting.pop()
            if operation.live:
                continue
            operation.live = True
            waiting += [maker for read in operation.reads for maker in read.made if not maker.live]

    def _walk(self, block, scopes, inside, result):
        """`result`: the variable that `return` gives a value to, inside a lambda."""
        for part in block.parts:
            if isinstance(part, str):
                self._statement(part, scopes, inside, result)
                continue
            assigned, loops = result, inside
            if part.loop:
                loops = self._enter(part.loop, inside)
            head = _ASSIGN.match(part.header)
            if head and "[" in head["value"] and part.header.rstrip().endswith((")", "]")):
                assigned = self._declare(scopes, head["name"], inside, "")
            self._walk(part, [*scopes, {}], loops, assigned)

    def _enter(self, loop, inside):
        variable, first, end = loop
        if variable.endswith("_inner"):  # the elements of one step of a loop that is counted already
            return inside
        if not first.lstrip("-").isdigit() or not end.isdigit():
            return inside
        self._loops += 1
        return (*inside, _Loop(self._loops, variable, int(end) - int(first)))

    def _declare(self, scopes, name, inside, dtype):
        scopes[-1][name] = variable = _Variable(dtype=dtype, inside=inside, label=name)
        return variable

    def _statement(self, text, scopes, inside, result):
        if text.startswith("return ") and result is not None:
            self._assign(result, text[len("return "):], scopes, inside)
            return
        store = _STORE.match(text)
        if store:
            where = brackets.split(store["where"])[0]
            self._store(where, store["value"], scopes, inside)
            return
        match = _ASSIGN.match(text)
        if match is None:
            self._other(text, scopes, inside)
        elif match["index"]:
            self._store(match["name"] + match["index"], match["value"], scopes, inside)
        else:
            self._assignment(match, scopes, inside)

    def _assignment(self, match, scopes, inside):
        declared, value = (match["type"] or "").strip(), match["value"]
        alias = self._find(scopes, value) if value.isidentifier() else None
        if declared and alias is not None and alias.pointer:
            scopes[-1][match["name"]] = alias
            return
        if declared:
            element = _ELEMENT.search(declared)
            variable = self._declare(scopes, match["name"], inside,
                                     long_name(element[1] if element else declared))
            variable.pointer = "*" in declared
            if variable.pointer:
                return
        else:
            variable = self._find(scopes, match["name"])
            if variable is None:
                self._other(value, scopes, inside)
                return
        self._assign(variable, value, scopes, inside)

    def _other(self, text, scopes, inside):
        if text.startswith("alignas("):
            text = text[brackets.closing(text, len("alignas")) + 1:].strip()
        declared = _DECLARE.match(text)
        if declared and declared["type"] not in ("return", "delete", "goto"):
            variable = self._declare(scopes, declared["name"], inside, long_name(declared["type"]))
            variable.pointer = bool(declared["index"])
            return
        call = _CALL.match(text.rpartition("::")[2] if text.startswith("at::") else text)
        reads = self._reads(text, scopes)
        buffers = [read for read in reads if read.pointer]
        # It writes through its pointers, the first of several being what it reads.
        written = [b for b in buffers[len(buffers) > 1:] if b.output or b.local]
        reads = [read for read in reads if read not in written]
        if not reads and not written:
            return
        operation = self._add(call[1] if call else "statement", buffers[0].dtype if buffers else "",
                              self._indices(text, scopes, inside), reads)
        # A statement that is not understood counts as used: nothing is called dead for want of a rule here.
        operation.sink = not written or any(b.output for b in written)
        for buffer in written:
            buffer.made.append(operation)

    def _store(self, where, value, scopes, inside):
        words = _WORD.findall(where)
        buffer = self._find(scopes, words[0].lstrip("&")) if words else None
        if buffer is None:
            return
        reduced = self._reduced(value, scopes, inside)
        reads = self._reads(reduced, scopes)
        loops = self._indices(where, scopes, inside)
        operation = self._add(f"store {buffer.label}", buffer.dtype, loops, reads)
        operation.sink = buffer.output
        operation.moves = bool(_BROADCAST.match(reduced))
        buffer.made.append(operation)

    def _assign(self, variable, value, scopes, inside):
        reduced = self._reduced(value, scopes, inside)
        loops = self._indices(reduced, scopes, inside)
        if variable.inside != inside:
            loops &= frozenset(variable.inside)
        same = _BROADCAST.match(reduced)
        source = self._find(scopes, same[1]) if same else None
        if source is not None and not source.pointer and source is not variable:
            # A copy or a broadcast makes no value: whoever reads it reads what it was made from.
            variable.dtype = variable.dtype or source.dtype
            variable.loops |= source.loops
            variable.made += [maker for maker in source.made if maker not in variable.made]
            return
        reads = self._reads(reduced, scopes)
        variable.loops |= loops
        variable.dtype = variable.dtype or self._dtype(reduced, scopes)
        if reads:
            op = self._op_name(reduced, scopes)
            op = f"accumulate {op}" if variable in reads else op
            operation = self._add(op, variable.dtype, variable.loops, reads)
            operation.moves = op.startswith("load ")
            variable.made.append(operation)

    def _reduced(self, text, scopes, inside):
        """`text` with every conversion replaced by a temporary that an operation of its own makes."""
        matches = list(_CONVERSION.finditer(text))
        for match in reversed(matches):
            end = brackets.closing(text, match.end() - 1)
            argument = text[match.end():end]
            types = [long_name(word) for word in (match["types"] or match["type"]).split(",")]
            text = text[:match.start()] + self._converted(types, argument, scopes, inside) + text[end + 1:]
        return text

    def _converted(self, types, argument, scopes, inside):
        source = types[2] if len(types) > 2 else self._dtype(argument, scopes)
        reads = self._reads(argument, scopes)
        if not reads or source == types[0]:  # a constant, an index, or no conversion
            return f"({argument})"
        loops = self._indices(argument, scopes, inside)
        converted = reads[0]
        if len(reads) > 1 or not _BROADCAST.match(argument):
            converted = _Variable(dtype=source, loops=loops)
            converted.made.append(self._add(self._op_name(argument, scopes), source, loops, reads))
        self._temporaries += 1
        name = f"${self._temporaries}"
        variable = _Variable(dtype=types[0], loops=loops)
        operation = self._add("convert", types[0], loops, [converted])
        operation.converts = converted
        variable.made.append(operation)
        scopes[0][name] = variable
        return name

    def _add(self, op, dtype, loops, reads):
        operation = _Operation(op=op, dtype=dtype, loops=loops, reads=reads)
        self._operations.append(operation)
        return operation

    def _find(self, scopes, name):
        for scope in reversed(scopes):
            if name in scope:
                return scope[name]
        return None

    def _reads(self, text, scopes):
        found = (self._find(scopes, word) for word in _WORD.findall(text))
        return list(dict.fromkeys(variable for variable in found if variable is not None))

    def _indices(self, text, scopes, inside):
        """The loop variables that a text depends on, by itself or through what it reads."""
        words = set(_WORD.findall(text))
        loops = {loop for loop in inside if loop.variable in words}
        for variable in self._reads(text, scopes):
            loops |= variable.loops
            if variable.pointer and variable.local:  # written anew in every step of the loops around
                loops |= set(inside)
        return frozenset(loops)

    def _dtype(self, text, scopes):
        text = text.partition(" ? ")[2] or text
        if _COMPARE.search(text):
            return "bool"
        if text.endswith(".index"):  # of a pair of a value and its place
            return "int64"
        load = _LOAD.match(text)
        if load and load["type"]:
            return long_name(load["type"])
        known = [variable.dtype for variable in self._reads(text, scopes) if variable.dtype]
        return next((dtype for dtype in known if dtype != "bool"), known[0] if known else "")

    def _op_name(self, text, scopes):
        load = _LOAD.match(text)
        buffer = self._find(scopes, load["name"]) if load else None
        if buffer is not None and buffer.pointer:
            return f"load {buffer.label}"
        if " ? " in text:
            return "where"
        if _COMPARE.search(text):
            return "compare"
        method = _METHOD.match(text)
        if method:
            return method[1]
        call = _CALL.match(text.rpartition("::")[2] if text.startswith(("at::", "std::")) else text)
        if call and not any(sign in text for sign, _ in _OPERATORS):
            return call[1]
        return next((name for sign, name in _OPERATORS if sign in text), call[1] if call else "compute")


def _shape(loops):
    return tuple(loop.extent for loop in sorted(loops, key=lambda loop: loop.place))
