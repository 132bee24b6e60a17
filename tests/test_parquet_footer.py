"""Where a Parquet file's data end, against pyarrow's own account of the footer."""

from __future__ import annotations

import io
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchkit.decode import check_parquet
from benchkit.errors import InputError
from benchkit.parquet_footer import data_end

TABLE = pa.table({
    "model": ["a", "b"] * 50, "n": list(range(100)), "s": [{"x": [k], "y": None} for k in range(100)],
    "m": pa.array([[("k", 1)]] * 100, pa.map_(pa.utf8(), pa.int64())),
})  # fmt: skip
KINDS = [{}, {"compression": "zstd"}, {"row_group_size": 7}, {"write_page_index": True}, {"use_dictionary": False},
         {"version": "1.0"}, {"write_statistics": False}, {"row_group_size": 7, "write_page_index": True}]  # fmt: skip


def written(**options: object) -> bytes:
    out = io.BytesIO()
    pq.write_table(TABLE, out, **options)
    return out.getvalue()


def footer(data: bytes) -> bytes:
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


class TestReference:
    @pytest.mark.parametrize("options", KINDS)
    def test_data_end_where_the_footer_begins(self, options: dict[str, object]) -> None:
        data = written(**options)
        assert data_end(footer(data)) == len(data) - 8 - len(footer(data))

    def test_as_pyarrow_says(self) -> None:
        data = written(row_group_size=7)
        meta = pq.read_metadata(io.BytesIO(data))
        chunks = [meta.row_group(g).column(c) for g in range(meta.num_row_groups) for c in range(meta.num_columns)]
        ends = [(c.dictionary_page_offset or c.data_page_offset) + c.total_compressed_size for c in chunks]
        assert data_end(footer(data)) == max(ends)


class TestValidation:
    def test_every_cut_and_flip_is_a_value_or_an_input_error(self) -> None:
        good, draw = footer(written()), random.Random(1)
        for k in range(0, len(good), 7):
            with pytest.raises(InputError):
                data_end(good[:k])
        for _ in range(2000):
            bad = bytearray(good)
            bad[draw.randrange(len(bad))] = draw.randrange(256)
            try:
                assert isinstance(data_end(bytes(bad)), int)
            except InputError:
                pass

    def test_two_files_one_after_another(self) -> None:
        with pytest.raises(InputError, match="two files one after another"):
            check_parquet(pa.BufferReader(written() + written(compression="zstd")))
        assert check_parquet(pa.BufferReader(written())).names == TABLE.column_names
