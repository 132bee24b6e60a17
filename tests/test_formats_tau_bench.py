"""tau-bench and tau2-bench: trials are attempts, and a run without a rollout is an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import DATA, Shell
from hypothesis import given, settings
from hypothesis import strategies as st
from native_files import attempts, damaged, reader, scores, survives, write

from benchkit.errors import InputError

REAL = DATA / "native" / "tau_bench" / "gpt-4o.json"


def simulation(task: Any = "0", trial: Any = 0, reward: Any = 1.0, **more: Any) -> dict[str, Any]:
    return {"id": f"s{task}{trial}", "task_id": task, "trial": trial, "termination_reason": "user_stop",
            "reward_info": {"reward": reward}, "agent_cost": 0.1, "messages": []} | more  # fmt: skip


INFO = {
    "agent_info": {"implementation": "llm_agent", "llm": "gpt-x", "llm_args": {"temperature": 0.0, "api_key": "v1.x"}},
    "user_info": {"implementation": "user_simulator", "llm": "gpt-y"},
    "environment_info": {"domain_name": "retail"},
}
RUN = {
    "timestamp": "2026-01-01", "info": INFO, "tasks": [],
    "simulations": [simulation(), simulation(trial=1, reward=0.0), simulation("1", 0, 0.5)],
}  # fmt: skip


class TestReal:
    def test_fifty_tasks_with_four_trials(self, sh: Shell) -> None:
        assert "--model NAME" in sh(f"bk-matrix {REAL}", rc=2).err
        got = json.loads(sh(f"bk-matrix {REAL} --model-from file -t json").out)["responses"]
        assert {(r["model"], r["attempts"]) for r in got} == {("gpt-4o", 4)}
        assert len(got) == 50 and sum(r["correct"] for r in got) == 84


class TestRewards:
    def test_a_run_that_raised_is_an_error(self, tmp_path: Path) -> None:
        rows = [
            {"task_id": 7, "reward": 1.0, "trial": 0, "info": {"reward_info": {}}},
            {"task_id": 7, "reward": 0.0, "trial": 1, "info": {"error": "429", "traceback": ""}},
        ]
        got = attempts(write(tmp_path / "a.json", rows))
        assert got and (got.items, got.numbers, got.errors) == (["7", "7"], ["0", "1"], [False, True])

    def test_lacking_fields(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="row 2: lacks task_id or reward"):
            attempts(write(tmp_path / "a.json", [{"task_id": 1, "reward": 1, "trial": 0}, {"task_id": 1}]))


class TestSimulations:
    def test_a_list_without_its_run(self, tmp_path: Path) -> None:
        """As submissions to the board may have them: no information on the model, trials may be missing."""
        rows = [simulation(), simulation("1", reward=0.0, trial=None), simulation("2", reward_info=None)]
        del rows[1]["trial"]
        path = write(tmp_path / "a.json", rows)
        got = attempts(path)
        assert reader(path) == "tau_bench" and got and (got.model, got.scores) == (None, [1.0, 0.0, None])
        assert got.numbers == ["0", None, "0"]

    def test_the_model_is_the_agent_s(self, tmp_path: Path) -> None:
        got = attempts(write(tmp_path / "a.json", RUN))
        assert scores(got) == {"0": [1.0, 0.0], "1": [0.5]}
        assert got and (got.model, got.task) == ("gpt-x", "retail")
        assert got.settings == "llm_agent, user=gpt-y, temperature=0.0"  # never the key

    def test_voice(self, tmp_path: Path) -> None:
        info = {"agent_info": {"implementation": "audio"}, "audio_native_config": {"model": "rt"}}
        got = attempts(write(tmp_path / "a.json", RUN | {"info": info}))
        assert got and (got.model, got.settings) == ("rt", "audio")

    @pytest.mark.parametrize("reason", ("infrastructure_error", "context_window_exceeded", "unexpected_error"))
    def test_no_rollout_is_an_error(self, tmp_path: Path, reason: str) -> None:
        runs = [simulation(), simulation(trial=1, termination_reason=reason, reward_info=None)]
        got = attempts(write(tmp_path / "a.json", {"simulations": runs}))
        assert got and got.errors == [False, True] and got.model is None

    def test_other_ends_are_verdicts(self, tmp_path: Path) -> None:
        runs = [simulation(trial=0, reward=0.0, termination_reason="max_steps"), simulation(trial=1, reward_info=None)]
        got = attempts(write(tmp_path / "a.json", {"simulations": runs}))
        assert got and (got.errors, got.scores) == ([False, False], [0.0, None])

    def test_a_file_a_simulation_is_read_by_its_index(self, sh: Shell) -> None:
        index = [{"id": f"s0{k}", "task_id": "0", "trial": k, "reward": float(k), "termination_reason": "agent_stop"}
                 for k in range(2)]  # fmt: skip
        run = {k: v for k, v in RUN.items() if k != "simulations"} | {"simulation_index": index}
        write(sh.folder / "results.json", run)
        one = write(sh.folder / "simulations" / "s00.json", simulation(trial=0, reward=0.0))
        assert reader(one) == "tau_bench" and attempts(one) is None
        got = json.loads(sh("bk-matrix . -t json").out)["responses"]
        assert [(r["model"], r["item"], r["attempts"], r["correct"]) for r in got] == [("gpt-x", "0", 2, 1)]
        (sh.folder / "results.json").unlink()
        alone = attempts(one)
        assert scores(alone) == {"0": [0.0]} and alone and alone.folder == str(sh.folder)

    @pytest.mark.parametrize("index", (None, [{"id": "s00", "task_id": "0", "trial": 0, "reward": 0.0}]))
    def test_a_file_a_simulation_that_is_in_no_index(self, sh: Shell, index: Any) -> None:
        """An early version wrote none; the run above them says the model and the task."""
        run = {k: v for k, v in RUN.items() if k != "simulations"} | ({"simulation_index": index} if index else {})
        write(sh.folder / "results.json", run)
        for trial in range(2):
            write(sh.folder / "simulations" / f"s0{trial}.json", simulation(trial=trial, reward=float(trial)))
        got = json.loads(sh("bk-matrix . -t json").out)
        assert [(r["model"], r["item"], r["attempts"], r["correct"]) for r in got["responses"]] == [
            ("gpt-x", "0", 2, 1)
        ]
        assert {s["task"] for s in got["sources"]} == {"retail"}

    def test_a_submission_to_the_board(self, sh: Shell) -> None:
        about = {"model_name": "GPT X", "submitting_organization": "O", "submission_date": "2026-01-01",
                 "contact_info": {}, "results": {"retail": {"pass_1": 50.0}}}  # fmt: skip
        own = {"domain": "triage", "agent": "a", "model": "gpt-x", "total_tasks": 1, "passed": 1}
        one = {k: v for k, v in simulation().items() if k != "trial"}
        write(sh.folder / "s" / "submission.json", about)
        write(sh.folder / "s" / "trajectories" / "triage.json", own | {"simulations": [one]})
        got = json.loads(sh("bk-matrix s -t json").out)
        assert [(r["model"], r["item"], r["correct"]) for r in got["responses"]] == [("gpt-x", "0", 1)]
        assert [s["task"] for s in got["sources"]] == ["triage"]

    def test_results_of_others_above_a_simulation(self, tmp_path: Path) -> None:
        write(tmp_path / "results.json", {"results": {}})
        one = write(tmp_path / "runs" / "a.json", simulation())
        assert scores(attempts(one)) == {"0": [1.0]}


class TestHostile:
    @pytest.mark.parametrize(
        ("run", "said"),
        (
            ({"simulations": [simulation(), 3]}, "simulation 2 is a number, not an object"),
            ({"simulations": [simulation(reward="1")]}, 'row 1: reward is "1", which is no score'),
            ({"simulations": [simulation(task=None)]}, "row 1: item is null"),
            ({"simulations": [simulation(trial=0.5)]}, "row 1: attempt is 0.5"),
            ({"simulations": [simulation(reward_info=[])]}, "row 1: reward_info is a list, not an object"),
            (RUN | {"info": []}, "info is a list, not an object"),
            (RUN | {"info": {"agent_info": {"llm": 3}}}, "llm is a number, not a text"),
        ),
    )
    def test_one_clear_line(self, tmp_path: Path, run: Any, said: str) -> None:
        with pytest.raises(InputError, match=said):
            attempts(write(tmp_path / "a.json", run))

    def test_an_empty_run(self, sh: Shell) -> None:
        write(sh.folder / "a.json", RUN | {"simulations": []})
        assert sh("bk-matrix a.json", rc=2).err == "bk-matrix: a.json: no rows\n"

    @settings(max_examples=150)
    @given(st.data())
    def test_damaged(self, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
        rewards = [{"task_id": 1, "reward": 0.0, "trial": k, "info": {}} for k in range(2)]
        document = data.draw(damaged(data.draw(st.sampled_from((RUN, rewards)))))
        path = write(tmp_path_factory.mktemp("t") / "a.json", document)
        survives(path, errors="drop", unscored="wrong", duplicates="first")
