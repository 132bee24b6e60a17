from benchkit.endings import is_result, stem, unpacked


class TestTheory:
    def test_known_endings_are_cut_off_and_dots_stay(self):
        assert stem("a/Qwen2.5-7B.results.jsonl.gz") == "Qwen2.5-7B.results"
        assert stem("fit.arrow") == "fit" and stem("v1.2") == "v1.2" and stem(".csv") == ""

    def test_what_may_hold_results(self):
        assert is_result("log.EVAL") and is_result("x.jsonlines.zst") and is_result("x.csv.gz")
        assert not is_result("x.gz") and not is_result("notes.txt") and not is_result("results")
        assert unpacked("X.CSV.GZ") == "x.csv"
