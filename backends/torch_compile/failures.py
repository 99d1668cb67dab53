"""The operator's own error, out of what torch's compilers wrap around it."""


def innermost(error):
    """torch.compile wraps the operator's own error, several times over; this is the operator's.

    Dynamo keeps it as the cause, inductor in an attribute, and inductor's lowering only as the context.
    """
    while True:
        inner = error.__cause__ or getattr(error, "inner_exception", None)
        if inner is None and type(error).__name__ == "LoweringException":
            inner = error.__context__
        if inner is None:
            return error
        error = inner
