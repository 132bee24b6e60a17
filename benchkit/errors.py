"""The exceptions that speak to the user: the text is the message, the exit status is 2."""


class InputError(Exception):
    """The input, or an option's value, can't be used. The text says where and what, on one line.

    ``where`` names the input (``<stdin>``, a file). Statistics modules leave it None: they don't know which input
    their arrays came from, and the command puts its own input's name in front. The empty text means that no input
    is to blame (an option, the output).
    """

    def __init__(self, text: str, where: str | None = None) -> None:
        super().__init__(text)
        self.where = where


class Unrecognised(InputError):
    """A source that no reader knows: where it was not named but found in a folder, it is left out with a warning."""
