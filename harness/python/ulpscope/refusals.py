"""Why a function is not captured: a CaptureError has a reason, one of a closed list."""

import enum


class Reason(enum.Enum):
    """The value is the reason as a report counts it."""

    # The function is not a straight line of numbers that can be compared.
    RANDOM = "random numbers"
    DATA_DEPENDENT = "depends on the values of a tensor"  # a branch, a shape or a Python number
    CONTROL_FLOW = "a loop or a branch in the graph"
    NOTHING_COMPUTED = "gives no tensor that it computes"  # its arguments as they are, constants, numbers
    UNWRITTEN_MEMORY = "memory that nothing writes"
    # A case has no tensor of this kind.
    EMPTY = "a tensor without elements"
    COMPLEX = "complex numbers"
    LAYOUT = "a tensor that is not dense"  # sparse, nested, quantized
    DTYPE = "a dtype that no case has"
    # A step does not write this.
    FOREIGN_OP = "an op that is not PyTorch's own"
    MUTATION = "a write into what exists"
    INDEX_FORM = "an index that a step does not write"
    LIST_FORM = "a list of tensors that a step does not write"
    KEYWORD_TENSOR = "a tensor that has to be named"
    VALUE_FORM = "an argument that a step does not write"
    NO_WORD = "a primitive without a word"  # of JAX: a case has no ops but the words of the case language
    PRIMITIVE_FORM = "a form of a primitive that its word does not have"
    # Requests that the function cannot meet.
    SEVERAL_RESULTS = "several results to differentiate"
    NO_GRADIENT = "nothing that requires a gradient"
    VERIFY = "a backend that runs no such function"
    # Others refuse it.
    EXPORT = "torch.export refuses it"
    HARNESS = "the harness refuses the case"
    UNSTABLE = "other bits the second time"
    UNFAITHFUL = "the case has other bits than the function"
    # A fault of ulpscope's own.
    OWN_FAULT = "a fault of ulpscope's own"


class CaptureError(ValueError):
    """A case cannot express this; the text names the op, and the file and line it comes from, `reason` is the
    Reason."""

    def __init__(self, text, reason):
        super().__init__(text)
        self.reason = Reason(reason)
