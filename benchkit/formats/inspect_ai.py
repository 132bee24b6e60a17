"""Logs of Inspect AI: .eval archives, of which only the header and the summaries are read, and .json logs.

A running or cancelled log has no header: its start and the summaries in its journal serve. Values are C, I, P and N,
flags, yes and no, or numbers; NaN (null in old logs) is a sample that was not scored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.native import Attempts, Document, choose, number, parse
from benchkit.formats.zips import Archive

NAME = "Inspect AI logs (.eval, .json)"

LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}  # as Inspect's value_to_float


def sniff(doc: Document) -> bool:
    if doc.kind == "zip":
        with doc.source() as file:
            names = Archive(file).names
        return "header.json" in names or "_journal/start.json" in names
    first = doc.first
    return doc.kind == "json" and isinstance(first, dict) and {"version", "eval"} <= first.keys() and "plan" in first


def read(doc: Document, choices: Choices) -> Attempts | None:
    if doc.kind == "json":
        log = doc.first
        samples = log.get("samples") or []
    else:
        log, samples = _archive(doc)
    about = log.get("eval")
    if not isinstance(about, dict) or not isinstance(samples, list):
        raise InputError("a log without its eval and samples")
    if log.get("invalidated"):
        raise InputError("the log is marked as invalidated")
    out = Attempts("inspect", about.get("model"), _settings(about))
    out.task = about.get("task")
    kept: dict[tuple[str, Any], dict[str, Any]] = {}
    for sample in samples:  # a sample that was retried may stand twice: the later one counts
        if not isinstance(sample, dict):
            raise InputError("a sample that is no object")
        kept[str(sample.get("id")), sample.get("epoch", 1)] = sample
    if len(kept) < len(samples):
        out.skip("earlier try of a sample", len(samples) - len(kept))
    scorer = key = None
    scored = [s for s in kept.values() if isinstance(s.get("scores"), dict) and s["scores"]]
    if scored:
        scorer = choose(choices.scorer, sorted({k for s in scored for k in s["scores"]}), "--scorer", "scorer")
        key = _key(scored, scorer, choices.metric)
    for sample in kept.values():
        value = ((sample.get("scores") or {}).get(scorer) or {}).get("value")
        value = value.get(key) if key is not None and isinstance(value, dict) else value
        failed = bool(sample.get("error"))
        if sample.get("invalidation"):
            out.skip("invalidated sample")
            continue
        score = None if failed else _score(value)
        out.add(sample.get("id"), score, attempt=sample.get("epoch", 1), error=failed)
    if not kept:
        out.skip("log without samples")
    return out


def _archive(doc: Document) -> tuple[dict[str, Any], list[Any]]:
    with doc.source() as file:
        archive = Archive(file)
        start = "header.json" if "header.json" in archive.names else "_journal/start.json"
        log = parse(archive.read(start), f"{start}: ")
        names = ["summaries.json"] if "summaries.json" in archive.names else _journal(archive.names)
        samples: list[Any] = []
        for name in names:
            found = parse(archive.read(name), f"{name}: ")
            if not isinstance(found, list):
                raise InputError(f"{name}: no list of samples")
            samples += found
    if not isinstance(log, dict):
        raise InputError(f"{start}: no object")
    return log, samples


def _journal(names: Iterable[str]) -> list[str]:
    """The journal's summaries in the order in which they were written."""
    found = [(int(m[1]), n) for n in names if (m := re.fullmatch(r"_journal/summaries/(\d+)\.json", n))]
    return [n for _, n in sorted(found)]


def _key(scored: list[dict[str, Any]], scorer: str, wanted: str | None) -> str | None:
    """The key of a score that is an object, or None where scores are single values."""
    values = [v for s in scored if isinstance(v := (s["scores"].get(scorer) or {}).get("value"), dict)]
    if not values:
        if wanted is not None:
            raise InputError(f"--metric {wanted}: scorer '{scorer}' gives one value")
        return None
    return choose(wanted, sorted({k for v in values for k in v}), "--metric", "metric")


def _score(value: Any) -> float | None:
    if isinstance(value, list):
        if len(value) != 1:
            raise InputError("a score that is a list of values")
        value = value[0]
    if isinstance(value, str):
        if value in LETTERS:
            return LETTERS[value]
        if value.lower() in WORDS:
            return WORDS[value.lower()]
        try:
            value = float(value)
        except ValueError:
            raise InputError(f"a score that is none: '{value[:40]}'") from None
    return number(value, "a score")


def _settings(about: dict[str, Any]) -> str | None:
    """What may tell two runs of a model apart: generation settings and arguments of the model."""
    config = about.get("model_generate_config") or {}
    args = about.get("model_args") or {}
    wanted = ("reasoning_effort", "reasoning_tokens", "temperature", "max_tokens", "top_p", "seed")
    parts = [f"{k}={config[k]}" for k in wanted if config.get(k) is not None]
    parts += [f"{k}={v}" for k, v in sorted(args.items()) if isinstance(v, str | int | float)]
    return ", ".join(parts) or None
