"""Texts that are the same but for case, spaces and punctuation."""

from __future__ import annotations

import re
import unicodedata


class _Characters(dict[int, str]):
    """What a character becomes, by its code point, found when it is first met."""

    def __missing__(self, code: int) -> str:
        kind = unicodedata.category(chr(code))
        self[code] = "" if kind == "Cf" else " " if kind[0] in "CPZ" or code == ord("$") else chr(code)
        return self[code]


CHARACTERS = _Characters()


def normalised(text: str) -> str:
    """The text in Unicode's compatibility form (NFKC), case folded, with one space for all else between words.

    All else is white space, control characters, punctuation and the dollar sign, which delimits mathematics; other
    symbols, such as + and <, stay. Characters that are invisible inside a word (category Cf) are left out.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return re.sub(" +", " ", folded.translate(CHARACTERS)).strip()
