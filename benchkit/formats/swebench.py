"""SWE-bench and what has its layouts: reports of the harness, and files of the experiments repositories.

Kinds of files, by what they hold:

* results.json of a submission: lists of instances, of which `resolved` counts. Instances that were tried and not
  resolved stand in no list, so all instances must be told (--items). By the board's rule all others failed. Those
  without an evaluation (no_logs, install_fail, ...) count as errors only where --errors says what errors are.
* report of a run, schema 2: resolved, unresolved and empty patches (wrong); error_ids and infra_failure_ids (errors),
  as completed ones without a verdict; incomplete_ids were not submitted, so they were not tried. Ambiguous failures
  are among the unresolved and count as the harness counts them. Multi-SWE-bench's final_report.json has errors among
  the incomplete too; its submissions call the lists resolved, and empty_error_patch_ids (errors, for empty patches and
  those that failed are in one list). SWE-bench-Live calls them success_ids and failure_ids, SWE-smith ids_resolved and
  ids_unresolved, where an instance that left no report is in neither.
* Multi-SWE-bench's report.json of an instance: `valid` says whether it is resolved.
* per_instance_details.json, and report.json of an instance: objects with `resolved` by instance; one such object in
  SWE-bench-Live, which holds its instance_id, and in SWE-smith, where the folder has the instance's name.
* SWE-bench Pro: an object of flags by instance, and infra_errors.json beside it, of those that never ran (errors).
* output.jsonl of OpenHands, once it was evaluated, and output.swebench_eval.jsonl: a line an instance, with its report.
  An evaluation that raised or ran out of time is an error. The model is recorded. So for output.jsonl of NeMo-Skills,
  which names no model.
* resolved_by_repo.json, resolved_by_time.json, predictions (all_preds.jsonl, preds.json, output.jsonl of OpenHands),
  trajectories of mini-SWE-agent, and what else is in the folders trajs and logs of a submission: go with others. So
  does what says the same again: the report.json of an instance, or lines of OpenHands, where the run's own results
  are beside them; a submission's results.json, where its per_instance_details.json has the same resolved instances.

But for OpenHands no file records a model. The cluster of an instance is its repository: the identifier before the
last '-', in SWE-bench Pro and SWE-smith before the commit, in Multi-SWE-bench owner/repository:pr-number before the
colon.

Source: swebench/harness/reporting.py and grading.py, swebench/metrics/report.py of 1.1; SWE-bench/experiments;
multi_swe_bench/harness/report.py, multi-swe-bench/experiments; SWE-bench_Pro-os; SWE-bench-Live's
evaluation/evaluation.py; swesmith/harness/eval.py; evaluation/benchmarks/swe_bench/eval_infer.py of OpenHands;
nemo_skills/inference/eval/swebench.py; minisweagent/agents/default.py.
"""

from __future__ import annotations

import os
import re
from pathlib import PurePath
from typing import Any

from benchkit import endings
from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.fields import common, common_object, first, goes_along, inner, kind, records, text
from benchkit.formats.native import Attempts, Document, identifier

NAME = "SWE-bench and its variants, OpenHands (results, reports, details)"

INSTANCE = re.compile(r"[\w.-]+__[\w.-]+-[\w.-]+", re.ASCII)  # owner__repository-number
MULTI = re.compile(r"([\w.-]+/[\w.-]+):pr-\d+", re.ASCII)  # owner/repository:pr-number
PRO = re.compile(r"instance_(.+)-[0-9a-f]{40}(-v.*)?", re.ASCII)
SMITH = re.compile(r"([\w.-]+__[\w.-]+?)\.[0-9a-f]{8}\..+", re.ASCII)  # owner__repository.commit.kind_of_bug
SUBMISSION = ("no_generation", "no_logs", "generated", "with_logs", "no_apply", "applied")
NO_EVALUATION = ("no_logs", "install_fail", "reset_failed", "test_errored", "test_timeout")
DETAILS = ({"cost"}, {"api_calls"}, {"patch_exists"}, {"patch_is_None"}, {"patch_successfully_applied"})
SOLVED = ("resolved_ids", "resolved", "success_ids", "ids_resolved")
WRONG = ("unresolved_ids", "empty_patch_ids", "failure_ids", "ids_unresolved")
ERRORS = ("error_ids", "infra_failure_ids", "empty_error_patch_ids")
REPORT = (*WRONG, *ERRORS, "completed_ids")
MULTI_REPORT = {"org", "repo", "number", "valid", "fix_patch_result"}
LIVE_REPORT = {"instance_id", "resolved", "FAIL_TO_PASS", "PASS_TO_PASS"}
ONE = ("multi", "live", "smith", "instances")  # what a report.json of a single instance may be
SMITH_REPORT = {"patch_is_None", "patch_exists", "patch_successfully_applied", "resolved"}
TIMED_OUT = {"timed_out", "timeout"}  # what SWE-smith writes of an instance whose tests ran out of time
NEMO = "swe-bench-metrics"  # where NeMo-Skills has the report
BESIDE = (
    {"instance_id", "model_patch"}, {"instance_id", "patch", "prefix"},  # predictions
    {"instance_id", "patch", "test_patch"},  # the benchmark's own instances
    {"info", "messages", "trajectory_format"},  # a trajectory of mini-SWE-agent
    {"agent_class", "llm_config", "eval_output_dir"},  # metadata.json of OpenHands
)  # fmt: skip


def sniff(doc: Document) -> bool:
    row = first(doc)
    return _is_line(row) or goes_along(row, BESIDE) or _kind(doc) is not None or _within_submission(doc.path)


def _is_line(row: dict[str, Any]) -> bool:
    """Whether it is a line of what OpenHands, or NeMo-Skills, did: its other benchmarks have no patch and no report."""
    result = row.get("test_result")
    if "instance_id" not in row or not (isinstance(result, dict) or NEMO in row):
        return False
    given_up = not result and {"metadata", "error"} <= row.keys()
    return _verdict(row) is not None or given_up or (isinstance(result, dict) and "git_patch" in result)


def _verdict(row: dict[str, Any]) -> dict[str, Any] | None:
    """The report within such a line, None where it was not evaluated."""
    result = row.get("test_result")
    found = [row.get("report"), result.get("report") if isinstance(result, dict) else None, row.get(NEMO)]
    return next((x for x in found if isinstance(x, dict) and "resolved" in x), None)


def _within_submission(path: str | None) -> bool:
    folders = PurePath(os.path.abspath(path)).parents if path else ()
    return any(f.name in ("trajs", "logs") and _is_submission(str(f.parent)) for f in folders)


def _is_submission(folder: str) -> bool:
    return _form(common_object(os.path.join(folder, "results", "results.json"))) in ("results", "report")


def _kind(doc: Document) -> str | None:
    if doc.kind != "json" or not isinstance(doc.first, dict):
        return None
    value = doc.first
    name = os.path.basename(doc.path or "")
    if value.keys() >= SMITH_REPORT or (value.keys() == TIMED_OUT and name == "report.json"):
        return "smith"
    if name == "infra_errors.json" and all(PRO.fullmatch(k) and isinstance(v, str) for k, v in value.items()):
        return "beside"
    return _form(value)


def _form(doc: dict[str, Any]) -> str | None:
    if isinstance(doc.get("results"), list):
        return None  # a run of Terminal-Bench, which lists resolved_ids and unresolved_ids too
    if any(isinstance(doc.get(k), list) for k in SOLVED) and any(k in doc for k in REPORT):
        return "report"
    if doc.keys() >= MULTI_REPORT:
        return "multi"
    if doc.keys() >= LIVE_REPORT:
        return "live"
    if isinstance(doc.get("resolved"), list) and any(name in doc for name in SUBMISSION):
        return "results"
    name, value = next(iter(doc.items()), ("", None))
    if isinstance(value, dict) and (value.keys() == {"resolved", "total"} or goes_along(value, BESIDE)):
        return "beside"
    if isinstance(value, dict) and "resolved" in value and (INSTANCE.fullmatch(name) or _detailed(value)):
        return "instances"
    return "pro" if isinstance(value, bool | None) and INSTANCE.fullmatch(name) else None


def _detailed(value: dict[str, Any]) -> bool:
    return any(keys <= value.keys() for keys in DETAILS)


def read(doc: Document, choices: Choices) -> Attempts | None:
    if _is_line(first(doc)):
        return _lines(doc)
    if goes_along(first(doc), BESIDE):
        return None
    form = _kind(doc)
    if form in (None, "beside") or (form == "results" and _told_by_details(doc)):
        return None
    if form == "results":
        out = _results(doc.first, choices)
    elif form == "report":
        out = _report(doc.first)
    elif form == "multi":
        out = _multi(doc.first)
    elif form == "live":
        out = _instances({identifier(doc.first["instance_id"], "instance_id"): doc.first})
    elif form == "smith":
        out = _smith(doc)
    else:
        out = _instances(doc.first) if form == "instances" else _pro(doc)
    if form in ONE and _told_by_results(doc, out.items):
        return None
    if doc.path and form != "pro":
        out.folder = _run(doc.path) if form in ONE else _above(doc.path, "results")
    return out


def _above(path: str, *names: str) -> str:
    """The folder of a file, or the one above it where it is called so: <submission>/results/results.json."""
    folder = os.path.dirname(os.path.abspath(path))
    return os.path.dirname(folder) if os.path.basename(folder) in names else folder


def _run(path: str) -> str:
    """The run's folder: .../<run>/<model>/<instance>/report.json.

    Of OpenHands <run>/eval_outputs/<instance>/report.json, of a submission <submission>/logs/<instance>/report.json, of
    Multi-SWE-bench <submission>/logs/<owner>/<repository>/evals/pr-1/report.json, or without logs.
    """
    if os.path.basename(path) != "report.json":
        return _above(path, "results")
    folder = os.path.dirname(os.path.abspath(path))
    above = os.path.dirname(folder)
    inside = os.path.dirname(os.path.dirname(above)) if os.path.basename(above) == "evals" else folder
    return _above(inside, "logs", "eval_outputs")


def _told_by_results(doc: Document, items: list[str]) -> bool:
    """Whether this is the report.json of an instance whose run has results too: those of a submission, a file in the
    run's folder, or, where the harness was started, <model>.<run>.json beside logs/run_evaluation/<run>/<model>."""
    if doc.path is None or os.path.basename(doc.path) != "report.json":
        return False
    run = _run(doc.path)
    places = [os.path.join(run, *names) for names in (("results", "results.json"), ("results.json",), ("report.json",))]
    parts = run.split(os.sep)
    if parts[-4:-2] == ["logs", "run_evaluation"]:
        places.append(os.sep.join([*parts[:-4], f"{parts[-1]}.{parts[-2]}.json"]))
    return any(_tells(path, items, of_all=path == places[0]) for path in places)


def _told_by_details(doc: Document) -> bool:
    """Whether the per_instance_details.json of a submission says the same of all instances, solved or not."""
    details = common(os.path.join(_above(doc.path, "results"), "per_instance_details.json")) if doc.path else None
    if not isinstance(details, dict) or _form(details) != "instances":
        return False
    solved = {i for i, row in details.items() if isinstance(row, dict) and row.get("resolved") is True}
    return solved == _ids(doc.first, "resolved").keys()


def _tells(path: str, items: list[str], of_all: bool = False) -> bool:
    """Whether a file has results of these instances. of_all: it is a submission's, which has all, listed or not.

    The harness writes its report anew when some instances are run again, and then has only these.
    """
    results = common(path)
    form = _form(results) if isinstance(results, dict) else None
    if of_all or form != "report":
        return form in ("results", "report")
    lists = [results.get(name) for name in (*SOLVED, *REPORT)]
    return set(items) <= {i for ids in lists if isinstance(ids, list) for i in ids if isinstance(i, str)}


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
    name = next(k for k in SOLVED if isinstance(doc.get(k), list))
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
    total = doc.get("total")
    if name == "ids_resolved" and type(total) is int and total > len(tried):
        out.skip("instance without a report", total - len(tried))
    return out


def _instances(doc: dict[str, Any]) -> Attempts:
    out = Attempts("swe-bench instances")
    for n, (item, row) in enumerate(doc.items(), 1):
        if not isinstance(row, dict):
            raise InputError(f"row {n}: {item} is {kind(row)}, not an object")
        resolved = _flag(row.get("resolved"), f"resolved of {item}", n)
        out.add(item, resolved, cluster=repository(item), error=row.get("infra_failure") is True, line=n)
    return out


def _flag(value: Any, what: str, line: int) -> bool | None:
    if not isinstance(value, bool | None):
        raise InputError(f"row {line}: {what} is {kind(value)}, not a flag")
    return value


def _pro(doc: Document) -> Attempts:
    out = Attempts("swe-bench pro")
    for n, (item, resolved) in enumerate(doc.first.items(), 1):
        out.add(item, _flag(resolved, item, n), cluster=repository(item), line=n)
    listed = doc.sibling("infra_errors.json")
    never_ran = [i for i in listed if i not in doc.first] if isinstance(listed, dict) else []  # a rerun leaves the list
    if never_ran and endings.unpacked(os.path.basename(doc.path or "")) != "eval_results.json":
        raise InputError(
            "infra_errors.json beside it is of the run that wrote eval_results.json: give this file that name, or "
            "keep it in another folder"
        )
    for item in never_ran:
        out.add(item, None, cluster=repository(item), error=True)
    return out


def _smith(doc: Document) -> Attempts:
    """One instance of SWE-smith; one that timed out counts as not resolved, as there.

    The model's name is not taken from it: reports of those that timed out, and the run's, have none.
    """
    if doc.path is None:
        raise InputError("an instance's report, whose name is that of its folder: read it as a file")
    item = os.path.basename(os.path.dirname(os.path.abspath(doc.path)))
    resolved = _flag(doc.first.get("resolved", False), "resolved", 1)
    out = Attempts("swe-smith instance")
    out.add(item, resolved, cluster=repository(item))
    return out


def _lines(doc: Document) -> Attempts | None:
    out = Attempts("nemo-skills" if NEMO in first(doc) else "openhands")
    agents, evaluated = set(), False
    for n, row in records(doc):
        item, about = identifier(row.get("instance_id"), "instance_id", n), inner(row, "metadata", n)
        report, raised = _verdict(row) or {}, text(row, "error", n)
        evaluated |= bool(report)
        if not report and raised is None and "git_patch" not in inner(row, "test_result", n):
            raise InputError(f"row {n}: no report, no patch and no error of {item}")
        resolved = _flag(report.get("resolved"), f"resolved of {item}", n)
        ended = any(report.get(key) is True for key in ("error_eval", "test_timeout"))
        failed = not resolved and (ended if report else raised is not None)
        model = text(inner(about, "llm_config", n), "model", n)
        agents.add(text(about, "agent_class", n))
        out.add(item, resolved, model=model, cluster=repository(item), error=failed, line=n)
    report_of_run = os.path.join(os.path.dirname(doc.path or ""), "report.json")
    if not evaluated or (doc.path and (_within_submission(doc.path) or _tells(report_of_run, out.items))):
        return None
    out.settings = agents.pop() if len(agents) == 1 else None
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
    known = PRO.fullmatch(item) or MULTI.fullmatch(item) or SMITH.fullmatch(item)
    return known[1] if known else item.rpartition("-")[0] or None
