"""Audits of recordings: of truetick and of others."""

from __future__ import annotations

from pathlib import Path

import pytest

import truetick as tt

RECORDINGS = Path(__file__).parent.parent.parent / "tools/testkit/recordings"


@pytest.mark.parametrize(
    ("name", "venue", "proof"),
    [
        ("kraken_btcusd_depth25.cbcap", "kraken", "crc"),
        ("binance_usdm_btcusdt.gz", "binance_usdm", "sequence"),
    ],
)
def test_whole_recordings_of_others_have_no_error(name: str, venue: str, proof: str) -> None:
    audit = tt.audit(RECORDINGS / name)
    audit.raise_for_fault()
    assert audit.is_right
    (feed,) = audit.report["feeds"]
    assert feed["venue"] == venue
    assert feed["proofs"][proof] > 100
    assert venue in str(audit)


def test_a_recording_of_truetick_matches_its_state() -> None:
    audit = tt.audit(RECORDINGS / "simulator.ttj")
    audit.raise_for_fault()
    assert audit.report["checkpoints"] > 0
    assert len(audit.report["state_hashes"]) == len(audit.report["feeds"]) > 1


def test_a_missing_update_is_a_fault() -> None:
    audit = tt.audit(RECORDINGS / "simulator_without_an_update.ttj")
    assert not audit.is_right
    errors = [finding for finding in audit.findings if finding.is_error]
    assert errors and all(finding.count > 0 for finding in errors)
    with pytest.raises(tt.RecordingError, match=errors[0].name):
        audit.raise_for_fault()


def test_what_is_no_recording_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        tt.audit(tmp_path / "absent.ttj")
    other = tmp_path / "other.ttj"
    other.write_bytes(b"no recording")
    with pytest.raises(tt.RecordingError):
        tt.audit(other)
    with pytest.raises(ValueError, match="no venue"):
        tt.audit(other, venue="krakatoa")
