"""The figures that plot and table read from google-benchmark's JSON."""

import functools
import json
import re
import statistics
import sys

CONTENDERS = {"varve": "Varve", "rocksdb": "RocksDB", "leveldb": "LevelDB", "lmdb": "LMDB", "wiredtiger": "WiredTiger",
              "pebble": "Pebble", "bare_write": "write()", "varve_retaining": "Varve with a history",
              "redis": "Redis", "redis_without_log": "Redis without its log", "null": "null server"}
# Shown beside the peers, but none of them: they store nothing, promise nothing, or are Varve.
NO_PEERS = ("bare_write", "varve_retaining", "redis_without_log", "null")


@functools.cache
def read_file(path):
    """The benchmarks of one file. A program that was ended before its last row leaves a file without an end, of which all
    that is complete counts."""
    with open(path) as file:
        text = file.read()
    try:
        return json.loads(text)["benchmarks"]
    except json.JSONDecodeError:
        end = text.rfind("\n    }")
        if '"benchmarks": [' not in text or end < 0:
            sys.exit(f"{path} is no JSON of google-benchmark")
        print(f"{path} has no end; its rows count up to there", file=sys.stderr)
        return json.loads(text[:end] + "\n    }]}")["benchmarks"]


def runs_of(paths):
    """Each repetition of each benchmark, in the order of the files, under a name without google-benchmark's endings."""
    for path in paths:
        for entry in read_file(path):
            if entry.get("run_type", "iteration") != "iteration":
                continue
            name = re.sub(r"/(iterations|repeats|turn):\d+|/manual_time|/real_time|/process_time", "", entry["name"])
            yield {**entry, "name": name}


def median_entries(paths):
    """One entry a benchmark name and label, in the order of the files; each counter is the median of its repetitions."""
    runs = {}
    for entry in runs_of(paths):
        if not entry.get("error_occurred"):
            runs.setdefault((entry["name"], entry.get("label", "")), []).append(entry)
    entries = []
    for (name, label), repetitions in runs.items():
        first = repetitions[0]
        counters = {
            key: statistics.median(r[key] for r in repetitions)
            for key, value in first.items()
            if isinstance(value, (int, float)) and all(key in r for r in repetitions)
        }
        entries.append({"name": name, "label": label, **counters})
    return entries


class PeerRow:
    """What Varve and its peers came to in one row of engine_benchmark or server_benchmark."""

    def __init__(self, row_id, title, less_is_better):
        self.id, self.title, self.less_is_better, self.figures = row_id, title, less_is_better, {}
        self.entries = {}  # by contender, as the figures

    def peers(self):
        return {name: figure for name, figure in self.figures.items() if name not in ("varve", *NO_PEERS) and figure > 0}

    def best_peer(self):
        figures = self.peers().values()
        return (min(figures) if self.less_is_better else max(figures)) if figures else None

    def relative(self, contender):
        """To the best peer; above 1 is better."""
        best, figure = self.best_peer(), self.figures.get(contender)
        if not best or not figure:
            return None
        return best / figure if self.less_is_better else figure / best


def peer_rows(entries, with_open_rows=False):
    rows = {}
    for entry in entries:
        if "less_is_better" not in entry or "figure" not in entry or ("offered_per_second" in entry and not with_open_rows):
            continue
        row_id, contender = entry["name"].rsplit("/", 1)
        row = rows.setdefault(row_id, PeerRow(row_id, entry["label"], entry["less_is_better"] > 0))
        row.figures[contender] = entry["figure"]
        row.entries[contender] = entry
    return list(rows.values())


def short(value):
    for limit, divisor, unit in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e3, 1e3, "k")):
        if value >= limit * 0.9995:
            return f"{value / divisor:.3g}{unit}"
    return f"{value:.3g}"
