"""Logs of Inspect AI: .eval archives, of which only the header and the summaries are read, and .json logs.

A running or cancelled log has no header: its start and the summaries in its journal serve. Values are C, I, P and N,
flags, yes and no, or numbers; NaN (null in old logs) is a sample that was not scored. A text that is none of these is
no score; Inspect's own metrics take it as 0. A sample that ended in an error and was scored all the same
(score_on_error) counts by its score, as in Inspect's own results.

A log that was retried is left out where a later log of the same task, beside it, has all its samples, as Inspect takes
the latest; so is one that `inspect score` wrote anew as NAME-scored, where this has the scorers that are wanted.
Another unfinished log counts with the samples that it has, and says how many it was to have: those of the data set in
every epoch. A set of runs and a bundle of logs have lists of their logs beside them, which add nothing.

Source: inspect_ai/log/_log.py, inspect_ai/log/_recorders/eval.py, inspect_ai/scorer/_metric.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Set
from contextlib import suppress
from typing import Any

from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.fields import canonical, inner, text
from benchkit.formats.native import Attempts, Document, choose, identifier, number, parse
from benchkit.formats.zips import Archive

NAME = "Inspect AI logs (.eval, .json)"

LOG = ({"version", "eval", "plan"}, {"status", "eval", "plan"})  # the version is lost where defaults are left out
SECRET = re.compile("key|token(?!s)|secret|password|auth|credential|url", re.IGNORECASE)  # never part of a name
NO_MODEL = "none/none"  # of a task that names its models by their roles, or runs an agent of its own
SET = {"eval_set_id", "tasks"}  # eval-set.json
LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}  # as Inspect's value_to_float


def sniff(doc: Document) -> bool:
    if doc.kind == "zip":
        return bool({"header.json", "_journal/start.json"} & doc.first.counts.keys())
    first = doc.first
    return doc.kind == "json" and isinstance(first, dict) and (_is_log(first) or _is_list(first))


def _is_log(value: dict[str, Any]) -> bool:
    return any(keys <= value.keys() for keys in LOG)


def _is_list(value: dict[str, Any]) -> bool:
    """Whether this is a list of logs: eval-set.json, logs.json, listing.json."""
    logs = value.values()
    named = bool(logs) and all(name.endswith((".eval", ".json")) for name in value)
    return value.keys() >= SET or (named and all(isinstance(x, dict) and "status" in x for x in logs))


def read(doc: Document, choices: Choices) -> Attempts | None:
    if doc.kind == "json" and not _is_log(doc.first):
        return None  # a list of logs, beside them
    log = doc.first if doc.kind == "json" else _header(doc.first)
    about = log.get("eval")
    if not isinstance(about, dict):
        raise InputError("a log without its eval and samples")
    model = text(about, "model")
    out = Attempts("inspect", None if model == NO_MODEL else model, _settings(about, log.get("plan")))
    out.of_task(text(about, "task"), choices)
    passed = inner(about, "task_args_passed") or inner(about, "task_args")
    passed = {k: v for k, v in passed.items() if not SECRET.search(k)}
    with suppress(InputError):  # of no concern for the scores
        out.arguments = canonical(passed, "its arguments") if passed else None
    samples = log.get("samples") or [] if doc.kind == "json" else _summaries(doc.first, log)
    if not isinstance(samples, list):
        raise InputError("a log without its eval and samples")
    kept: dict[tuple[str, str], dict[str, Any]] = {}
    for sample in samples:  # a sample that was retried may stand twice: the later one counts
        if not isinstance(sample, dict):
            raise InputError("a sample that is no object")
        key = identifier(sample.get("id"), "a sample's id"), identifier(sample.get("epoch", 1), "a sample's epoch")
        kept[key] = _current(sample, log)
    if _retried(doc, log, kept.keys()):
        out.skip("sample of a log that was retried", len(kept))
        return out
    scorers = sorted({k for s in kept.values() for k in inner(s, "scores")})
    if _scored_again(doc, log, kept.keys(), set(scorers) if choices.scorer is None else {choices.scorer}):
        out.skip("sample of a log that was scored again", len(kept))
        return out
    out.unfinished = _unfinished(log, len(kept))
    if len(kept) < len(samples):
        out.skip("earlier try of a sample", len(samples) - len(kept))
    scorer = part = None
    if scorers:
        scorer = choose(choices.scorer, scorers, "--scorer", "scorer")
        part = _key([_value(s, scorer) for s in kept.values()], scorer, choices.metric)
    strange: list[str] = []
    for sample in kept.values():
        value = _value(sample, scorer)
        value = _parts(value).get(part) if part is not None else value
        if sample.get("invalidation"):
            out.skip("invalidated sample")
            continue
        score = _score(value, sample)
        failed = bool(sample.get("error")) and score is None
        if isinstance(value, str) and score is None and not failed:
            strange.append(value)
        out.add(sample.get("id"), score, attempt=sample.get("epoch", 1), error=failed)
    if not kept:
        out.skip("log without samples")
    if strange:
        _decided(strange, any(score is not None for score in out.scores), choices)
    return out


def _decided(texts: list[str], more: bool, choices: Choices) -> None:
    """InputError for scores that are texts of another kind, unless --unscored says what they are. more: others are
    scores."""
    found = list(dict.fromkeys(f"'{x[:40]}'" for x in texts))
    shown = ", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
    says = f"{len(texts)} of the scores are none of C, I, P, N, yes, no and numbers: {shown}"
    if not more:
        raise InputError(f"{says}. There is no other score: choose another scorer, or score the log again")
    if choices.unscored is None:
        raise InputError(
            f"{says}. Inspect takes them as 0: choose --unscored drop (not an attempt) or --unscored wrong (score 0)"
        )


def _retried(doc: Document, log: dict[str, Any], keys: Set[tuple[str, str]]) -> bool:
    """Whether a later log of the same task lies beside an unfinished or invalidated one and has all its samples.

    A log's name begins with the time and ends with the task's identifier, which a retry keeps.
    """
    task = text(inner(log, "eval"), "task_id")
    done = log.get("status") == "success" and not log.get("invalidated")
    if doc.path is None or not task or done:
        return False
    own = os.path.basename(doc.path)
    later = (n for n in doc.siblings("", "") if n > own and task in n and n.endswith((".eval", ".json")))
    found = (_beside(doc, name, "task_id", task) for name in later)
    return any(samples is not None and keys <= samples.keys() for samples in found)


def _scored_again(doc: Document, log: dict[str, Any], keys: Set[tuple[str, str]], scorers: Set[str]) -> bool:
    """Whether `inspect score` has written the same run anew beside it, with all its samples and these scorers."""
    about = inner(log, "eval")
    identity = "eval_id" if "eval_id" in about else "run_id"
    run = text(about, identity)
    stem, _, ending = os.path.basename(doc.path or "").partition(".")
    name = f"{stem}-scored.{ending}"
    if run is None or not os.path.isfile(os.path.join(os.path.dirname(doc.path or ""), name)):
        return False
    again = _beside(doc, name, identity, run)
    return (
        again is not None
        and keys <= again.keys()
        and scorers <= {k for s in again.values() if isinstance(s.get("scores"), dict) for k in s["scores"]}
    )


def _beside(doc: Document, name: str, identity: str, wanted: str) -> dict[tuple[str, str], dict[str, Any]] | None:
    """The samples of another log in the folder, None where it is not of the same identity, or can't be read."""
    samples: Any
    try:
        if name.endswith(".eval"):
            archive = Archive(doc._replace(path=os.path.join(os.path.dirname(doc.path or ""), name), data=None).source)
            log = _header(archive)
            samples = _summaries(archive, log)
        else:
            log = doc.sibling(name)
            samples = log.get("samples") if isinstance(log, dict) else None
        same = isinstance(log, dict) and text(inner(log, "eval"), identity) == wanted
    except InputError:
        return None  # said where that log itself is read
    if not same or not isinstance(samples, list):
        return None
    return {(str(s.get("id")), str(s.get("epoch", 1))): _current(s, log) for s in samples if isinstance(s, dict)}


def _unfinished(log: dict[str, Any], samples: int) -> str | None:
    """The status of a log that did not end, and how many samples it has; None where it has all."""
    status = text(log, "status") or "started"  # as Inspect's default; a journal has none
    planned = _planned(inner(log, "eval"))
    if status == "success" or (planned is not None and samples >= planned):
        return None
    return f"status {status}, {samples} of {planned} samples" if planned else f"status {status}, {samples} samples"


def _planned(about: dict[str, Any]) -> int | None:
    """Samples in all epochs, or None where that can't be told: the data set is recorded before or after a choice of
    samples, by Inspect's version."""
    dataset, config = inner(about, "dataset"), inner(about, "config")
    ids, limit, epochs = dataset.get("sample_ids"), config.get("limit"), config.get("epochs") or 1
    n = len(ids) if isinstance(ids, list) else dataset.get("samples")
    if type(n) is not int or type(epochs) is not int or config.get("sample_id") is not None:
        return None
    if limit is not None and type(limit) is not int:
        return None
    return (n if limit is None else min(n, limit)) * epochs


def _header(archive: Archive) -> dict[str, Any]:
    """The log but for its samples."""
    start = "header.json" if "header.json" in archive.counts else "_journal/start.json"
    log = parse(archive.read(start), f"{start}: ")
    if not isinstance(log, dict):
        raise InputError(f"{start}: no object")
    return log


def _summaries(archive: Archive, log: dict[str, Any]) -> list[Any]:
    names = ["summaries.json"] if "summaries.json" in archive.counts else _journal(archive.names)
    samples: list[Any] = []
    for name in names:
        found = parse(archive.read(name), f"{name}: ")
        if not isinstance(found, list):
            raise InputError(f"{name}: no list of samples")
        samples += found
    if log.get("invalidated"):
        _invalidate(archive, samples)
    return samples


def _invalidate(archive: Archive, samples: list[Any]) -> None:
    """Mark the summaries of samples that are invalid: only the samples themselves say which, so they are opened."""
    names = set(archive.names)
    for sample in samples:
        prefix = f"samples/{sample.get('id')}_epoch_{sample.get('epoch')}" if isinstance(sample, dict) else ""
        name = next((n for n in (f"{prefix}.json", f"{prefix}/sample.json") if n in names), None)
        if name is None:
            raise InputError(
                f"the log has invalid samples, but not {prefix or 'a sample'}, which says whether it is one"
            )
        whole = parse(archive.read(name), f"{name}: ")
        sample["invalidation"] = whole.get("invalidation") if isinstance(whole, dict) else None


def _current(sample: dict[str, Any], log: dict[str, Any]) -> dict[str, Any]:
    """A sample of the oldest logs, whose one score has no name, as a sample of today's."""
    if "score" not in sample or sample.get("scores") is not None:
        return sample
    results = log.get("results")
    scorer = results.get("scorer") if isinstance(results, dict) else None
    name = scorer.get("name") if isinstance(scorer, dict) else None
    return sample | {"scores": {name if isinstance(name, str) else "score": sample["score"]}}


def _journal(names: Iterable[str]) -> list[str]:
    """The journal's summaries in the order in which they were written."""
    found = [(int(m[1]), n) for n in names if (m := re.fullmatch(r"_journal/summaries/(\d{1,9})\.json", n))]
    return [n for _, n in sorted(found)]


def _value(sample: dict[str, Any], scorer: str | None) -> Any:
    value = None if scorer is None else inner(inner(sample, "scores"), scorer).get("value")
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _key(values: list[Any], scorer: str, wanted: str | None) -> str | None:
    """The key of a score that is an object, or a list of several values, or None where scores are single values."""
    keys = sorted({k for v in values for k in _parts(v)})
    if not keys:
        if wanted is not None:
            raise InputError(f"--metric {wanted}: scorer '{scorer}' gives one value")
        return None
    return choose(wanted, keys, "--metric", "metric")


def _parts(value: Any) -> dict[str, Any]:
    """The values of a score that has several, those of a list by their place from 0; {} of a single value."""
    if isinstance(value, list) and len(value) > 1:
        return {str(n): v for n, v in enumerate(value)}
    return value if isinstance(value, dict) else {}


def _score(value: Any, sample: dict[str, Any]) -> float | None:
    if isinstance(value, str):
        if value in LETTERS:
            return LETTERS[value]
        if value.lower() in WORDS:
            return WORDS[value.lower()]
        try:
            value = float(value)
        except ValueError:
            return None
    return number(value, f"sample {str(sample.get('id'))[:40]}: its score")


def _settings(about: dict[str, Any], plan: Any) -> str | None:
    """What may tell two runs of a model apart: generation settings, its arguments, models in roles, and solvers."""
    config, args = inner(about, "model_generate_config"), inner(about, "model_args")
    wanted = ("reasoning_effort", "reasoning_tokens", "temperature", "max_tokens", "top_p", "seed")
    parts = [f"{k}={config[k]}" for k in wanted if config.get(k) is not None]
    parts += [f"{k}={v}" for k, v in sorted(args.items()) if isinstance(v, str | int | float) and not SECRET.search(k)]
    roles = inner(about, "model_roles")
    parts += [f"{role}={'+'.join(found)}" for role, value in sorted(roles.items()) if (found := _models(value))]
    steps = plan.get("steps") if isinstance(plan, dict) else None
    solvers = [x.get("solver") for x in steps if isinstance(x, dict)] if isinstance(steps, list) else []
    parts += [f"solver={'+'.join(str(x) for x in solvers)}"] if solvers else []
    return ", ".join(parts) or None


def _models(value: Any) -> list[str]:
    """The models of a role, which is one configuration or a list of them."""
    configs = value if isinstance(value, list) else [value]
    return [str(c["model"]) for c in configs if isinstance(c, dict) and c.get("model")]
