"""SWE-bench, Multi-SWE-bench and SWE-bench Pro: reports of the harness, and files of the experiments repositories.

Kinds of files, by what they hold:

* results.json of a submission: lists of instances, of which `resolved` counts. Instances that were tried and not
  resolved stand in no list, so all instances must be told (--items). By the board's rule all others failed. Those
  without an evaluation (no_logs, install_fail, ...) count as errors only where --errors says what errors are.
* report of a run, schema 2: resolved, unresolved and empty patches (wrong); error_ids and infra_failure_ids (errors),
  as completed ones without a verdict; incomplete_ids were not submitted, so they were not tried. Ambiguous failures
  are among the unresolved and count as the harness counts them. Multi-SWE-bench's final_report.json has errors among
  the incomplete too; its submissions call the lists resolved, and empty_error_patch_ids (errors, for empty patches and
  those that failed are in one list).
* Multi-SWE-bench's report.json of an instance: `valid` says whether it is resolved.
* per_instance_details.json, and report.json of an instance: objects with `resolved` by instance.
* SWE-bench Pro: an object of flags by instance.
* resolved_by_repo.json, resolved_by_time.json, predictions (all_preds.jsonl, preds.json): go with others; so does the
  report.json of an instance below a submission that has its results/results.json, which says the same again.

No file records a model. The cluster of an instance is its repository: the identifier before the last '-', in SWE-bench
Pro before the commit, in Multi-SWE-bench owner/repository:pr-number before the colon.

Source: swebench/harness/reporting.py and grading.py, swebench/metrics/report.py of 1.1; SWE-bench/experiments;
multi_swe_bench/harness/report.py, multi-swe-bench/experiments; SWE-bench_Pro-os.
"""

from __future__ import annotations

import os
import re
from typing import Any

from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.fields import first, kind, text
from benchkit.formats.native import Attempts, Document, identifier

NAME = "SWE-bench, Multi-SWE-bench, SWE-bench Pro (results, reports, details)"

INSTANCE = re.compile(r"[\w.-]+__[\w.-]+-[\w.-]+", re.ASCII)  # owner__repository-number
MULTI = re.compile(r"([\w.-]+/[\w.-]+):pr-\d+", re.ASCII)  # owner/repository:pr-number
PRO = re.compile(r"instance_(.+)-[0-9a-f]{40}(-v.*)?", re.ASCII)
SUBMISSION = ("no_generation", "no_logs", "generated", "with_logs", "no_apply", "applied")
NO_EVALUATION = ("no_logs", "install_fail", "reset_failed", "test_errored", "test_timeout")
DETAILS = ({"cost"}, {"api_calls"}, {"patch_exists"}, {"patch_is_None"}, {"patch_successfully_applied"})
WRONG = ("unresolved_ids", "empty_patch_ids")
ERRORS = ("error_ids", "infra_failure_ids", "empty_error_patch_ids")
REPORT = (*WRONG, *ERRORS, "completed_ids")
PREDICTION = {"instance_id", "model_patch"}
MULTI_REPORT = {"org", "repo", "number", "valid", "fix_patch_result"}


def sniff(doc: Document) -> bool:
    if first(doc).keys() >= PREDICTION:
        return True
    return doc.kind == "json" and isinstance(doc.first, dict) and _kind(first(doc)) is not None


def _kind(doc: dict[str, Any]) -> str | None:
    if isinstance(doc.get("results"), list):
        return None  # a run of Terminal-Bench, which lists resolved_ids and unresolved_ids too
    if any(isinstance(doc.get(k), list) for k in ("resolved_ids", "resolved")) and any(k in doc for k in REPORT):
        return "report"
    if doc.keys() >= MULTI_REPORT:
        return "multi"
    if isinstance(doc.get("resolved"), list) and any(name in doc for name in SUBMISSION):
        return "results"
    name, value = next(iter(doc.items()), ("", None))
    if isinstance(value, dict) and (value.keys() == {"resolved", "total"} or value.keys() >= PREDICTION):
        return "beside"
    if isinstance(value, dict) and "resolved" in value and (INSTANCE.fullmatch(name) or _detailed(value)):
        return "instances"
    return "pro" if isinstance(value, bool | None) and INSTANCE.fullmatch(name) else None


def _detailed(value: dict[str, Any]) -> bool:
    return any(keys <= value.keys() for keys in DETAILS)


def read(doc: Document, choices: Choices) -> Attempts | None:
    form = "beside" if first(doc).keys() >= PREDICTION else _kind(doc.first)
    if form == "beside" or (form in ("multi", "instances") and _told_by_results(doc)):
        return None
    if form == "results":
        out = _results(doc.first, choices)
    elif form == "multi":
        out = _multi(doc.first)
    else:
        out = _report(doc.first) if form == "report" else _instances(doc.first, form == "pro")
    if doc.path and form != "pro":
        out.folder = _run(doc.path)
    return out


def _run(path: str) -> str:
    """The run's folder: <submission>/results/results.json, .../<run>/<model>/<instance>/report.json.

    Of a submission <submission>/logs/<instance>/report.json, of Multi-SWE-bench
    <submission>/logs/<owner>/<repository>/evals/pr-1/report.json, or without logs.
    """
    folder, name = os.path.split(os.path.abspath(path))
    above, parent = os.path.split(os.path.dirname(folder))
    if name == "report.json":
        run = os.path.dirname(os.path.dirname(above)) if parent == "evals" else os.path.dirname(folder)
        return os.path.dirname(run) if os.path.basename(run) == "logs" else run
    return os.path.dirname(folder) if os.path.basename(folder) == "results" else folder


def _told_by_results(doc: Document) -> bool:
    """Whether this is the report.json of an instance whose submission has the results of all its instances."""
    if doc.path is None or os.path.basename(doc.path) != "report.json":
        return False
    path = os.path.join(_run(doc.path), "results", "results.json")
    results = doc.sibling(path)  # a whole path stays as it is
    return isinstance(results, dict) and _kind(results) in ("results", "report")


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
    name = "resolved_ids" if "resolved_ids" in doc else "resolved"
    lists = {n: _ids(doc, n) for n in (name, *REPORT, "submitted_ids", "incomplete_ids")}
    solved, wrong = lists[name], {i: None for n in WRONG for i in lists[n]}
    failed = {i: None for n in ERRORS for i in lists[n]}
    _apart(solved, name, wrong, "unresolved_ids or empty_patch_ids")
    _apart(solved, name, failed, " or ".join(n for n in ERRORS if n in doc))
    lists["incomplete_ids"] = {i: None for i in lists["incomplete_ids"] if i not in lists["error_ids"]}
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


def _multi(doc: dict[str, Any]) -> Attempts:
    """One instance of Multi-SWE-bench; its identifier is that of the final report."""
    out = Attempts("multi-swe-bench instance")
    owner, name = text(doc, "org"), text(doc, "repo")
    if not isinstance(doc["valid"], bool) or owner is None or name is None:
        raise InputError("a report without org, repo, or a flag valid")
    out.add(f"{owner}/{name}:pr-{identifier(doc['number'], 'number')}", doc["valid"], cluster=f"{owner}/{name}")
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
    known = PRO.fullmatch(item) or MULTI.fullmatch(item)
    return known[1] if known else item.rpartition("-")[0] or None
