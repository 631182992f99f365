"""The headers of many shards: how many are asked for at once, and what they may cost."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from gguf_audit.checkpoint import StoredTensor
from gguf_audit.errors import LimitError, MalformedError
from gguf_audit.formats.safetensors import read_tensors
from gguf_audit.limits import LIMITS
from gguf_audit.parts import Absent
from gguf_audit.sources.hub import Hub, HubUnavailableError
from hub_server import (
    Answer,
    Content,
    FakeHub,
    content,
    hang,
)


def shards(fake: FakeHub, count: int, **changed: Content) -> dict[str, StoredTensor]:
    """Give the repository shards of one tensor each, and return what they hold."""
    names = [f"model-{number:05}-of-{count:05}.safetensors" for number in range(1, count + 1)]
    found: dict[str, StoredTensor] = {}
    del fake.files["model.safetensors"]
    for number, name in enumerate(names):
        header = {f"t.{number}": {"dtype": "U8", "shape": [200_000], "data_offsets": [0, 200_000]}}
        raw = json.dumps(header).encode()
        head = len(raw).to_bytes(8, "little") + raw
        fake.files[name] = Content(head, len(head) + 200_000)
        found[f"t.{number}"] = StoredTensor(dtype="U8", shape=(200_000,))
    weight_map = {f"t.{number}": name for number, name in enumerate(names)}
    fake.files["model.safetensors.index.json"] = content({"weight_map": weight_map})
    fake.files |= {names[int(number)]: file for number, file in changed.items()}
    return found


class Crowd:
    """A fault that is none: it keeps requests a little and counts how many there are."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.most = self.now = 0
        self.lock = threading.Lock()

    def __call__(self, served: FakeHub, host: str, path: str) -> Answer | None:
        del served, host, path
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(self.seconds)
        with self.lock:
            self.now -= 1
        return None


def test_the_headers_of_163_shards_take_two_requests_each(fake: FakeHub, hub: Hub) -> None:
    found = shards(fake, 163)
    tree = hub.pin("owner/model")
    tree.open("model.safetensors.index.json").read(0, 1)
    before = len(fake.requests)
    fake.fault = crowd = Crowd(0.02)
    tensors = read_tensors(tree)
    assert not isinstance(tensors, Absent)
    assert list(tensors.items()) == list(found.items())
    asked = fake.requests[before:]
    ranges = [request for request in asked if request.range is not None]
    # A redirect and a range of each shard, and nobody asks whether the index is still it.
    assert sorted((request.host, request.range) for request in ranges) == [
        *[("cdn", "bytes=0-99999")] * 163,
        *[("hub", "bytes=0-99999")] * 163,
    ]
    assert len(asked) - len(ranges) <= 1
    assert 2 <= crowd.most <= LIMITS.hub_lanes


def test_as_many_shards_are_asked_for_at_once_as_the_limit_says(
    fake: FakeHub, tmp_path: Path
) -> None:
    found = shards(fake, 8)
    hub = Hub(fake.url, cache=tmp_path / "hub", limits=LIMITS._replace(hub_lanes=4))
    tree = hub.pin("owner/model")
    tree.open("model.safetensors.index.json").read(0, 1)
    together = threading.Barrier(4)

    def fault(served: FakeHub, host: str, path: str) -> Answer | None:
        del served
        if host == "cdn" and path.endswith(".safetensors"):
            together.wait(5)  # Nobody gets an answer before four have asked.
        return None

    fake.fault = fault
    assert read_tensors(tree) == found


@pytest.mark.parametrize("lanes", [1, 8])
def test_of_several_wrong_shards_the_first_is_told(
    fake: FakeHub, tmp_path: Path, lanes: int
) -> None:
    shards(fake, 12, **{"2": Content(bytes(8), 300_000), "4": Content(b"\xff" * 8, 300_000)})
    hub = Hub(fake.url, cache=tmp_path / "hub", limits=LIMITS._replace(hub_lanes=lanes))

    def fault(served: FakeHub, host: str, path: str) -> Answer | None:
        del served, host
        if path.endswith("model-00003-of-00012.safetensors"):
            time.sleep(0.2)
        return None

    fake.fault = fault
    with pytest.raises(MalformedError, match=r"model-00003-of-00012\.safetensors: header doesn't"):
        read_tensors(hub.pin("owner/model"))


def test_a_hub_that_dies_among_the_shards_costs_its_patience_once(fake: FakeHub, hub: Hub) -> None:
    shards(fake, 24)
    tree = hub.pin("owner/model")
    tree.open("model.safetensors.index.json").read(0, 1)
    fake.fault = hang(6)
    start = time.monotonic()
    with pytest.raises(HubUnavailableError, match="doesn't answer"):
        read_tensors(tree)
    assert 2 < time.monotonic() - start < 5.5
    with pytest.raises(HubUnavailableError, match="doesn't answer"):
        hub.pin("owner/model")


def test_shards_that_share_a_slow_line_have_the_time_of_all(fake: FakeHub, tmp_path: Path) -> None:
    found = shards(fake, 8)
    # Of 0.5 s for an answer and 0.1 s for the bytes of one, that of eight is 1.3 s.
    limits = LIMITS._replace(hub_patience_seconds=0.5, hub_bytes_per_second=1_000_000)
    hub = Hub(fake.url, cache=tmp_path / "hub", limits=limits)
    tree = hub.pin("owner/model")
    tree.open("model.safetensors.index.json").read(0, 1)

    def fault(served: FakeHub, host: str, path: str) -> Answer | None:
        del served, path
        if host == "cdn":
            time.sleep(0.8)
        return None

    fake.fault = fault
    assert read_tensors(tree) == found


def test_shards_together_may_cost_no_more_than_one_reference(fake: FakeHub, tmp_path: Path) -> None:
    shards(fake, 100)
    few = Hub(fake.url, cache=tmp_path / "a", limits=LIMITS._replace(hub_requests=40))
    with pytest.raises(LimitError, match="more than 40 requests are not spent on"):
        read_tensors(few.pin("owner/model"))
    assert fake.count()[0] <= 40
    short = Hub(fake.url, cache=tmp_path / "b", limits=LIMITS._replace(hub_bytes=3_000_000))
    before = fake.count("cdn")[1]
    with pytest.raises(LimitError, match="more than 3000000 bytes are not spent on"):
        read_tensors(short.pin("owner/model"))
    assert fake.count("cdn")[1] - before <= 3_000_000


def test_what_is_on_its_way_counts_too(fake: FakeHub, tmp_path: Path) -> None:
    shards(fake, 8)
    hub = Hub(fake.url, cache=tmp_path / "hub", limits=LIMITS._replace(hub_bytes=500_000))
    tree = hub.pin("owner/model")
    fake.fault = Crowd(0.1)
    with pytest.raises(LimitError, match="more than 500000 bytes are not spent on"):
        read_tensors(tree)
    assert fake.count("cdn")[1] <= 500_000
