"""Trials of Harbor and of Terminal-Bench's own harness."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest
from conftest import Shell
from hypothesis import given, settings
from hypothesis import strategies as st
from native_files import attempts, damaged, reader, scores, survives, write

from benchkit.errors import InputError


def trial(task: Any = "hello", name: Any = "hello__a", reward: Any = 1.0, **more: Any) -> dict[str, Any]:
    return {
        "id": "u", "task_name": task, "trial_name": name, "trial_uri": "file:///x", "task_id": {"path": "tasks/hello"},
        "source": "terminal-bench", "task_checksum": "c", "exception_info": None,
        "config": {"agent": {"name": "terminus-2", "model_name": "openai/gpt-x", "kwargs": {}}},
        "agent_info": {"name": "terminus-2", "version": "2.0", "model_info": {"name": "gpt-x", "provider": "openai"}},
        "agent_result": {"cost_usd": 0.1}, "verifier_result": {"rewards": {"reward": reward}},
    } | more  # fmt: skip


def exception(kind: str) -> dict[str, Any]:
    return {"exception_type": kind, "exception_message": "", "exception_traceback": "", "occurred_at": ""}


def old(
    task: str = "hello", name: str = "hello.1-of-2.run", resolved: Any = True, mode: Any = "unset"
) -> dict[str, Any]:
    return {"id": "u", "trial_name": name, "task_id": task, "instruction": "", "is_resolved": resolved,
            "failure_mode": mode, "parser_results": {"test_a": "passed"}}  # fmt: skip


class TestTrials:
    def test_a_folder_of_trials(self, sh: Shell) -> None:
        for name, reward in (("hello__a", 1.0), ("hello__b", 0.0)):
            write(sh.folder / "job" / name / "result.json", trial(name=name, reward=reward))
            write(sh.folder / "job" / name / "config.json", {"trial_name": name, "trials_dir": "job", "task": {}})
        write(sh.folder / "job" / "result.json", {"id": "u", "n_total_trials": 2, "stats": {}})
        write(sh.folder / "job" / "config.json", {"job_name": "job", "jobs_dir": "."})
        done = sh("bk-matrix job -t json")
        got = json.loads(done.out)
        assert got["responses"] == [
            {"model": "openai/gpt-x", "item": "hello", "attempts": 2, "correct": 1, "cluster": None}
        ]
        assert done.err == "" and got["warnings"] == []

    def test_what_formats_without_a_model_hold(self, tmp_path: Path) -> None:
        """The least that a submission has; the trial's folder has its name."""
        least = {"task_name": "hello", "task_id": {"git_commit_id": "c"}, "verifier_result": {"rewards": {"reward": 1}},
                 "agent_result": {"cost_usd": 1}}  # fmt: skip
        got = attempts(write(tmp_path / "hello__q" / "result.json", least))
        assert got and (got.model, got.items, got.numbers, got.scores) == (None, ["hello"], ["hello__q"], [1.0])

    def test_the_run_s_folder_is_the_job(self, sh: Shell) -> None:
        for k in range(2):
            one = trial(name=None, agent_info=None, config=None)
            write(sh.folder / "gpt-x" / f"hello__{k}" / "result.json", one)
        got = json.loads(sh("bk-matrix gpt-x --model-from path -t json").out)["responses"]
        assert [(r["model"], r["attempts"]) for r in got] == [("gpt-x", 2)]

    def test_the_model_and_the_agent(self, tmp_path: Path) -> None:
        got = attempts(write(tmp_path / "a.json", trial()))
        assert got and (got.model, got.settings, got.task) == ("openai/gpt-x", "terminus-2 2.0", "terminal-bench")
        config = {"agent": {"name": "mine", "model_name": "gpt-z", "kwargs": {"reasoning_effort": "high"}}}
        got = attempts(write(tmp_path / "a.json", trial(agent_info=None, config=config)))
        assert got and (got.model, got.settings) == ("gpt-z", "mine, reasoning_effort=high")

    def test_two_agents_are_two_models_where_they_collide(self, sh: Shell) -> None:
        info = {"name": "other", "version": "1", "model_info": {"name": "gpt-x", "provider": "openai"}}
        write(sh.folder / "a" / "result.json", trial())
        write(sh.folder / "b" / "result.json", trial(name="hello__b", agent_info=info))
        got = json.loads(sh("bk-matrix . -t json").out)["responses"]
        assert [r["model"] for r in got] == ["openai/gpt-x (other 1)", "openai/gpt-x (terminus-2 2.0)"]

    @pytest.mark.parametrize(
        ("kind", "rewards", "failed"),
        (
            ("AgentTimeoutError", {"reward": 1.0}, False),  # solved in spite of it
            ("AgentTimeoutError", {"reward": 0.0}, False),  # time is part of the task
            ("AgentTimeoutError", None, True),  # never judged
            ("NonZeroAgentExitCodeError", {"reward": 1.0}, False),
            ("NonZeroAgentExitCodeError", {"reward": 0.0}, True),
            ("VerifierTimeoutError", None, True),
            (None, {"reward": 0.0}, False),
            (None, None, False),  # not scored
        ),
    )
    def test_errors(self, tmp_path: Path, kind: str | None, rewards: Any, failed: bool) -> None:
        one = trial(verifier_result={"rewards": rewards}, exception_info=exception(kind) if kind else None)
        got = attempts(write(tmp_path / "a.json", one))
        assert got and got.errors == [failed] and (got.scores[0] is None) == (rewards is None)

    def test_several_rewards(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.json", trial(verifier_result={"rewards": {"tests": 0.5, "style": 1}}))
        with pytest.raises(InputError, match=r"several rewards \(style, tests\): choose one with --metric"):
            attempts(path)
        assert scores(attempts(path, metric="tests")) == {"hello": [0.5]}


class TestRuns:
    def test_results_of_a_run(self, sh: Shell) -> None:
        rows = [old(), old(name="hello.2-of-2.run", resolved=False), old("b", "b.1", False, "agent_timeout"),
                old("c", "c.1", None, "test_timeout"), old("d", "d.1", False, "unknown_agent_error")]  # fmt: skip
        write(sh.folder / "run" / "results.json", {"id": "u", "results": rows, "n_resolved": 1, "accuracy": 0.2})
        about = {"run_id": "r", "dataset_path": "x", "agent_name": "terminus", "model_name": "gpt-x"}
        write(sh.folder / "run" / "run_metadata.json", about)
        inside = write(sh.folder / "run" / "hello" / "hello.1-of-2.run" / "results.json", old())
        assert attempts(inside) is None
        assert "2 of 5 attempts ended in an error (the first in row 4)" in sh("bk-matrix run", rc=2).err
        got = json.loads(sh("bk-matrix run --errors drop -t json").out)["responses"]
        assert [(r["model"], r["item"], r["attempts"], r["correct"]) for r in got] == [
            ("gpt-x", "b", 1, 0), ("gpt-x", "hello", 2, 1),
        ]  # fmt: skip

    def test_a_trial_alone(self, tmp_path: Path) -> None:
        path = write(tmp_path / "results.json", old())
        assert reader(path) == "harbor" and scores(attempts(path)) == {"hello": [1.0]}

    def test_an_empty_run(self, tmp_path: Path) -> None:
        path = write(tmp_path / "results.json", {"results": [], "n_resolved": 0, "n_unresolved": 0})
        assert scores(attempts(path)) == {}


class TestHostile:
    @pytest.mark.parametrize(
        ("document", "said"),
        (
            (trial(task=None), "item is null"),
            (trial(reward="1"), 'reward is "1", which is no score'),
            (trial(verifier_result=[]), "verifier_result is a list, not an object"),
            (trial(verifier_result={"rewards": 1}), "rewards is a number, not an object"),
            (trial(exception_info="x"), "exception_info is a text, not an object"),
            (trial(agent_info={"name": 3}), "name is a number, not a text"),
            ({"results": [old(), None]}, "trial 2 is null, not an object"),
            ({"results": [old(resolved="yes")]}, 'row 1: is_resolved is "yes", which is no score'),
            ({"results": [old(mode=3)]}, "row 1: failure_mode is a number, not a text"),
        ),
    )
    def test_one_clear_line(self, tmp_path: Path, document: Any, said: str) -> None:
        with pytest.raises(InputError, match=said):
            attempts(write(tmp_path / "a.json", document))

    @settings(max_examples=150)
    @given(st.data())
    def test_damaged(self, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
        known = (trial(exception_info=exception("x")), {"results": [old(), old(name="x")]}, old())
        path = write(tmp_path_factory.mktemp("h") / "a.json", data.draw(damaged(data.draw(st.sampled_from(known)))))
        survives(path, errors="drop", unscored="wrong", duplicates="first")


class TestJobs:
    """Harbor 0.1.20 writes a job's result.json without its trials, 0.26.0 may write it with them."""

    JOB: ClassVar[dict[str, Any]] = {
        "id": "u", "n_total_trials": 2, "stats": {},
        "trial_results": [trial(name="hello__a", reward=1.0), trial(name="hello__b", reward=0.0)],
    }  # fmt: skip

    def test_trials_within_the_job_s_result(self, tmp_path: Path) -> None:
        got = attempts(write(tmp_path / "job" / "result.json", self.JOB))
        assert scores(got) == {"hello": [1.0, 0.0]}
        assert got and (got.models, got.numbers) == (["openai/gpt-x"] * 2, ["hello__a", "hello__b"])

    def test_their_own_files_come_first(self, tmp_path: Path) -> None:
        """Those without are read from the job's."""
        path = write(tmp_path / "job" / "result.json", self.JOB)
        write(tmp_path / "job" / "hello__b" / "result.json", self.JOB["trial_results"][1])
        got = attempts(path)
        assert got and got.numbers == ["hello__a"]
        write(tmp_path / "job" / "hello__a" / "result.json", self.JOB["trial_results"][0])
        assert attempts(path) is None

    def test_a_trial_without_a_task(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="row 1: a trial without task_name"):
            attempts(write(tmp_path / "result.json", self.JOB | {"trial_results": [{"trial_name": "a"}]}))

    @settings(max_examples=100)
    @given(st.data())
    def test_damaged_jobs(self, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
        path = tmp_path_factory.mktemp("job") / "result.json"
        survives(write(path, data.draw(damaged(self.JOB))), errors="drop", unscored="drop", duplicates="first")


@pytest.mark.parametrize(
    ("kind", "failed"),
    [("AgentTimeoutError", False), ("ContextLengthExceededError", False), ("AgentSafetyRefusalError", False),
     ("ApiRateLimitError", True), ("NonZeroAgentExitCodeError", True)],
)  # fmt: skip
def test_a_reward_of_0_stands_where_the_end_was_the_agent_s_own(tmp_path: Path, kind: str, failed: bool) -> None:
    for where in (
        {"exception_info": exception(kind)},
        {"step_results": [{"step_name": "a", "exception_info": None}, {"exception_info": exception(kind)}]},
    ):
        got = attempts(write(tmp_path / "hello__a" / "result.json", trial(reward=0.0, **where)))
        assert got and got.errors == [failed]
        got = attempts(write(tmp_path / "hello__a" / "result.json", trial(reward=1.0, **where)))
        assert got and got.errors == [False]


def test_a_trial_of_terminal_bench_without_the_run_s_results(tmp_path: Path) -> None:
    """As submissions to the board have them; the run's metadata two folders above name the model."""
    path = write(tmp_path / "run" / "hello" / "hello.1-of-1.run" / "results.json", old())
    got = attempts(path)
    assert got and (got.model, got.folder) == (None, str(tmp_path / "run"))
    write(tmp_path / "run" / "run_metadata.json", {"run_id": "run", "model_name": "m", "agent_name": "t"})
    write(tmp_path / "run" / "results.json", {"results": [old(name="hello.2-of-2.run")]})  # the run was killed
    got = attempts(path)
    assert got and (got.model, got.settings, got.numbers) == ("m", "t", ["hello.1-of-2.run"])


def test_a_run_of_terminal_bench_as_it_is_written(tmp_path: Path) -> None:
    """Terminal-Bench 0.2.18 writes lists of resolved and of unresolved tasks beside them, as a SWE-bench report has."""
    run = {
        "id": "u", "results": [old(), old(name="hello.2-of-2.run", resolved=False, mode="agent_timeout")],
        "pass_at_k": {"2": 1.0}, "n_resolved": 1, "n_unresolved": 1, "resolved_ids": ["hello"],
        "unresolved_ids": ["hello"], "accuracy": 0.5,
    }  # fmt: skip
    path = write(tmp_path / "results.json", run)
    assert reader(path) == "harbor" and scores(attempts(path)) == {"hello": [1.0, 0.0]}


class TestValidRewards:
    """Harbor 0.26.0 writes of each trial whether its reward is valid; the job's mean is over those."""

    @pytest.mark.parametrize(
        ("kind", "reward", "valid", "failed"),
        [("NonZeroAgentExitCodeError", 0.0, True, False), ("ApiRateLimitError", 1.0, False, True),
         ("AgentTimeoutError", 0.0, False, True), (None, None, False, False)],
    )  # fmt: skip
    def test_they_say_what_failed(
        self, tmp_path: Path, kind: str | None, reward: float | None, valid: bool, failed: bool
    ) -> None:
        more = {"reward_valid": valid, "exception_info": exception(kind) if kind else None}
        got = attempts(write(tmp_path / "a.json", trial(reward=reward, **more)))
        assert got and got.errors == [failed]

    def test_graded_again_is_the_same_attempt(self, sh: Shell) -> None:
        source = {"action": "regrade", "type": "local", "trial_id": None, "path": "jobs/one/hello__a"}
        config = {"agent": {"name": "terminus-2"}, "source_trial": source}
        write(sh.folder / "one" / "hello__a" / "result.json", trial(reward=0.0))
        write(sh.folder / "two" / "hello__z" / "result.json", trial(name="hello__z", config=config))
        assert json.loads(sh("bk-matrix two -t json").out)["responses"][0]["correct"] == 1
        assert "stand in one/hello__a/result.json and in two/hello__z/result.json" in sh("bk-matrix one two", rc=2).err


@pytest.mark.parametrize(
    ("about", "said"),
    [({"end_time": None, "dataset_size": 2, "n_attempts": 2}, "no end, 1 of 4 trials"),
     ({"end_time": None, "dataset_size": 1, "n_attempts": 1}, None),  # all are there: only the end was not written
     ({"end_time": "x", "dataset_size": 2, "n_attempts": 2}, None), ({}, None),
     ({"end_time": None}, "no end, 1 trial")],
)  # fmt: skip
def test_a_run_of_terminal_bench_that_did_not_end(tmp_path: Path, about: dict[str, Any], said: str | None) -> None:
    inside = write(tmp_path / "run" / "hello" / "hello.1" / "results.json", old())
    write(tmp_path / "run" / "run_metadata.json", {"run_id": "r", "model_name": "m", "agent_name": "t"} | about)
    got = attempts(inside)
    assert got and got.unfinished is None
    got = attempts(write(tmp_path / "run" / "results.json", {"results": [old()]}))
    assert got and got.unfinished == said


@pytest.mark.parametrize(
    ("trial_file", "inside"),
    [("result.json", "agent/episode-0"), ("result.json", "steps/one/agent"), ("results.json", "agent-logs")],
)
def test_what_the_agent_left_goes_with_the_trial(tmp_path: Path, trial_file: str, inside: str) -> None:
    """Calls that were logged have a model, and were wide tables with errors; other folders are the user's."""
    log = {"model": "gpt-x", "messages": [], "optional_params": {}}
    write(tmp_path / "hello__a" / trial_file, trial() if trial_file == "result.json" else old())
    report = {"a__a-1": {"patch_exists": True, "resolved": True}}  # SWE-bench's, by the trial's tests
    for name, document in (("debug.json", log), ("a.jsonl", [log, log]), ("b.json", ["x"]), ("report.json", report)):
        path = write(tmp_path / "hello__a" / inside / name, document)
        assert reader(path) == "harbor" and attempts(path) is None
    assert reader(write(tmp_path / "hello__a" / "mine" / "debug.json", log)) is None
    write(tmp_path / "mine" / trial_file, {"total": 1})
    assert reader(write(tmp_path / "mine" / inside / "debug.json", log)) is None
