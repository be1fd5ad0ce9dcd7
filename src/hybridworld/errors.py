"""The two ways in which a request can fail. Each message is one sentence that names the value and what is allowed."""


class HybridWorldError(Exception):
    """What the command line prints as one sentence instead of a traceback."""


class InvalidInput(HybridWorldError, ValueError):
    """The caller asked for something that cannot be: a wrong shape, an unphysical value, an unknown name."""


class SolverFailure(HybridWorldError, RuntimeError):
    """The solver left the realm of finite numbers, though its input was valid."""
