"""Results of promptfoo: which rows are one item, whose they are, and what they score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Shell
from hypothesis import given, settings
from hypothesis import strategies as st
from native_files import attempts, damaged, reader, scores, survives, write

from benchkit.errors import InputError


def row(
    provider: str = "openai:gpt-x", q: Any = "2+2", test: int = 0, success: bool = True, **more: Any
) -> dict[str, Any]:
    return {
        "promptIdx": 0, "testIdx": test, "promptId": "p1", "provider": {"id": provider, "label": ""},
        "prompt": {"raw": f"What is {q}?", "label": "v1"}, "vars": {"q": q},
        "testCase": {"description": "add", "vars": {"q": q}}, "success": success, "score": float(success),
        "failureReason": int(not success), "namedScores": {}, "response": {"output": f"answer {test}"},
    } | more  # fmt: skip


def results(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    stats = {"successes": 0, "failures": 0, "errors": 0}
    inside = {"version": 3, "timestamp": "2026-01-01T00:00:00Z", "prompts": [], "results": list(rows), "stats": stats}
    return {"evalId": "eval-1", "results": inside | more, "config": {}, "shareableUrl": None}


ERROR = {"failureReason": 2, "success": False, "score": 0, "error": "429"}


class TestItems:
    def test_a_repeat_is_an_attempt_whatever_its_number(self, tmp_path: Path) -> None:
        """--repeat gives each repeat another testIdx; vars and description are the same, in any order of keys."""
        rows = [
            row(vars={"a": 1, "b": 2}, test=0), row(vars={"a": 2, "b": 2}, test=1),
            row(vars={"b": 2, "a": 1}, test=2, success=False), row(vars={"a": 2, "b": 2}, test=3),
        ]  # fmt: skip
        got = attempts(write(tmp_path / "a.json", results(*rows)))
        assert scores(got) == {'add {"a":1,"b":2}': [1.0, 0.0], 'add {"a":2,"b":2}': [1.0, 1.0]}
        assert got and got.numbers == ["1", "1", "2", "2"] and got.settings == "eval-1"

    def test_the_description_tells_tests_apart_too(self, tmp_path: Path) -> None:
        rows = [row(), row(testCase={"description": "sum", "vars": {"q": "2+2"}}), row(testCase={})]
        assert list(scores(attempts(write(tmp_path / "a.json", results(*rows))))) == [
            'add {"q":"2+2"}', 'sum {"q":"2+2"}', '{"q":"2+2"}',
        ]  # fmt: skip

    def test_assertions_tell_tests_apart_where_nothing_else_does(self, tmp_path: Path) -> None:
        cases = [{"description": "add", "vars": {"q": "2+2"}, "assert": [{"type": t}]} for t in ("equals", "regex")]
        rows = [row(testCase=cases[0]), row(testCase=cases[1], success=False), row(testCase=cases[0])]
        got = scores(attempts(write(tmp_path / "a.json", results(*rows))))
        assert list(got.values()) == [[1.0, 1.0], [0.0]] and all(name.startswith("add ") for name in got)
        assert list(scores(attempts(write(tmp_path / "b.json", results(*rows[::2]))))) == ['add {"q":"2+2"}']

    def test_long_variables_are_cut_and_told_apart(self, tmp_path: Path) -> None:
        rows = [row(q="x" * 200 + end) for end in "ab"] + [row(q="line\nline")]
        items = list(scores(attempts(write(tmp_path / "a.json", results(*rows)))))
        assert len(set(items)) == 3 and all(len(i) <= 100 and "\n" not in i for i in items)

    def test_a_repeat_from_the_cache_is_no_attempt(self, tmp_path: Path) -> None:
        """The same answer, from the cache: a copy. Another answer, or one that was asked for anew: an attempt."""
        copy = {"response": {"output": "4", "cached": True}}
        rows = [row(response={"output": "4"}), row(test=1, **copy), row(test=2, response={"output": "4"}),
                row(test=3, response={"output": "5", "cached": True})]  # fmt: skip
        got = attempts(write(tmp_path / "a.json", results(*rows)))
        assert got and len(got.items) == 3 and got.skipped == {"repeat taken from the cache": 1}

    def test_what_the_model_said_before_is_no_variable(self, tmp_path: Path) -> None:
        """Many versions keep a conversation so far, and stored answers, among the variables."""
        rows = [row(f"p{k}", vars={"q": "2+2", "_conversation": [{"output": f"{k}"}] * k}) for k in range(3)]
        assert scores(attempts(write(tmp_path / "a.json", results(*rows)))) == {'add {"q":"2+2"}': [1.0] * 3}
        first = row(q="1", testCase={"vars": {"q": "1"}, "options": {"storeOutputAs": "got"}})
        rows = [first, *(row(f"p{k}", vars={"q": "2", "got": f"{k}"}, testCase={"vars": {}}) for k in range(2))]
        got = scores(attempts(write(tmp_path / "a.json", results(*rows))))
        assert got == {'{"q":"1"}': [1.0], '{"q":"2"}': [1.0, 1.0]}

    def test_without_anything_to_tell_it_by(self, tmp_path: Path) -> None:
        """Tests of a plain prompt: {}, and a hash of the assertions where there are several."""
        bare = row(vars={}, testCase={})
        assert scores(attempts(write(tmp_path / "a.json", results(bare, bare)))) == {"{}": [1.0, 1.0]}
        cases = [row(vars={}, testCase={"assert": [{"type": t}]}) for t in ("equals", "regex")]
        got = scores(attempts(write(tmp_path / "a.json", results(*cases))))
        assert len(got) == 2 and all(name.startswith("{} ") for name in got)


class TestModels:
    def models(self, folder: Path, *rows: dict[str, Any]) -> list[str | None]:
        got = attempts(write(folder / "a.json", results(*rows)))
        assert got is not None
        return got.models

    def test_the_label_or_the_identifier(self, tmp_path: Path) -> None:
        given = ({"id": "openai:gpt-x", "label": ""}, {"id": "x", "label": "mine"}, "plain")
        assert self.models(tmp_path, *(row() | {"provider": p} for p in given)) == ["openai:gpt-x", "mine", "plain"]

    def test_several_prompts_of_one_provider_are_told_apart(self, tmp_path: Path) -> None:
        second = {"promptId": "p2", "promptIdx": 1, "prompt": {"raw": "", "label": "v2"}}
        rows = [row("a"), row("a", **second), row("b")]
        assert self.models(tmp_path, *rows) == ["a (v1)", "a (v2)", "b"]

    def test_one_provider_with_two_settings(self, tmp_path: Path) -> None:
        names = self.models(tmp_path, row("a"), row("a", promptIdx=1), row("a", test=1))
        assert names[0] == names[2] != names[1] and all(n and n.startswith("a (prompt ") for n in names)

    def test_two_evaluations_are_two_models_where_they_collide(self, sh: Shell) -> None:
        write(sh.folder / "a.json", results(row()))
        write(sh.folder / "b.json", results(row(success=False)) | {"evalId": "eval-2"})
        got = json.loads(sh("bk-matrix a.json b.json -t json").out)["responses"]
        assert [(r["model"], r["correct"]) for r in got] == [
            ("openai:gpt-x (eval-1)", 1), ("openai:gpt-x (eval-2)", 0),
        ]  # fmt: skip


class TestScores:
    PARTIAL = (row(score=0.75), row(q="1+1", success=False, score=0.25, namedScores={"tone": 0.5}))

    def test_nothing_to_choose_where_success_and_score_agree(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.json", results(row(namedScores={"tone": 0.5}), row(q="1+1", success=False)))
        assert list(scores(attempts(path)).values()) == [[1.0], [0.0]]
        assert list(scores(attempts(path, metric="tone")).values()) == [[0.5], [None]]

    def test_else_it_must_be_chosen(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.json", results(*self.PARTIAL))
        with pytest.raises(InputError, match=r"several metrics \(success, score, tone\): choose one with --metric"):
            attempts(path)
        assert list(scores(attempts(path, metric="score")).values()) == [[0.75], [0.25]]
        assert list(scores(attempts(path, metric="success")).values()) == [[1.0], [0.0]]
        with pytest.raises(InputError, match=r"no metric 'x' \(found: success, score, tone\)"):
            attempts(path, metric="x")

    def test_errors_are_kept_apart(self, sh: Shell) -> None:
        rows = [row(), row(q="1+1", **ERROR), row(q="3+3", success=False)]
        write(sh.folder / "a.json", results(*rows))
        assert "1 of 3 attempts ended in an error (the first in row 2)" in sh("bk-matrix a.json", rc=2).err
        for choice, want in (("drop", [1, 0]), ("wrong", [0, 1, 0])):
            got = json.loads(sh(f"bk-matrix a.json --errors {choice} -t json").out)
            assert [r["correct"] for r in got["responses"]] == want and got["sources"][0]["failed"] == 1

    def test_before_there_was_a_reason_of_failure(self, tmp_path: Path) -> None:
        """An error is a row without a grading; a failed assertion has an error text too, and a grading."""
        old = [{k: v for k, v in r.items() if k != "failureReason"} for r in (
            row(), row(q="a", success=False, error="Expected 4", gradingResult={"pass": False}),
            row(q="b", success=False, error="429", gradingResult=None),
        )]  # fmt: skip
        got = attempts(write(tmp_path / "a.json", results(*old, version=2)))
        assert got and got.errors == [False, False, True] and got.scores == [1.0, 0.0, None]


class TestHostile:
    @pytest.mark.parametrize(
        ("document", "said"),
        (
            (results(version=4), "promptfoo's version 4: known are 2 and 3"),
            (results(3), "result 1 is a number, not an object"),  # type: ignore[arg-type]
            (results() | {"results": {"version": 3, "results": {}}}, "results are an object, not a list"),
            (results(row() | {"success": "yes"}), 'row 1: success is "yes", which is no score'),
            (results(row(), row(failureReason=3)), "row 2: failureReason is 3: known are 0, 1 and 2"),
            (results(row() | {"provider": {"id": 3}}), "row 1: id is a number, not a text"),
            (results(row() | {"provider": None}), "row 1: no provider"),
            (results(row(vars=[])), "row 1: vars is a list, not an object"),
            (results(row(score=0.5, namedScores=[])), "row 1: namedScores is a list, not an object"),
        ),
    )
    def test_one_clear_line(self, tmp_path: Path, document: Any, said: str) -> None:
        with pytest.raises(InputError, match=said):
            attempts(write(tmp_path / "a.json", document))

    def test_others_of_this_name(self, tmp_path: Path) -> None:
        for other in (
            {"results": {"version": 3}},
            {"results": []},
            {"version": 2, "results": [], "stats": {}},
            [results()],
        ):
            assert reader(write(tmp_path / "a.json", other)) is None

    def test_cut_file(self, sh: Shell) -> None:
        (sh.folder / "a.json").write_text(json.dumps(results(row()))[:-9])
        assert "damaged or cut JSON" in sh("bk-matrix a.json", rc=2).err

    @settings(max_examples=150)
    @given(st.data())
    def test_damaged(self, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
        document = data.draw(damaged(results(row(), row(q="1+1", **ERROR), row(test=1))))
        path = write(tmp_path_factory.mktemp("p") / "a.json", document)
        survives(path, metric="score", errors="wrong", unscored="drop")


def test_a_row_a_line(tmp_path: Path) -> None:
    """promptfoo eval --output FILE.jsonl writes the rows alone."""
    path = write(tmp_path / "out.jsonl", [row(), row(test=1, success=False), row(q="3+3")])
    assert reader(path) == "promptfoo"
    assert scores(attempts(path)) == {'add {"q":"2+2"}': [1.0, 0.0], 'add {"q":"3+3"}': [1.0]}


def test_prompts_of_version_2_without_a_label(tmp_path: Path) -> None:
    """Before there were labels and numbers, `display` told prompts apart."""
    old = [row(prompt={"raw": "", "display": d}, promptId=None, promptIdx=None) for d in ("short", "long")]
    got = attempts(write(tmp_path / "a.json", results(*old, version=2)))
    assert got and got.models == ["openai:gpt-x (short)", "openai:gpt-x (long)"]


ROWS = [row(), row(q="3+3", success=False)]


class TestLibrary:
    """What evaluate() gives, saved as JSON: of old versions a summary, later a record, whose rows may be elsewhere."""

    def test_a_summary(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.json", results(*ROWS)["results"])
        assert reader(path) == "promptfoo"
        assert scores(attempts(path)) == {'add {"q":"2+2"}': [1.0], 'add {"q":"3+3"}': [0.0]}

    def test_a_record(self, tmp_path: Path) -> None:
        record = {"id": "eval-2", "createdAt": 1, "config": {}, "prompts": [], "persisted": False}
        path = write(tmp_path / "a.json", record | {"results": ROWS})
        got = attempts(path)
        assert reader(path) == "promptfoo" and got and (got.settings, got.scores) == ("eval-2", [1.0, 0.0])
        with pytest.raises(InputError, match="a record without its rows: save what its toEvaluateSummary"):
            attempts(write(path, record | {"results": [], "persisted": True}))

    def test_the_rows_alone(self, tmp_path: Path) -> None:
        for document in (ROWS, ROWS[0]):
            path = write(tmp_path / "a.json", document)
            got = attempts(path)
            assert reader(path) == "promptfoo" and got and got.scores == [1.0, 0.0][: len(got.scores)]


def test_columns_that_rows_of_version_2_do_not_tell_apart(tmp_path: Path) -> None:
    """One provider with two settings and no label: its rows would look like attempts of one model."""
    old = [{k: v for k, v in row().items() if k not in ("promptIdx", "promptId")} for _ in range(2)]
    column = {"provider": "openai:gpt-x", "display": "v1"}
    path = write(tmp_path / "a.json", results(*old, version=2, table={"head": {"prompts": [column] * 2}}))
    with pytest.raises(InputError, match="several columns of provider 'openai:gpt-x' with one prompt"):
        attempts(path)
    repeats = results(*old, version=2, table={"head": {"prompts": [column]}})
    assert scores(attempts(write(path, repeats))) == {'add {"q":"2+2"}': [1.0, 1.0]}
