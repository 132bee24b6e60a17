"""Logs of Inspect AI: archives by their summaries, JSON logs, the oldest layout, and what counts as a score.

The layouts are those of logs written by Inspect AI 0.3.285 (inspect_ai/log/_log.py); the values are invented.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from conftest import Shell
from hypothesis import given
from native_files import attempts, damaged, reader, scores, survives, write

from benchkit.errors import InputError

HEADER: dict[str, Any] = {
    "version": 2,
    "status": "success",
    "eval": {"task": "arith", "task_id": "t1", "model": "openai/gpt-x", "config": {"epochs": 2}, "model_args": {},
             "model_generate_config": {"reasoning_effort": "high", "temperature": 0.5}},
    "plan": {"steps": []},
    "results": {"scores": [{"name": "match"}]},
}  # fmt: skip


def sample(item: Any, value: Any = None, epoch: int = 1, **more: Any) -> dict[str, Any]:
    scored = {} if value is None else {"scores": {"match": {"value": value, "answer": "4"}}}
    return {"id": item, "epoch": epoch, "input": "2+2", "target": "4", **scored, **more}


def log(samples: list[Any], **more: Any) -> dict[str, Any]:
    return HEADER | {"samples": samples} | more


def archive(path: Path, summaries: list[Any], whole: dict[str, Any] | None = None, **header: Any) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("_journal/start.json", json.dumps({k: HEADER[k] for k in ("version", "eval", "plan")}))
        for name, value in (whole or {}).items():
            out.writestr(name, json.dumps(value))
        out.writestr("summaries.json", json.dumps(summaries))
        out.writestr("header.json", json.dumps(HEADER | header))
    return path


class TestSamples:
    def test_letters_flags_words_and_numbers(self, tmp_path: Path) -> None:
        values = ["C", "I", "P", "N", True, "no", 0.25, "0.75", [1]]
        found = attempts(write(tmp_path / "a.json", log([sample(n, v) for n, v in enumerate(values)])))
        assert [s for [s] in scores(found).values()] == [1, 0, 0.5, 0, 1, 0, 0.25, 0.75, 1]

    def test_an_archive_by_its_header_and_summaries(self, tmp_path: Path) -> None:
        found = attempts(archive(tmp_path / "a.eval", [sample("q", "C"), sample("q", "I", 2)]))
        assert found is not None and (found.model, found.task) == ("openai/gpt-x", "arith")
        assert (scores(found), found.numbers) == ({"q": [1, 0]}, ["1", "2"])
        assert found.settings == "reasoning_effort=high, temperature=0.5"

    def test_arguments_that_may_be_secrets_are_no_settings(self, tmp_path: Path) -> None:
        args = {"api_key": "x", "base_url": "http://x", "access_token": "x", "device": "cuda:0", "max_tokens": 9}
        about = HEADER["eval"] | {"model_args": args, "model_generate_config": {}}
        found = attempts(write(tmp_path / "a.json", log([sample(1, "C")], eval=about)))
        assert found is not None and found.settings == "device=cuda:0, max_tokens=9"

    def test_solvers_tell_runs_apart(self, tmp_path: Path) -> None:
        plan = {"name": "plan", "steps": [{"solver": "system_message", "params": {}}, {"solver": "generate"}]}
        found = attempts(archive(tmp_path / "a.eval", [sample(1, "C")], plan=plan))
        assert found is not None and found.settings == (
            "reasoning_effort=high, temperature=0.5, solver=system_message+generate"
        )

    def test_models_in_roles(self, tmp_path: Path) -> None:
        """none/none is no model: the task asked for its models by their roles."""
        roles = {"grader": {"model": "g"}, "red": [{"model": "a"}, {"model": "b"}], "odd": None}
        about = HEADER["eval"] | {"model": "none/none", "model_generate_config": {}, "model_roles": roles}
        found = attempts(write(tmp_path / "a.json", log([sample(1, "C")], eval=about)))
        assert found is not None and (found.model, found.settings) == (None, "grader=g, red=a+b")

    def test_nan_and_null_are_no_score(self, tmp_path: Path) -> None:
        found = attempts(write(tmp_path / "a.json", log([sample(1, float("nan")), sample(2, "C"), sample(3)])))
        assert scores(found) == {"1": [None], "2": [1], "3": [None]}

    def test_texts_that_are_no_score_need_a_decision(self, tmp_path: Path) -> None:
        """Inspect's value_to_float takes them as 0, with a warning only."""
        samples = [sample("q1", "C"), sample("q2", "invalid"), sample("q3", ["A"]), sample("q4", "B", error="x")]
        path = write(tmp_path / "a.json", log(samples))
        with pytest.raises(InputError, match=r"2 of the scores are none of C, .*: 'invalid', 'A'\. .* --unscored drop"):
            attempts(path)
        found = attempts(path, unscored="wrong")
        assert found is not None and scores(found) == {"q1": [1], "q2": [None], "q3": [None], "q4": [None]}
        assert found.errors == [False, False, False, True]

    def test_labels_are_no_scores(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.json", log([sample(n, f"label {n}") for n in range(7)] + [sample(7)]))
        with pytest.raises(InputError, match=r"7 of the scores .*'label 4' and 2 more\. .*choose another scorer"):
            attempts(path, unscored="wrong")


class TestErrors:
    def test_an_error_without_a_score_failed(self, tmp_path: Path) -> None:
        found = attempts(archive(tmp_path / "a.eval", [sample("q1", "C"), sample("q2", error="ValueError")]))
        assert found is not None and found.errors == [False, True]

    def test_an_error_that_was_scored_counts_by_its_score(self, tmp_path: Path) -> None:
        """Inspect's accuracy of such a log counts both samples (score_on_error)."""
        found = attempts(archive(tmp_path / "a.eval", [sample("q1", "C", error="x"), sample("q2", "I", error="x")]))
        assert found is not None and found.errors == [False, False]
        assert scores(found) == {"q1": [1], "q2": [0]}

    def test_invalid_samples_are_left_out(self, tmp_path: Path) -> None:
        samples = [sample("q1", "C"), sample("q2", "C", invalidation={"author": "me"})]
        found = attempts(write(tmp_path / "a.json", log(samples, invalidated=True)))
        assert found is not None and (found.items, found.skipped) == (["q1"], {"invalidated sample": 1})

    def test_invalid_samples_of_an_archive_are_known_by_the_samples_only(self, tmp_path: Path) -> None:
        whole = {
            "samples/q1_epoch_1.json": sample("q1", "C"),
            "samples/q2_epoch_1/sample.json": sample("q2", "C", invalidation={"author": "me"}),  # the chunked layout
        }
        summaries = [sample("q1", "C"), sample("q2", "C")]
        found = attempts(archive(tmp_path / "a.eval", summaries, whole, invalidated=True))
        assert found is not None and (found.items, found.skipped) == (["q1"], {"invalidated sample": 1})
        with pytest.raises(InputError, match="but not samples/q2_epoch_1, which says"):
            attempts(archive(tmp_path / "b.eval", summaries, {"samples/q1_epoch_1.json": {}}, invalidated=True))


class TestUnfinished:
    PLAN = HEADER["eval"] | {"dataset": {"samples": 9, "sample_ids": [1, 2, 3]}, "config": {"epochs": 2}}

    @pytest.mark.parametrize(
        ("status", "planned", "said"),
        [
            ("cancelled", PLAN, "status cancelled, 2 of 6 samples"),
            ("error", PLAN | {"config": {"epochs": None, "limit": 10}}, "status error, 2 of 3 samples"),
            (None, PLAN | {"dataset": {"samples": 9}, "config": {"limit": 4}}, "status started, 2 of 4 samples"),
            ("error", PLAN | {"config": {"limit": [2, 4]}}, "status error, 2 samples"),
            ("error", PLAN | {"config": {"sample_id": "q1"}}, "status error, 2 samples"),
            ("error", HEADER["eval"], "status error, 2 samples"),
            ("error", PLAN | {"config": {"limit": 1, "epochs": 2}}, None),
            ("success", PLAN, None),
        ],
    )
    def test_how_far_it_came(self, tmp_path: Path, status: str | None, planned: Any, said: str | None) -> None:
        found = attempts(archive(tmp_path / "a.eval", [sample(1, "C"), sample(2, "I")], status=status, eval=planned))
        assert found is not None and found.unfinished == said

    def test_it_is_said_in_the_data(self, sh: Shell) -> None:
        for name, status in (("a", "cancelled"), ("b", "success")):
            about = self.PLAN | {"model": name}
            archive(sh.folder / f"{name}.eval", [sample(1, "C"), sample(2, "I")], status=status, eval=about)
        done = sh("bk-matrix -v a.eval b.eval -t json")
        document = json.loads(done.out)
        assert document["warnings"] == ["1 run did not end: a.eval (status cancelled, 2 of 6 samples)"]
        assert [x.get("unfinished") for x in document["sources"]] == ["status cancelled, 2 of 6 samples", None]
        assert "a.eval: inspect, task arith: 2 rows, 1 model, 2 items, 2 attempts, unfinished: status" in done.err


class TestRetries:
    EARLY, LATE = "2026-01-01T00-00-00-00-00_arith_t1.eval", "2026-01-01T00-00-09-00-00_arith_t1.eval"

    def test_the_later_log_has_all_samples(self, tmp_path: Path) -> None:
        early = archive(tmp_path / self.EARLY, [sample("q1", "C"), sample("q2", error="x")], status="error")
        found = attempts(early)
        assert found is not None and found.items == ["q1", "q2"]
        late = archive(tmp_path / self.LATE, [sample("q1", "C"), sample("q2", "I"), sample("q3", "C")])
        found = attempts(early)
        assert found is not None and found.items == []
        assert found.skipped == {"sample of a log that was retried": 2}
        found = attempts(late)
        assert found is not None and found.items == ["q1", "q2", "q3"]

    def test_nothing_is_lost_where_it_lacks_one(self, tmp_path: Path) -> None:
        early = archive(tmp_path / self.EARLY, [sample("q1", "C"), sample("q2", error="x")], status="error")
        late = archive(tmp_path / self.LATE, [sample("q1", "C")])
        found = attempts(early)
        assert found is not None and found.items == ["q1", "q2"]
        late.write_bytes(late.read_bytes()[:99])
        found = attempts(early)
        assert found is not None and found.items == ["q1", "q2"]

    def test_other_tasks_and_finished_logs_stand(self, tmp_path: Path) -> None:
        early = archive(tmp_path / self.EARLY, [sample("q1", "C")], status="error")
        archive(tmp_path / self.LATE, [sample("q1", "C")], eval=HEADER["eval"] | {"task_id": "t2"})
        found = attempts(early)
        assert found is not None and found.items == ["q1"]
        done = archive(tmp_path / self.EARLY, [sample("q1", "C")])
        write(tmp_path / self.LATE.replace(".eval", ".json"), log([sample("q1", "I")]))
        found = attempts(done)
        assert found is not None and found.items == ["q1"]
        again = archive(tmp_path / self.EARLY, [sample("q1", "C")], status="cancelled")
        found = attempts(again)
        assert found is not None and found.items == []


class TestScoredAgain:
    """`inspect score` writes NAME-scored beside NAME: the same run, no further attempts."""

    @staticmethod
    def logs(folder: Path, *scorers: str, again: int = 2, run: str = "e1") -> Path:
        def scored(names: tuple[str, ...], n: int) -> list[Any]:
            return [{"id": k, "epoch": 1, "scores": {m: {"value": "C"} for m in names}} for k in range(n)]

        about = HEADER["eval"] | {"eval_id": "e1"}
        archive(folder / "a-scored.eval", scored(scorers, again), eval=about | {"eval_id": run})
        return archive(folder / "a.eval", scored(("match",), 2), eval=about)

    def test_the_first_log_is_left_out(self, tmp_path: Path) -> None:
        path = self.logs(tmp_path, "match", "graded")
        for scorer in (None, "match", "graded"):
            found = attempts(path, scorer=scorer)
            assert found and (found.items, found.skipped) == ([], {"sample of a log that was scored again": 2})
        found = attempts(tmp_path / "a-scored.eval", scorer="graded")
        assert found and found.items == ["0", "1"]

    @pytest.mark.parametrize(("scorer", "more"), [("graded", {}), ("match", {"again": 1}), ("match", {"run": "e2"})])
    def test_but_not_where_it_has_more(self, tmp_path: Path, scorer: str, more: dict[str, Any]) -> None:
        found = attempts(self.logs(tmp_path, scorer, **more))
        assert found and found.items == ["0", "1"]

    def test_nor_where_the_other_is_damaged(self, tmp_path: Path) -> None:
        """That is said of the other, when it is read."""
        path = self.logs(tmp_path, "match")
        (tmp_path / "a-scored.eval").write_bytes(b"PK\x03\x04")
        found = attempts(path)
        assert found and found.items == ["0", "1"]
        samples = [{"id": k, "epoch": 1, "scores": {"match": {"value": "C"}}} for k in "01"]
        about = HEADER["eval"] | {"eval_id": "e1"}
        path = write(tmp_path / "b.json", log(samples, eval=about))
        odd = [one | {"scores": 3} for one in samples]
        for damage in ({"eval": 3}, {"samples": 3}, {"samples": odd}):
            write(tmp_path / "b-scored.json", log(samples, eval=about) | damage)
            found = attempts(path)
            assert found and found.items == ["0", "1"]


class TestSeveral:
    def test_of_several_scorers_one_must_be_chosen(self, tmp_path: Path) -> None:
        both = [{"id": 1, "epoch": 1, "scores": {"match": {"value": "C"}, "f1": {"value": 0.5}}}]
        path = write(tmp_path / "a.json", log(both))
        with pytest.raises(InputError, match=r"several scorers \(f1, match\): choose one with --scorer"):
            attempts(path)
        assert scores(attempts(path, scorer="f1")) == {"1": [0.5]}

    def test_of_an_object_a_key_must_be_chosen(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.json", log([sample(1, {"a": 1, "b": 0}), sample(2, float("nan"))]))
        with pytest.raises(InputError, match=r"several metrics \(a, b\)"):
            attempts(path)
        assert scores(attempts(path, metric="b")) == {"1": [0], "2": [None]}

    def test_of_a_list_a_place_must_be_chosen(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.json", log([sample(1, ["C", "I"])]))
        with pytest.raises(InputError, match=r"several metrics \(0, 1\)"):
            attempts(path)
        assert scores(attempts(path, metric="1")) == {"1": [0]}


class TestOldLayouts:
    def test_one_score_without_a_name(self, tmp_path: Path) -> None:
        """Version 1: a sample has `score`, and the results one `scorer`."""
        samples = [{"id": n, "epoch": 1, "score": {"value": v}} for n, v in ((1, "C"), (2, "I"))]
        old = log(samples, version=1, results={"scorer": {"name": "model_graded_fact", "params": {}}})
        path = write(tmp_path / "a.json", old)
        assert scores(attempts(path, scorer="model_graded_fact")) == {"1": [1], "2": [0]}

    def test_a_log_without_samples_says_so(self, tmp_path: Path) -> None:
        found = attempts(write(tmp_path / "a.json", {k: v for k, v in log([]).items() if k != "samples"}))
        assert found is not None and (found.items, found.skipped) == ([], {"log without samples": 1})

    def test_a_running_log_by_its_journal(self, tmp_path: Path) -> None:
        path = tmp_path / "a.eval"
        with zipfile.ZipFile(path, "w") as out:
            out.writestr("_journal/start.json", json.dumps(HEADER))
            for n in (1, 2, 10):  # in the order of numbers, not of letters: the later try of a sample counts
                out.writestr(f"_journal/summaries/{n}.json", json.dumps([sample("q", "C" if n == 10 else "I")]))
        found = attempts(path)
        assert found is not None and scores(found) == {"q": [1]}
        assert found.skipped == {"earlier try of a sample": 2}


DOCUMENT = log([sample(1, "C"), sample(2, {"a": 1}), sample("q3", [1, 0], error="x")])


@given(damaged(DOCUMENT))
def test_damage_is_refused_in_one_line_or_read(tmp_path_factory: pytest.TempPathFactory, document: Any) -> None:
    path = write(tmp_path_factory.mktemp("damaged") / "a.json", document)
    survives(path, errors="drop", unscored="drop", scorer="match")


def test_lists_of_logs_add_nothing(tmp_path: Path) -> None:
    """eval-set.json and logs.json of a set of runs, listing.json of a bundle."""
    name = "2026-01-01T00-00-00-00-00_arith_t1.eval"
    overview = {"task": "arith", "task_id": "t1", "version": 2, "status": "success", "model": "openai/gpt-x"}
    lists = {"eval-set": {"eval_set_id": "e1", "tasks": []}, "logs": {name: HEADER}, "listing": {name: overview}}
    for called, value in lists.items():
        path = write(tmp_path / f"{called}.json", value)
        assert reader(path) == "inspect_ai" and attempts(path) is None


def test_recognised_by_content(tmp_path: Path) -> None:
    assert reader(write(tmp_path / "any.json", log([sample(1, "C")]))) == "inspect_ai"
    assert reader(archive(tmp_path / "any.zip", [])) == "inspect_ai"
    bare = {k: v for k, v in log([sample(1, "C")]).items() if k != "version"}
    assert reader(write(tmp_path / "bare.json", bare)) == "inspect_ai"
