"""SWE-bench: the harness's reports, the files of the experiments repository, and SWE-bench Pro's results.

Six kinds of files, by what they hold:

* results.json of a submission: lists of instances, of which `resolved` counts. Instances that were tried and not
  resolved stand in no list, so all instances must be told (--items). By the board's rule all others failed. Those
  without an evaluation (no_logs, install_fail, ...) count as errors only where --errors says what errors are.
* report of a run, schema 2: resolved, unresolved and empty patches (wrong); error_ids and infra_failure_ids (errors),
  as completed ones without a verdict; incomplete_ids were not submitted, so they were not tried. Ambiguous failures
  are among the unresolved and count as the harness counts them.
* per_instance_details.json, and report.json of an instance: objects with `resolved` by instance.
* SWE-bench Pro: an object of flags by instance.
* resolved_by_repo.json, resolved_by_time.json: go with others.

No file records a model. The cluster of an instance is its repository: the identifier before the last '-', in SWE-bench
Pro before the commit.

Source: swebench/harness/reporting.py and grading.py; SWE-bench/experiments; SWE-bench_Pro-os.
"""

from __future__ import annotations

import os
import re
from typing import Any

from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.fields import first, kind
from benchkit.formats.native import Attempts, Document

NAME = "SWE-bench results.json, harness reports, per-instance details and reports, SWE-bench Pro results"

INSTANCE = re.compile(r"[\w.-]+__[\w.-]+-[\w.-]+", re.ASCII)  # owner__repository-number
PRO = re.compile(r"instance_(.+)-[0-9a-f]{40}(-v.*)?", re.ASCII)
SUBMISSION = ("no_generation", "no_logs", "generated", "with_logs", "no_apply", "applied")
NO_EVALUATION = ("no_logs", "install_fail", "reset_failed", "test_errored", "test_timeout")
DETAILS = ({"cost"}, {"api_calls"}, {"patch_exists"}, {"patch_is_None"}, {"patch_successfully_applied"})
WRONG = ("unresolved_ids", "empty_patch_ids")
ERRORS = ("error_ids", "infra_failure_ids")


def sniff(doc: Document) -> bool:
    return doc.kind == "json" and isinstance(doc.first, dict) and _kind(first(doc)) is not None


def _kind(doc: dict[str, Any]) -> str | None:
    if isinstance(doc.get("resolved_ids"), list) and ("unresolved_ids" in doc or "completed_ids" in doc):
        return "report"
    if isinstance(doc.get("resolved"), list) and any(name in doc for name in SUBMISSION):
        return "results"
    name, value = next(iter(doc.items()), ("", None))
    if isinstance(value, dict) and value.keys() == {"resolved", "total"}:
        return "summary"
    if isinstance(value, dict) and "resolved" in value and (INSTANCE.fullmatch(name) or _detailed(value)):
        return "instances"
    return "pro" if isinstance(value, bool | None) and INSTANCE.fullmatch(name) else None


def _detailed(value: dict[str, Any]) -> bool:
    return any(keys <= value.keys() for keys in DETAILS)


def read(doc: Document, choices: Choices) -> Attempts | None:
    form = _kind(doc.first)
    if form == "summary":
        return None
    if form == "results":
        out = _results(doc.first, choices)
    else:
        out = _report(doc.first) if form == "report" else _instances(doc.first, form == "pro")
    if doc.path and form != "pro":
        out.folder = _run(doc.path)
    return out


def _run(path: str) -> str:
    """The run's folder: <submission>/results/results.json, .../<run>/<model>/<instance>/report.json."""
    folder, name = os.path.split(os.path.abspath(path))
    inside = os.path.basename(folder) == "results" or name == "report.json"
    return os.path.dirname(folder) if inside else folder


def _results(doc: dict[str, Any], choices: Choices) -> Attempts:
    if choices.items is None:
        raise InputError(
            "instances that were not resolved are in no list of this file: name all of them with --items FILE"
        )
    lists = {name: _ids(doc, name) for name in dict.fromkeys(("resolved", *SUBMISSION, *NO_EVALUATION))}
    solved = lists["resolved"]
    for name in ("no_generation", "no_logs", "no_apply"):
        _apart(solved, "resolved", lists[name], name)
    failed = {i for name in NO_EVALUATION for i in lists[name] if i not in solved} if choices.errors else set()
    out = Attempts("swe-bench results")
    listed = {i: None for name in lists for i in lists[name]}
    for n, item in enumerate([*listed, *sorted(choices.items - listed.keys())], 1):
        out.add(item, item in solved, cluster=repository(item), error=item in failed, line=n)
    return out


def _report(doc: dict[str, Any]) -> Attempts:
    out = Attempts("swe-bench report")
    names = ("resolved_ids", *WRONG, *ERRORS, "completed_ids", "submitted_ids", "incomplete_ids")
    lists = {name: _ids(doc, name) for name in names}
    solved, wrong = lists["resolved_ids"], {i: None for name in WRONG for i in lists[name]}
    failed = {i: None for name in ERRORS for i in lists[name]}
    _apart(solved, "resolved_ids", wrong, "unresolved_ids or empty_patch_ids")
    _apart(solved, "resolved_ids", failed, "error_ids or infra_failure_ids")
    _apart(solved | wrong | failed, "a list of submitted instances", lists["incomplete_ids"], "incomplete_ids")
    failed |= {i: None for i in lists["completed_ids"] if i not in solved and i not in wrong}
    tried = solved | wrong | failed
    for n, item in enumerate(tried, 1):
        out.add(item, item in solved, cluster=repository(item), error=item in failed, line=n)
    if lists["incomplete_ids"]:
        out.skip("instance not submitted", len(lists["incomplete_ids"]))
    unknown = lists["submitted_ids"].keys() - tried.keys() - lists["incomplete_ids"].keys()
    if unknown:
        out.skip("submitted instance in no other list", len(unknown))
    return out


def _instances(doc: dict[str, Any], flags: bool) -> Attempts:
    out = Attempts("swe-bench pro" if flags else "swe-bench instances")
    for n, (item, value) in enumerate(doc.items(), 1):
        row = {"resolved": value} if flags else value
        if not isinstance(row, dict):
            raise InputError(f"row {n}: {item} is {kind(value)}, not an object")
        resolved = row.get("resolved")
        if not isinstance(resolved, bool | None):
            raise InputError(f"row {n}: {'' if flags else 'resolved of '}{item} is {kind(resolved)}, not a flag")
        out.add(item, resolved, cluster=repository(item), error=row.get("infra_failure") is True, line=n)
    return out


def _ids(doc: dict[str, Any], name: str) -> dict[str, None]:
    """The identifiers of a list, each once, in order; {} where there is no such list."""
    found = doc.get(name)
    if found is None:
        return {}
    if not isinstance(found, list):
        raise InputError(f"{name} is {kind(found)}, not a list")
    for n, one in enumerate(found, 1):
        if not isinstance(one, str) or not one:
            raise InputError(f"{name} {n} is {kind(one)}, no instance")
    return dict.fromkeys(found)


def _apart(a: dict[str, None], a_name: str, b: dict[str, None], b_name: str) -> None:
    both = next((i for i in a if i in b), None)
    if both is not None:
        raise InputError(f"instance '{both}' is in {a_name} and in {b_name}")


def repository(item: str) -> str | None:
    """The repository of an instance.

    >>> repository("django__django-11099")
    'django__django'
    """
    pro = PRO.fullmatch(item)
    return pro[1] if pro else item.rpartition("-")[0] or None
