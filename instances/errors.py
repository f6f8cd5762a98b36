"""The exceptions every layer shares: each says what is wrong, where, and how to mend it."""


class OpticollError(Exception):
    """Base of all errors that opticoll raises on purpose.

    ``exit_status`` is what the command line returns for it.
    """

    exit_status = 2


class BadInput(OpticollError, ValueError):
    """Something the caller wrote cannot be accepted; nothing has been run or stored."""


class BadSpec(BadInput):
    """An instance spec that cannot be read, or whose arguments describe no instance."""


class BadFile(BadInput):
    """A file that is malformed, too large, or describes something impossible."""
