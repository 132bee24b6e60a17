from benchkit.endings import is_result, stem, unpacked


class TestTheory:
    def test_known_endings_are_cut_off_and_dots_stay(self):
        assert stem("a/Qwen2.5-7B.results.jsonl.gz") == "Qwen2.5-7B.results"
        assert stem("fit.arrow") == "fit" and stem("v1.2") == "v1.2" and stem(".csv") == ""

    def test_the_ending_of_a_tool_is_no_part_of_the_model(self):
        assert stem("gpt-5_temp_0.0.eval_results.json") == stem("gpt-5_temp_0.0_eval_results.json") == "gpt-5_temp_0.0"
        assert stem("eval_results.json") == "eval_results" and stem("_eval_results.json") == "_eval_results"

    def test_what_may_hold_results(self):
        assert is_result("log.EVAL") and is_result("x.jsonlines.zst") and is_result("x.csv.gz")
        assert not is_result("x.gz") and not is_result("notes.txt") and not is_result("results")
        assert unpacked("X.CSV.GZ") == "x.csv"
