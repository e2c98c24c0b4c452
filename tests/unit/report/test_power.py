from __future__ import annotations

from reconciler.report.power import Power, powers_in


def test_what_an_api_server_fills_in_is_no_power() -> None:
    assert list(powers_in({"spec": {"schedulerName": "default-scheduler", "dnsPolicy": "ClusterFirst"}})) == []
    assert list(powers_in({"spec": {"schedulerName": "mine"}})) == [Power("privilege", "schedulerName mine")]
