"""Trials of Harbor (a result.json a trial), and of Terminal-Bench's own harness (a results.json a run).

The result.json of a job holds its trials only in some versions; those are read whose own files are not there. A trial
that grades another one again has that one's name as an attempt: read with it, it is the same attempt twice. What lies
in a trial's folder for its agent and its tests (logs of calls, trajectories, artifacts) goes with the trial.

Source: harbor/models/trial/{result,config,paths,error_policy}.py, harbor/models/job/result.py;
terminal_bench/harness/models.py, terminal_bench/agents/failure_mode.py, terminal_bench/handlers/trial_handler.py.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.fields import common_object, first, inner, members, text
from benchkit.formats.native import Attempts, Document, choose, number, of_wanted
from benchkit.text import count

NAME = "Harbor and Terminal-Bench results (result.json a trial, results.json a run)"

JUDGED = {
    "AgentTimeoutError", "ContextWindowExceededError", "ContextLengthExceededError", "OutputTokenExceededError",
    "OutputLengthExceededError", "AgentSafetyRefusalError", "ContentPolicyViolationError",
    "agent_timeout", "context_length_exceeded", "output_length_exceeded",
}  # fmt: skip
"""Ends that are the agent's own, in Harbor's words its reward is valid: such an attempt is judged all the same.

Newer trials say so themselves (reward_valid), also by what was set for the job.
"""

FINE = {None, "unset", "none"}  # of failure_mode
BESIDE = (
    {"n_total_trials", "stats"}, {"job_name", "jobs_dir"}, {"trial_name", "trials_dir"},  # of a job, and of a trial
    {"run_id", "dataset_path", "agent_name"},  # the run of Terminal-Bench
)  # fmt: skip
WITHIN = {
    "result.json": {"agent", "user-agent", "verifier", "artifacts", "steps"},
    "results.json": {"agent-logs", "sessions", "panes"},
}
"""The file of a trial, and the folders beside it that are its agent's and its tests'."""


def sniff(doc: Document) -> bool:
    return _is_own(doc.first if doc.kind == "json" else None) or _within_trial(doc.path)


def _is_own(value: Any) -> bool:
    """Whether it is a file that the harness itself writes."""
    if not isinstance(value, dict):
        return False
    return _is_trial(value) or _is_run(value) or _is_old_trial(value) or any(k <= value.keys() for k in BESIDE)


def _within_trial(path: str | None) -> bool:
    folder = os.path.dirname(os.path.abspath(path)) if path else os.sep
    while folder != os.path.dirname(folder):
        above, inside = os.path.split(folder)
        if any(inside in names and _holds_trial(os.path.join(above, name)) for name, names in WITHIN.items()):
            return True
        folder = above
    return False


def _holds_trial(path: str) -> bool:
    """Whether a file is there and is a trial's; an agent may leave hundreds beside it."""
    value = common_object(path)
    return _is_trial(value) or _is_old_trial(value)


@lru_cache(maxsize=256)
def _trials_of_run(path: str) -> frozenset[str]:
    """The names of the trials that the file of a run has, none where there is no such file; each trial asks for it."""
    value = common_object(path)
    rows = value["results"] if _is_run(value) else []
    return frozenset(
        row["trial_name"] for row in rows if isinstance(row, dict) and isinstance(row.get("trial_name"), str)
    )


def _is_trial(value: dict[str, Any]) -> bool:
    return "task_name" in value and "verifier_result" in value and bool({"task_id", "trial_name"} & value.keys())


def _is_old_trial(value: dict[str, Any]) -> bool:
    return {"trial_name", "task_id", "is_resolved"} <= value.keys()


def _is_run(value: dict[str, Any]) -> bool:
    trials = value.get("results")
    if not isinstance(trials, list):
        return False
    if not trials:
        return {"n_resolved", "n_unresolved"} <= value.keys()
    return isinstance(trials[0], dict) and _is_old_trial(trials[0])


def read(doc: Document, choices: Choices) -> Attempts | None:
    if not _is_own(doc.first if doc.kind == "json" else None):
        return None
    value = first(doc)
    folder = "" if doc.path is None else os.path.dirname(os.path.abspath(doc.path))
    if _is_trial(value):
        out = _trials([(1, value)], choices, os.path.basename(folder))
        out.folder = os.path.dirname(folder) or None  # <job>/<trial>/result.json
        return out
    if value.keys() >= BESIDE[0] and value.get("trial_results"):
        rows = [(n, trial, text(trial, "trial_name", n)) for n, trial in members(value["trial_results"], "trial")]
        own = {name for *_, name in rows if name and os.path.isfile(os.path.join(folder, name, "result.json"))}
        trials = [(n, trial) for n, trial, name in rows if name not in own]
        return _trials(trials, choices, "") if trials else None
    if _is_run(value):
        about = doc.sibling("run_metadata.json")
        return _run(value["results"], about if isinstance(about, dict) else {}, choices)
    if _is_old_trial(value):  # <run>/<task>/<trial>/results.json, which the run's own repeats
        up = os.path.join(os.pardir, os.pardir)
        run = os.path.normpath(os.path.join(folder, up, "results.json"))
        if doc.path is not None and text(value, "trial_name") in _trials_of_run(run):
            return None
        about = doc.sibling(os.path.join(up, "run_metadata.json"))
        out = _run([value], about if isinstance(about, dict) else {}, choices)
        out.unfinished = None  # the other trials have files of their own
        out.folder = os.path.normpath(os.path.join(folder, up)) if folder else None
        return out
    return None


def _trials(trials: list[tuple[int, dict[str, Any]]], choices: Choices, folder: str) -> Attempts:
    """Trials of one job. folder: that of a single trial, which has its name."""
    trials = of_wanted(trials, [text(trial, "source") for _, trial in trials], choices)
    said = [_agent(trial) for _, trial in trials]
    models, settings = ({s[k] for s in said} for k in (0, 1))
    out = Attempts("harbor", settings=settings.pop() if len(settings) == 1 else None)
    out.model = models.pop() if len(models) == 1 else None
    sources = {text(trial, "source") for _, trial in trials}
    out.of_task(sources.pop() if len(sources) == 1 else None, choices)
    rewards = [inner(inner(trial, "verifier_result", n), "rewards", n) for n, trial in trials]
    found = sorted({key for reward in rewards for key in reward})
    key = choose(choices.metric, found, "--metric", "reward") if found else ""
    for (n, trial), (model, _), reward in zip(trials, said, rewards, strict=True):
        if "task_name" not in trial:
            raise InputError(f"row {n}: a trial without task_name")
        score = number(reward.get(key), key, n)
        name = _graded_again(trial, n) or text(trial, "trial_name", n) or folder or None
        out.add(trial["task_name"], score, attempt=name, model=model, error=_failed(trial, score), line=n)
    return out


def _graded_again(trial: dict[str, Any], n: int) -> str | None:
    """The name of the trial that this one only grades again, None where it is one of its own."""
    source = text(inner(inner(trial, "config", n), "source_trial", n), "path", n)
    return None if source is None else os.path.basename(os.path.normpath(source))


def _failed(trial: dict[str, Any], score: float | None) -> bool:
    failure, valid = _failure(trial), trial.get("reward_valid")
    return failure is not None and not valid if isinstance(valid, bool) else _error(failure, score)


def _agent(trial: dict[str, Any]) -> tuple[str | None, str | None]:
    """The model of a trial, and its agent with what tells its runs apart."""
    config, agent = inner(inner(trial, "config"), "agent"), inner(trial, "agent_info")
    about = inner(agent, "model_info")
    name, provider = text(about, "name"), text(about, "provider")
    model = text(config, "model_name") if name is None else f"{provider}/{name}" if provider else name
    parts = [text(agent, "name") or text(config, "name"), text(agent, "version")]
    effort = inner(config, "kwargs").get("reasoning_effort")
    said = " ".join(p for p in parts if p)
    said += f", reasoning_effort={effort}" if isinstance(effort, str | int) else ""
    return model, said or None


def _failure(trial: dict[str, Any]) -> str | None:
    """The exception that a trial, or a step of it, ended in; of several one that is not the agent's own doing."""
    steps = [step for _, step in members(trial.get("step_results") or [], "step")]
    found = [e for holder in (trial, *steps) if (e := inner(holder, "exception_info"))]
    kinds = [text(e, "exception_type") or "an exception" for e in found]
    return next((k for k in kinds if k not in JUDGED), kinds[0] if kinds else None)


def _run(trials: Any, about: dict[str, Any], choices: Choices) -> Attempts:
    out = Attempts("terminal-bench", text(about, "model_name"), text(about, "agent_name"))
    out.of_task(text(about, "dataset_name"), choices)
    out.unfinished = _unfinished(about, trials)
    for n, row in members(trials, "trial"):
        score = number(row.get("is_resolved"), "is_resolved", n)
        mode = text(row, "failure_mode", n)
        failed = _error(None if mode in FINE else mode, score)
        out.add(row.get("task_id"), score, attempt=row.get("trial_name"), error=failed, line=n)
    return out


def _unfinished(about: dict[str, Any], trials: Any) -> str | None:
    """Of a run whose metadata have no end, how many trials of those planned it has; None where it has all."""
    tasks, times = about.get("dataset_size"), about.get("n_attempts")
    if about.get("end_time", "") is not None or not isinstance(trials, list):
        return None
    if type(tasks) is not int or type(times) is not int:
        return f"no end, {count(len(trials), 'trial')}"
    return f"no end, {len(trials)} of {tasks * times} trials" if len(trials) < tasks * times else None


def _error(failure: str | None, score: float | None) -> bool:
    """Whether a failure, not the work, decided: there is no verdict, or a 0 that is not for what the agent did."""
    return failure is not None and (score is None or (score == 0 and failure not in JUDGED))
